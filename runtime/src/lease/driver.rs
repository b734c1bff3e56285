//! Keeps the lease.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::elector::{Decision, Elector, Record, Settings};
use crate::{ApiError, Client};

/// How leading ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// We were asked to stop, and gave the lease back if we had it.
    Stopped,
    /// The lease could not be renewed in time; stop acting at once.
    Lost(String),
}

/// A name no other process has: host name and a random part, as client-go users build it.
pub fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}_{}", host.trim(), uuid::Uuid::new_v4())
}

/// Competes for the lease until told to stop or until it is lost; calls `on_acquired` once, when we lead.
pub async fn lead(
    client: &Client,
    settings: Settings,
    mut stop: watch::Receiver<bool>,
    on_acquired: impl FnOnce() + Send,
) -> Ending {
    let started = Instant::now();
    let mut elector = Elector::new(settings.clone());
    let mut on_acquired = Some(on_acquired);
    let mut renewed: Option<Instant> = None;
    loop {
        let budget = renewed.map_or(settings.renew_deadline, |at| {
            settings.renew_deadline.saturating_sub(at.elapsed())
        });
        match tokio::time::timeout(budget, attempt(client, &settings, &mut elector, started)).await {
            Ok(Ok(Standing::Leads)) => {
                renewed = Some(Instant::now());
                if let Some(acquired) = on_acquired.take() {
                    acquired();
                }
            }
            Ok(Ok(Standing::Follows)) if renewed.is_some() => {
                return Ending::Lost("somebody else holds it".into());
            }
            Ok(Ok(Standing::Follows | Standing::Contended)) => {}
            Ok(Err(error)) => {
                tracing::warn!(lease = settings.name, error = advice(&error, &settings), "lease");
            }
            Err(_) => tracing::warn!(
                lease = settings.name,
                "the API server did not answer about the lease"
            ),
        }
        if renewed.is_some_and(|at| at.elapsed() >= settings.renew_deadline) {
            return Ending::Lost("it could not be renewed in time".into());
        }
        let deadline = renewed.map_or(settings.retry_period, |at| {
            settings.renew_deadline.saturating_sub(at.elapsed())
        });
        let pause = settings.retry_period.min(deadline).max(Duration::from_millis(1));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            // An error means that nobody can ask for a stop any more, which only happens at the end.
            _ = stop.wait_for(|stop| *stop) => {
                if renewed.is_some() {
                    release(client, &settings, &elector).await;
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

/// One look, and one write if it is our turn.
async fn attempt(
    client: &Client,
    settings: &Settings,
    elector: &mut Elector,
    started: Instant,
) -> Result<Standing, ApiError> {
    let lease = match client.get::<Value>(&path(settings, &settings.name)).await {
        Ok(lease) => Some(lease),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error),
    };
    match elector.decide(
        lease.as_ref().map(Record::of),
        started.elapsed(),
        Timestamp::now(),
    ) {
        Decision::Wait => Ok(Standing::Follows),
        Decision::Write(record) => store(client, settings, lease, &record).await,
    }
}

/// Writes the record over exactly the lease that was looked at.
async fn store(
    client: &Client,
    settings: &Settings,
    lease: Option<Value>,
    record: &Record,
) -> Result<Standing, ApiError> {
    let is_new = lease.is_none();
    let mut lease = lease.unwrap_or_else(|| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": settings.name, "namespace": settings.namespace},
        })
    });
    record.write(&mut lease);
    let result = if is_new {
        client.create::<IgnoredAny>(&path(settings, ""), &lease).await
    } else {
        client
            .replace::<IgnoredAny>(&path(settings, &settings.name), &lease)
            .await
    };
    match result {
        Ok(_) => Ok(Standing::Leads),
        Err(error) if error.is_conflict() || error.is_already_exists() => Ok(Standing::Contended),
        Err(error) => Err(error),
    }
}

async fn release(client: &Client, settings: &Settings, elector: &Elector) {
    let freed = async {
        let mut lease: Value = client.get(&path(settings, &settings.name)).await?;
        if let Some(record) = elector.release(&Record::of(&lease), Timestamp::now()) {
            record.write(&mut lease);
            client
                .replace::<IgnoredAny>(&path(settings, &settings.name), &lease)
                .await?;
        }
        Ok::<(), ApiError>(())
    };
    match tokio::time::timeout(Duration::from_secs(2), freed).await {
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

/// The error, and what to do if the namespace is what is missing.
fn advice(error: &ApiError, settings: &Settings) -> String {
    if error.is_not_found() {
        let namespace = &settings.namespace;
        return format!("{error}; if the namespace is missing: kubectl create namespace {namespace}");
    }
    error.to_string()
}
