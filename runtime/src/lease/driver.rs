//! Keeps the lease.

use std::time::Duration;

use kruise_plan_kit::{EventNote, events};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::elector::{Decision, Elector, Record, Settings};
use crate::events::{EventSink, ObjectRef};
use crate::metrics::Metrics;
use crate::shutdown::stopped;
use crate::{ApiError, Client};

/// How leading ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// We were asked to stop, and gave the lease back if we had it.
    Stopped,
    /// The lease could not be renewed in time; stop acting at once.
    Lost(String),
}

/// A lease as somebody found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// `None` if there was none.
    version: Option<String>,
    free: bool,
}

impl Found {
    fn of(lease: Option<&Value>) -> Self {
        let version = lease.and_then(|lease| lease.pointer("/metadata/resourceVersion")?.as_str());
        Self {
            version: version.map(str::to_owned),
            free: lease.is_none_or(|lease| Record::of(lease).holder.is_empty()),
        }
    }

    /// Has nobody led since then, if this is how it was found later?
    pub fn nobody_led_until(&self, later: &Self) -> bool {
        self.free && self == later
    }
}

/// Looks at the lease, without a wish to lead.
pub async fn find(client: &Client, settings: &Settings) -> Result<Found, ApiError> {
    match client.get::<Value>(&path(settings, &settings.name)).await {
        Ok(lease) => Ok(Found::of(Some(&lease))),
        Err(error) if error.is_not_found() => Ok(Found::of(None)),
        Err(error) => Err(error),
    }
}

/// A name no other process has: host name and a random part, as client-go users build it.
pub fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}_{}", host.trim(), uuid::Uuid::new_v4())
}

/// Competes for the lease until told to stop or until it is lost; calls `on_acquired` once, when we lead, with the lease
/// as it was before.
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
        let asked = Instant::now();
        match timeout(candidate.remaining(), candidate.attempt()).await {
            Ok(Ok(Standing::Follows)) if candidate.renewed.is_some() => {
                return Ending::Lost("somebody else holds it".into());
            }
            Ok(Ok(Standing::Leads | Standing::Follows | Standing::Contended)) => {}
            Ok(Err(error)) => candidate.warn(&error),
            Err(_) => tracing::warn!(
                lease = candidate.settings.name,
                "the API server did not answer about the lease"
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
            () = tokio::time::sleep(candidate.pause(asked)) => {}
            () = stopped(stop.clone()) => {
                if candidate.renewed.is_some() {
                    release(client, &candidate.settings, &candidate.elector).await;
                }
                return Ending::Stopped;
            }
        }
    }
}

/// What an attempt came to.
enum Standing {
    /// The lease is ours.
    Leads,
    /// It is somebody else's.
    Follows,
    /// Somebody wrote it between our look and our write: look again.
    Contended,
}

/// The elector and what it knows of the server.
struct Candidate<'a> {
    client: &'a Client,
    metrics: &'a Metrics,
    settings: Settings,
    elector: Elector,
    started: Instant,
    /// When the last successful write was sent.
    renewed: Option<Instant>,
    /// The lease as that write left it: as long as nobody else wrote, renewing takes no look.
    held: Option<Value>,
    /// The lease as it was when we last did not lead.
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

    /// Time in which the next attempt must succeed; zero for a leader that must stop.
    fn remaining(&self) -> Duration {
        let deadline = self.settings.renew_deadline;
        self.renewed
            .map_or(deadline, |at| deadline.saturating_sub(at.elapsed()))
    }

    /// A leader renews at a fixed pace, however slow the answers are; others leave the server a full pause.
    fn pause(&self, asked: Instant) -> Duration {
        let period = self.settings.retry_period;
        let pause = match self.renewed {
            Some(_) => period.saturating_sub(asked.elapsed()).min(self.remaining()),
            None => period,
        };
        pause.max(Duration::from_millis(1))
    }

    /// A look unless we know what is there, and one write if it is our turn.
    async fn attempt(&mut self) -> Result<Standing, ApiError> {
        let lease = match self.held.take() {
            Some(lease) => Some(lease),
            None => self.look().await?,
        };
        if self.renewed.is_none() {
            self.found = Found::of(lease.as_ref());
        }
        let stored = lease.as_ref().map(Record::of);
        match self
            .elector
            .decide(stored, self.started.elapsed(), self.client.now())
        {
            Decision::Wait => Ok(Standing::Follows),
            Decision::Write(record) => self.store(lease, &record).await,
        }
    }

    async fn look(&self) -> Result<Option<Value>, ApiError> {
        if self.renewed.is_some() {
            self.metrics.renewed_slowly(&self.settings.name);
        }
        match self.client.get(&path(&self.settings, &self.settings.name)).await {
            Ok(lease) => Ok(Some(lease)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the record over exactly the lease that is known.
    async fn store(&mut self, lease: Option<Value>, record: &Record) -> Result<Standing, ApiError> {
        let is_new = lease.is_none();
        let mut lease = lease.unwrap_or_else(|| {
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": self.settings.name, "namespace": self.settings.namespace},
            })
        });
        record.write(&mut lease);
        self.settings.annotate(&mut lease);
        // Others count from when the server applied it, which may be long before its answer is here.
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
                Ok(Standing::Leads)
            }
            Err(error) if error.is_conflict() || error.is_already_exists() => Ok(Standing::Contended),
            Err(error) => Err(error),
        }
    }

    /// Writes the event of a new leader, as client-go does, from a task that nothing waits for.
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
        };
        let note = EventNote {
            reason: &events::LEADER_ELECTION,
            message: format!("{identity} became leader"),
        };
        // The task ends with its only handle, once this event is written.
        EventSink::spawn(self.client.clone(), identity)
            .0
            .emit(lease, note);
    }

    /// Logs the error, and what to do if the namespace is what is missing.
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
        Ok(Ok(())) => tracing::info!(lease = settings.name, "lease given back"),
        Ok(Err(error)) => tracing::warn!(lease = settings.name, %error, "lease not given back"),
        Err(_) => tracing::warn!(lease = settings.name, "lease not given back in time"),
    }
}

fn path(settings: &Settings, name: &str) -> String {
    let collection = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
        settings.namespace
    );
    if name.is_empty() {
        collection
    } else {
        format!("{collection}/{name}")
    }
}

#[cfg(test)]
mod tests;
