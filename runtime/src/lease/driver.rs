//! Acquires and renews the lease.

use std::time::Duration;

use kruise_api::path::segment;
use kruise_plan_kit::EventNote;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::elector::{Decision, Elector, Record, Settings};
use crate::events::{EventSink, ObjectRef};
use crate::metrics::Metrics;
use crate::shutdown::stopped;
use crate::{ApiError, Client};

kruise_api::reasons! {
    LEADER_ELECTION = "LeaderElection", Normal, ["Lease"], "A manager became the leader.";
}

/// Why [`lead`] ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A stop was requested. The lease was released if it was ours.
    Stopped,
    /// The lease could not be renewed in time. Stop all writes at once.
    Lost(String),
}

/// The state of a lease at the time of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// `None` if there was none.
    version: Option<String>,
    /// Empty if nobody holds it.
    holder: String,
}

impl Found {
    fn of(lease: Option<&Value>) -> Self {
        let version = lease.and_then(|lease| lease.pointer("/metadata/resourceVersion")?.as_str());
        Self {
            version: version.map(str::to_owned),
            holder: lease.map(|lease| Record::of(lease).holder).unwrap_or_default(),
        }
    }

    /// Whether no replica has led between this read and the `later` one.
    pub fn is_unheld_until(&self, later: &Self) -> bool {
        self.holder.is_empty() && self == later
    }

    /// Whether the process of this identity leads.
    pub fn is_held_by(&self, identity: &str) -> bool {
        self.holder == identity
    }
}

/// Reads the lease without competing for it.
pub async fn find(client: &Client, settings: &Settings) -> Result<Found, ApiError> {
    match client.get::<Value>(&path(settings, &settings.name)).await {
        Ok(lease) => Ok(Found::of(Some(&lease))),
        Err(error) if error.is_not_found() => Ok(Found::of(None)),
        Err(error) => Err(error),
    }
}

/// A unique name of this process: host name and a random part, as users of client-go build it.
#[allow(clippy::disallowed_methods, reason = "no two processes have the same")]
pub fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}_{}", host.trim(), uuid::Uuid::new_v4())
}

/// Competes for the lease until `stop` or until the lease is lost. Calls `on_acquired` once, when this process becomes
/// leader, with the state of the lease before that.
pub async fn lead(
    client: &Client,
    settings: Settings,
    metrics: &Metrics,
    stop: watch::Receiver<bool>,
    on_acquired: impl FnOnce(Found) + Send,
) -> Ending {
    metrics.competing(&settings.name);
    let mut candidate = Candidate::new(client, settings, metrics);
    let mut on_acquired = Some(on_acquired);
    loop {
        let attempted = Instant::now();
        match timeout(candidate.remaining(), candidate.attempt()).await {
            Ok(Ok(Attempt::Follows)) if candidate.renewed.is_some() => {
                return Ending::Lost("somebody else holds it".into());
            }
            Ok(Ok(Attempt::Leads | Attempt::Follows | Attempt::Contended)) => {}
            Ok(Err(error)) => candidate.warn(&error),
            Err(_) => tracing::warn!(
                lease = candidate.settings.name,
                "the API server did not respond to a lease request"
            ),
        }
        if candidate.remaining().is_zero() {
            return Ending::Lost("it could not be renewed in time".into());
        }
        if candidate.renewed.is_some()
            && let Some(acquired) = on_acquired.take()
        {
            candidate.announce();
            acquired(candidate.found.clone());
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(candidate.pause(attempted)) => {}
            () = stopped(stop.clone()) => {
                if candidate.renewed.is_some() {
                    release(client, &candidate.settings, &candidate.elector).await;
                }
                return Ending::Stopped;
            }
        }
    }
}

/// The result of an attempt.
enum Attempt {
    /// The lease is ours.
    Leads,
    /// Another replica holds it.
    Follows,
    /// Another client wrote it between our read and our write: read again.
    Contended,
}

/// The elector, its client and the last known lease.
struct Candidate<'a> {
    client: &'a Client,
    metrics: &'a Metrics,
    settings: Settings,
    elector: Elector,
    started: Instant,
    /// When the last successful write was sent.
    renewed: Option<Instant>,
    /// The lease as stored by that write. Renewals need no read until another client writes it.
    held: Option<Value>,
    /// The last state of the lease before we became leader.
    found: Found,
}

impl<'a> Candidate<'a> {
    fn new(client: &'a Client, settings: Settings, metrics: &'a Metrics) -> Self {
        Self {
            client,
            metrics,
            elector: Elector::new(settings.clone()),
            settings,
            started: Instant::now(),
            renewed: None,
            held: None,
            found: Found::of(None),
        }
    }

    /// Time until the renew deadline; zero for a leader that must stop.
    fn remaining(&self) -> Duration {
        let deadline = self.settings.renew_deadline;
        self.renewed
            .map_or(deadline, |at| deadline.saturating_sub(at.elapsed()))
    }

    /// Time until the next attempt. A leader renews at a fixed interval, even if responses are slow. Other
    /// candidates wait a full retry period after each response.
    fn pause(&self, attempted: Instant) -> Duration {
        let period = self.settings.retry_period;
        let pause = match self.renewed {
            Some(_) => period.saturating_sub(attempted.elapsed()).min(self.remaining()),
            None => period,
        };
        pause.max(Duration::from_millis(1))
    }

    /// Reads the lease unless it is known, and writes it if the elector decides to.
    async fn attempt(&mut self) -> Result<Attempt, ApiError> {
        let lease = match self.held.take() {
            Some(lease) => Some(lease),
            None => self.read().await?,
        };
        if self.renewed.is_none() {
            self.found = Found::of(lease.as_ref());
        }
        let stored = lease.as_ref().map(Record::of);
        match self
            .elector
            .decide(stored, self.started.elapsed(), self.client.now())
        {
            Decision::Wait => Ok(Attempt::Follows),
            Decision::Write(record) => self.store(lease, &record).await,
        }
    }

    async fn read(&self) -> Result<Option<Value>, ApiError> {
        if self.renewed.is_some() {
            self.metrics.renewed_slowly(&self.settings.name);
        }
        match self.client.get(&path(&self.settings, &self.settings.name)).await {
            Ok(lease) => Ok(Some(lease)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the record, on condition that the lease is unchanged since it was read.
    async fn store(&mut self, lease: Option<Value>, record: &Record) -> Result<Attempt, ApiError> {
        let is_new = lease.is_none();
        let mut lease = lease.unwrap_or_else(|| {
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": self.settings.name, "namespace": self.settings.namespace},
            })
        });
        record.write(&mut lease);
        self.settings.annotate(&mut lease);
        // Other candidates measure from when the server applied the write, which may be long before its response
        // arrives.
        let sent = Instant::now();
        let result = if is_new {
            self.client.create(&path(&self.settings, ""), &lease).await
        } else {
            let path = path(&self.settings, &self.settings.name);
            self.client.replace(&path, &lease).await
        };
        match result {
            Ok(lease) => {
                self.renewed = Some(sent);
                self.held = Some(lease);
                Ok(Attempt::Leads)
            }
            Err(error) if error.is_conflict() || error.is_already_exists() => Ok(Attempt::Contended),
            Err(error) => Err(error),
        }
    }

    /// Emits the event of a new leader, as client-go does, without waiting for it.
    fn announce(&self) {
        let identity = self.settings.identity.clone();
        let text = |pointer: &str| {
            let member = self
                .held
                .as_ref()
                .and_then(|lease| lease.pointer(pointer)?.as_str());
            member.unwrap_or_default().to_owned()
        };
        let lease = ObjectRef {
            api_version: "coordination.k8s.io/v1".into(),
            kind: "Lease".into(),
            namespace: self.settings.namespace.clone(),
            name: self.settings.name.clone(),
            uid: text("/metadata/uid"),
            resource_version: text("/metadata/resourceVersion"),
            field_path: String::new(),
        };
        let note = EventNote::new(&LEADER_ELECTION, format!("{identity} became leader"));
        // The task writes this event and then ends, because its only handle is dropped.
        EventSink::spawn(self.client.clone(), identity)
            .0
            .emit(lease, note);
    }

    /// Logs the error, with advice if the namespace may be missing.
    fn warn(&self, error: &ApiError) {
        let Settings { namespace, name, .. } = &self.settings;
        let advice = if error.is_not_found() {
            format!("; if the namespace is missing: kubectl create namespace {namespace}")
        } else {
            String::new()
        };
        tracing::warn!(lease = name, error = format!("{error}{advice}"), "lease");
    }
}

async fn release(client: &Client, settings: &Settings, elector: &Elector) {
    let freed = async {
        let mut lease: Value = client.get(&path(settings, &settings.name)).await?;
        if let Some(record) = elector.release(&Record::of(&lease), client.now()) {
            record.write(&mut lease);
            client
                .replace::<IgnoredAny>(&path(settings, &settings.name), &lease)
                .await?;
        }
        Ok::<(), ApiError>(())
    };
    match timeout(Duration::from_secs(2), freed).await {
        Ok(Ok(())) => tracing::info!(lease = settings.name, "lease released"),
        Ok(Err(error)) => tracing::warn!(lease = settings.name, %error, "lease not released"),
        Err(_) => tracing::warn!(lease = settings.name, "lease not released in time"),
    }
}

fn path(settings: &Settings, name: &str) -> String {
    let collection = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
        segment(&settings.namespace)
    );
    if name.is_empty() {
        collection
    } else {
        format!("{collection}/{}", segment(name))
    }
}

#[cfg(test)]
mod tests;
