//! Sends the calls of a run.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kruise_plan_kit::{Part, Target};
use kube_cache::Version;
use serde::Deserialize;
use serde_json::Value;

use super::{Call, Report, Run, Stored};
use crate::{ApiError, Client, Served};

/// The conditions of a run, evaluated before each call.
pub struct Conditions<'w> {
    /// Whether the run must end early. Objects that have started are completed.
    pub should_stop: &'w (dyn Fn() -> bool + Sync),
    /// Version of the object with this uid in the caches.
    pub newest: &'w (dyn Fn(&Target, &str) -> Option<Version> + Sync),
}

/// Executes a run to its end. `served` is the version of each resource in requests.
///
/// Do not drop the future while calls are in flight: their results would be lost. To stop early, return true from
/// [`Conditions::should_stop`].
pub async fn execute(client: &Client, served: &Served, mut run: Run, conditions: &Conditions<'_>) -> Report {
    let mut pending = FuturesUnordered::new();
    loop {
        if (conditions.should_stop)() {
            run.stop();
        }
        // A call that is not sent frees its place for another.
        loop {
            let due = run.due();
            if due.is_empty() {
                break;
            }
            for (id, call) in due {
                if run.is_outdated(id, conditions.newest) {
                    run.skip_outdated(id);
                } else {
                    pending.push(async move { (id, send(client, served, call).await) });
                }
            }
        }
        let Some((id, outcome)) = pending.next().await else {
            return run.finish();
        };
        run.reply(id, outcome);
    }
}

async fn send(client: &Client, served: &Served, call: Call) -> Result<Stored, ApiError> {
    match call {
        Call::Create { mut target, body } => {
            target.name.clear();
            let path = served.path(&target, Part::Main)?;
            let body = served.object(target.resource, body)?;
            client.create(&path, &body).await
        }
        Call::Get { target, value } => {
            let path = served.path(&target, Part::Main)?;
            let Some(pointer) = value else {
                return client.get(&path).await;
            };
            let object: Value = client.get(&path).await?;
            let stored =
                Stored::deserialize(&object).map_err(|error| ApiError::Malformed(error.to_string()))?;
            Ok(Stored {
                value: object.pointer(&pointer).cloned(),
                ..stored
            })
        }
        Call::Patch {
            target,
            part,
            content_type,
            body,
        } => {
            let path = served.path(&target, part)?;
            let body = served.patch(target.resource, part, content_type, body)?;
            client.patch(&path, content_type, &body).await
        }
        Call::Delete { target, body } => client.delete(&served.path(&target, Part::Main)?, &body).await,
    }
}
