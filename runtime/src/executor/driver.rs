//! Sends the calls of a run.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kruise_plan_kit::Part;

use super::{Call, Report, Run, Stored};
use crate::client::path_of;
use crate::{ApiError, Client};

/// Runs to the end. `clonesets` is the served version of `apps.kruise.io/clonesets`.
///
/// Do not drop the future while calls are in flight: their outcome would be lost. To stop early, call [`Run::stop`]
/// before, or let `should_stop` answer true; chains under way then end in order.
pub async fn execute(
    client: &Client,
    clonesets: &str,
    mut run: Run,
    should_stop: impl Fn() -> bool,
) -> Report {
    let mut pending = FuturesUnordered::new();
    loop {
        if should_stop() {
            run.stop();
        }
        for (id, call) in run.due() {
            pending.push(async move { (id, send(client, clonesets, call).await) });
        }
        let Some((id, outcome)) = pending.next().await else {
            return run.finish();
        };
        run.reply(id, outcome);
    }
}

async fn send(client: &Client, clonesets: &str, call: Call) -> Result<Stored, ApiError> {
    match call {
        Call::Create { mut target, body } => {
            target.name.clear();
            client
                .create(&path_of(&target, Part::Main, clonesets), &body)
                .await
        }
        Call::Get { target } => client.get(&path_of(&target, Part::Main, clonesets)).await,
        Call::Patch {
            target,
            part,
            content_type,
            body,
        } => {
            client
                .patch(&path_of(&target, part, clonesets), content_type, &body)
                .await
        }
        Call::Delete { target, body } => {
            client
                .delete(&path_of(&target, Part::Main, clonesets), &body)
                .await
        }
    }
}
