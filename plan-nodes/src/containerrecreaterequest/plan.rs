//! The order of decisions.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::containerrecreaterequest::phase;
use kruise_plan_kit::{Plan, StatusPatch, jobs};
use kruise_views::PodView;
use serde_json::{Map, Value, json};

use super::{
    containers, ended, explain,
    grace::{self, Grace},
    pod::{self, Known},
    snapshot::Snapshot,
};

/// How long a new request waits for the first report of an agent, in seconds.
pub const NO_RESPONSE_SECONDS: i64 = 60;
/// How long a plan waits for the cache to have a pod that exists.
const LATE: Duration = Duration::from_secs(2);

const POD_GONE: &str = "pod has gone";
const NO_RESPONSE: &str = "daemon has not responded for a long time";
const TOO_LATE: &str = "recreating has exceeded the activeDeadlineSeconds";

/// Decides what a request needs now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let request = snapshot.request;
    let mut plan = if request.metadata.deletion_timestamp.is_some() || request.has_ended() {
        ended::plan(snapshot, now)
    } else {
        match pod::find(snapshot) {
            Known::Here(pod) => unended(snapshot, pod, now),
            Known::Gone => complete(snapshot, POD_GONE, now),
            Known::Late => Plan {
                requeue: Some(LATE),
                ..Plan::default()
            },
            Known::Asked(need) => Plan {
                needs: vec![need],
                ..Plan::default()
            },
        }
    };
    explain::explain(snapshot, &mut plan, now);
    plan
}

/// A request whose pod is there.
fn unended(snapshot: &Snapshot<'_>, pod: &PodView, now: Timestamp) -> Plan {
    let request = snapshot.request;
    // An object without a time of creation comes from no server.
    let created = request.metadata.creation_timestamp.unwrap_or(now);
    let mut plan = Plan::default();
    if request.status.phase.is_empty() {
        match jobs::left(created, NO_RESPONSE_SECONDS, now) {
            None => return complete(snapshot, NO_RESPONSE, now),
            left => plan.requeue_after(left),
        }
    }
    if let Some(seconds) = request.spec.active_deadline_seconds {
        match jobs::left(created, seconds, now) {
            None => return complete(snapshot, TOO_LATE, now),
            left => plan.requeue_after(left),
        }
    }
    if request.status.phase == phase::RECREATING {
        recreate(snapshot, pod, &mut plan, now);
    }
    plan
}

/// The agent has begun: it needs to know what runs, and that the pod is out of service.
fn recreate(snapshot: &Snapshot<'_>, pod: &PodView, plan: &mut Plan, now: Timestamp) {
    let mut changed = Map::new();
    match grace::begin(snapshot, pod, now) {
        Grace::Holds(writes) => {
            // A status would be for the version of the request from before these writes.
            plan.writes.push(writes);
            return;
        }
        Grace::Begins(conditions) => {
            changed.insert("conditions".to_owned(), conditions.into());
        }
        Grace::Nothing => {}
    }
    if let Some(entries) = containers::changed(snapshot, pod) {
        changed.insert("containerStatusSnapshot".to_owned(), json!(entries));
    }
    let urgent = changed.contains_key("conditions");
    plan.status = report(snapshot, changed, urgent);
}

/// Ends the request.
fn complete(snapshot: &Snapshot<'_>, message: &str, now: Timestamp) -> Plan {
    let time = kruise_plan_kit::lifecycle::go_time(now);
    let members: [(&str, Value); 3] = [
        ("phase", phase::COMPLETED.into()),
        ("completionTime", time.into()),
        ("message", message.into()),
    ];
    let changed = members.into_iter().map(|(name, value)| (name.to_owned(), value));
    Plan {
        status: report(snapshot, changed.collect(), true),
        ..Plan::default()
    }
}

fn report(snapshot: &Snapshot<'_>, changed: Map<String, Value>, urgent: bool) -> Option<StatusPatch> {
    if changed.is_empty() {
        return None;
    }
    Some(StatusPatch {
        target: snapshot.target(),
        version: snapshot.request.metadata.resource_version.clone(),
        patch: json!({ "status": changed }),
        urgent,
    })
}
