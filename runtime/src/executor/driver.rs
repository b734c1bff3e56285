//! Sends the calls of a run.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kruise_plan_kit::{Part, Target};
use kube_cache::Version;

use super::{Call, Report, Run, Stored};
use crate::{ApiError, Client, Served};

/// What is asked before each call.
pub struct World<'w> {
    /// Is the run to end early? Objects under way end in order.
    pub should_stop: &'w (dyn Fn() -> bool + Sync),
    /// Version of the object with this uid, as the caches show it.
    pub newest: &'w (dyn Fn(&Target, &str) -> Option<Version> + Sync),
}

/// Runs to the end. `served` says in which version each resource goes over the wire.
///
/// Do not drop the future while calls are in flight: their outcome would be lost. To stop early, call [`Run::stop`]
/// before, or let the world say so.
pub async fn execute(client: &Client, served: &Served, mut run: Run, world: &World<'_>) -> Report {
    let mut pending = FuturesUnordered::new();
    loop {
        if (world.should_stop)() {
            run.stop();
        }
        // What is not sent makes room for others.
        loop {
            let due = run.due();
            if due.is_empty() {
                break;
            }
            for (id, call) in due {
                if run.is_overtaken(id, world.newest) {
                    run.overtaken(id);
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
        Call::Get { target } => client.get(&served.path(&target, Part::Main)?).await,
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
