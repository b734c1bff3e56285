//! What happened in one play, counted and hashed.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hasher},
    time::Duration,
};

use kruise_sim::{Method, Request, Response};

use super::{
    process::{ProcessId, component},
    write::Write,
};

/// What a request leads to.
pub enum Reply {
    /// An answer.
    Response(Response),
    /// A watch is open.
    Watch,
    /// A watch from a version that is no longer kept.
    Expired,
}

impl Reply {
    /// Status code.
    pub fn code(&self) -> u16 {
        match self {
            Self::Response(response) => response.code,
            Self::Watch | Self::Expired => 200,
        }
    }
}

/// A fingerprint of everything that went over the network, and, if wanted, its text.
#[derive(Debug, Default)]
pub struct Trace {
    hasher: DefaultHasher,
    /// Lines, if they are kept.
    pub lines: Option<Vec<String>>,
}

impl Trace {
    /// One that keeps its lines.
    pub fn kept() -> Self {
        Self {
            lines: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// A request that arrived, and its answer.
    pub fn request(
        &mut self,
        at: Duration,
        process: ProcessId,
        agent: &str,
        request: &Request,
        reply: &Reply,
    ) {
        let code = reply.code();
        let answer = match reply {
            Reply::Response(response) => response.body.as_slice(),
            Reply::Watch | Reply::Expired => [].as_slice(),
        };
        self.hasher.write_u128(at.as_nanos());
        self.hasher.write_u32(process.0);
        for part in [
            name(request.method).as_bytes(),
            agent.as_bytes(),
            request.path.as_bytes(),
            request.query.as_bytes(),
            &request.body,
            answer,
        ] {
            self.hasher.write(part);
            self.hasher.write_u8(0);
        }
        self.hasher.write_u16(code);
        if self.lines.is_some() {
            let agent = component(agent);
            let body = String::from_utf8_lossy(&request.body);
            let body: String = body.chars().take(600).collect();
            self.keep(
                at,
                &format!(
                    "m{} {agent} {} {} -> {code} {body}",
                    process.0,
                    name(request.method),
                    request.path
                ),
            );
        }
    }

    /// A step of the scenario. It is input, and no part of the fingerprint.
    pub fn step(&mut self, at: Duration, text: &str) {
        self.keep(at, text);
    }

    /// A line.
    pub fn note(&mut self, at: Duration, text: &str) {
        self.hasher.write(text.as_bytes());
        self.keep(at, text);
    }

    fn keep(&mut self, at: Duration, text: &str) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>9.3} {text}", at.as_secs_f64()));
        }
    }

    /// The fingerprint.
    pub fn hash(&self) -> u64 {
        self.hasher.finish()
    }
}

fn name(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Patch => "PATCH",
        Method::Delete => "DELETE",
    }
}

/// Edits that a scenario needs to count, beside what its subjects demand.
pub const EDITS: u32 = 3;
/// Kinds of fault that must have had an effect.
pub const KINDS: usize = 3;
/// Writes of managers that it needs.
pub const WRITES: u32 = 100;

/// Who wrote what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    /// Component of a manager or an agent.
    pub component: String,
    /// Plural of the resource.
    pub resource: String,
    /// Name of the object; empty for a creation.
    pub name: String,
}

/// How much happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Writes of managers that were accepted, leases apart.
    pub writes: u32,
    /// Of these, writes of pods, by component.
    pub pods: BTreeMap<String, u32>,
    /// The same, by plural of the resource.
    pub written: BTreeMap<String, u32>,
    /// Accepted writes of managers and agents one by one, leases apart, where that is wanted.
    pub each: Option<BTreeMap<Written, u32>>,
    /// Requests of managers that arrived, leases apart.
    pub requests: u32,
    /// Reviews that needed lookups in the API server.
    pub lookups: u32,
    /// Edits of users that were accepted.
    pub edits: u32,
    /// Faults that had an effect, by name.
    pub fired: BTreeMap<&'static str, u32>,
}

impl Counters {
    /// Whether a scenario counts if so many writes are enough.
    pub fn are_enough(&self, writes: u32) -> bool {
        self.edits >= EDITS && self.fired.len() >= KINDS && self.writes >= writes
    }

    /// Writes of pods by a component.
    pub fn pods_of(&self, component: &str) -> u32 {
        self.pods.get(component).copied().unwrap_or(0)
    }

    /// Writes of a resource.
    pub fn written(&self, plural: &str) -> u32 {
        self.written.get(plural).copied().unwrap_or(0)
    }

    /// A fault had an effect.
    pub fn fired(&mut self, name: &'static str) {
        *self.fired.entry(name).or_default() += 1;
    }

    /// A write was accepted.
    pub fn wrote(&mut self, write: &Write<'_>) {
        if write.component == "leader-election" {
            return;
        }
        self.writes += 1;
        *self.written.entry(write.resource.to_owned()).or_default() += 1;
        if write.resource == "pods" {
            *self.pods.entry(write.component.to_owned()).or_default() += 1;
        }
        if let Some(each) = &mut self.each {
            let written = Written {
                component: write.component.to_owned(),
                resource: write.resource.to_owned(),
                name: write.name.to_owned(),
            };
            *each.entry(written).or_default() += 1;
        }
    }
}
