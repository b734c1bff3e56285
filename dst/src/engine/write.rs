//! An accepted write of a manager.

use jiff::{SignedDuration, Timestamp};
use kruise_sim::{Method, Request};
use serde_json::Value;

use super::{
    mirror::Mirror,
    object::Object,
    process::{ProcessId, Sent, component},
    resource::{PODS, PerResource},
    verdict::Judged,
};

const LEASES: &str = "leases";

/// An accepted write of a manager.
pub struct Write<'a> {
    /// Who wrote.
    pub process: ProcessId,
    /// Component: `cloneset-controller`, `pod-readiness-controller`, `leader-election`.
    pub component: &'a str,
    /// How.
    pub method: Method,
    /// Plural of the resource.
    pub resource: &'a str,
    /// Name of the object; empty for a creation.
    pub name: &'a str,
    /// Subresource, or empty.
    pub subresource: &'a str,
    /// The body. In a play that is not judged, only that of a lease is read.
    pub body: Value,
    /// What the sender knew.
    pub sent: &'a Sent,
    /// Lengths of the logs before it.
    pub marks: PerResource<usize>,
    /// When it was accepted.
    pub now: Timestamp,
    /// When it was decided: the server may have answered 429 since.
    pub decided: Timestamp,
    /// Seconds that the sender's clock is fast.
    pub skew: i64,
}

impl<'a> Write<'a> {
    /// Takes a request apart.
    pub fn new(
        process: ProcessId,
        agent: &'a str,
        request: &'a Request,
        sent: &'a Sent,
        marks: PerResource<usize>,
        now: Timestamp,
        judged: Judged,
    ) -> Self {
        // What is in no namespace comes right behind group and version.
        let (rest, before) = request
            .path
            .split_once("/namespaces/")
            .map_or((request.path.as_str(), 4), |(_, rest)| (rest, 1));
        let mut parts = rest.split('/').skip(before);
        let mut part = || parts.next().unwrap_or_default();
        let resource = part();
        let body = (judged == Judged::Yes || resource == LEASES)
            .then(|| serde_json::from_str(str::from_utf8(&request.body).ok()?).ok());
        Self {
            process,
            component: component(agent),
            method: request.method,
            resource,
            name: part(),
            subresource: part(),
            body: body.flatten().unwrap_or_default(),
            sent,
            marks,
            now,
            decided: now.checked_sub(sent.decided.elapsed()).unwrap_or(now),
            skew: 0,
        }
    }

    /// The same, of a sender whose clock is so many seconds fast.
    #[must_use]
    pub fn by_clock(self, skew: i64) -> Self {
        Self { skew, ..self }
    }

    /// What the sender's clock shows when the write is accepted.
    pub fn sender_now(&self) -> Timestamp {
        let now = self.now.checked_add(SignedDuration::from_secs(self.skew));
        now.unwrap_or(self.now)
    }

    /// The pod before a write to it, and after.
    pub fn pod<'m>(&self, mirror: &'m Mirror) -> Option<[&'m Object; 2]> {
        if self.resource != "pods" || self.name.is_empty() {
            return None;
        }
        let pods = mirror.of(PODS);
        let version = pods.changes.get(self.marks.of(PODS))?.version;
        let mut all = pods.objects.values();
        let versions = all.find(|versions| versions.last().is_some_and(|last| last.version == version))?;
        let [.., before, after] = versions.as_slice() else {
            return None;
        };
        Some([before, after])
    }

    /// Is it about the leader lease?
    pub fn is_lease(&self) -> bool {
        self.resource == LEASES
    }
}
