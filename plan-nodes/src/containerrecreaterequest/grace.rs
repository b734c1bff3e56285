//! The grace period: the pod is out of service before its containers are stopped.

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    containerrecreaterequest::GRACE_MESSAGE,
    names::{
        KRUISE_POD_READY,
        conditions::PRE_RECREATE_GRACE,
        containerrecreaterequest::{READINESS_WRITER, UNREADY_FINALIZER},
    },
};
use kruise_plan_kit::{
    Intent, ObjectWrites, Part, Phase, Step, finalizers,
    injected::is_injected,
    jobs,
    lifecycle::go_time,
    pod_writes::{self, Guard},
    readiness,
};
use kruise_views::PodView;
use serde_json::{Value, json};

use super::snapshot::Snapshot;

/// A request to restart containers is deleted only after its pod is back in service.
const HOLD_REQUEST: Intent = Intent::of_update("hold-request");

/// What the grace period needs now.
pub(super) enum Grace {
    /// The pod has to be out of service first.
    Holds(ObjectWrites),
    /// It is, or cannot be: the period begins. All conditions of the request.
    Begins(Vec<Value>),
    /// There is none, or it has begun.
    Nothing,
}

/// Takes the pod out of service, and once the snapshot shows that, begins the grace period. It begins once.
pub(super) fn begin(snapshot: &Snapshot<'_>, pod: &PodView, now: Timestamp) -> Grace {
    let request = snapshot.request;
    let is_wanted = request.spec.strategy.unready_grace_period_seconds.is_some();
    if !is_wanted || request.status.grace().is_some() {
        return Grace::Nothing;
    }
    if pod.has_gate(KRUISE_POD_READY) {
        let writes = hold(snapshot, pod, now);
        if !writes.steps.is_empty() && !is_injected("GraceBeforeUnready") {
            return Grace::Holds(writes);
        }
    }
    Grace::Begins(conditions(&request.status.conditions, now))
}

/// The finalizer first, so that nothing that is deleted leaves its key behind.
fn hold(snapshot: &Snapshot<'_>, pod: &PodView, now: Timestamp) -> ObjectWrites {
    let metadata = &snapshot.request.metadata;
    let mut steps = Vec::new();
    let intent = HOLD_REQUEST;
    let held = finalizers::write(metadata, snapshot.target(), UNREADY_FINALIZER, true, intent);
    let reason = "its key is taken from the pod before it is deleted";
    steps.extend(held.map(|write| Step::new(write, reason)));
    let unready = readiness::hold(pod, READINESS_WRITER, &snapshot.readiness_key(), now);
    if !unready.is_empty() {
        let body = json!({"status": {"conditions": unready}});
        let reason = "unreadyGracePeriodSeconds: out of service before its containers are stopped";
        let (intent, part) = (Intent::MARK_UNREADY, Part::Status);
        steps.push(pod_writes::patch(
            pod,
            intent,
            part,
            body,
            Guard::Unchanged,
            reason,
        ));
    }
    ObjectWrites::new(Phase::Pods, steps)
}

/// When the period begins: the next whole second, because parts of one are not stored. So it is never too short.
fn beginning(now: Timestamp) -> Timestamp {
    let stored = jobs::stored(now);
    if stored == now {
        return now;
    }
    stored.checked_add(SignedDuration::from_secs(1)).unwrap_or(now)
}

/// The conditions of the request with the one that the agent waits for.
fn conditions(stored: &[Value], now: Timestamp) -> Vec<Value> {
    let is_other = |condition: &&Value| {
        condition
            .get("type")
            .is_none_or(|kind| kind != PRE_RECREATE_GRACE)
    };
    let others = stored.iter().filter(is_other).cloned();
    let own = json!({
        "type": PRE_RECREATE_GRACE, "status": "True", "reason": PRE_RECREATE_GRACE,
        "message": GRACE_MESSAGE, "lastTransitionTime": go_time(beginning(now)),
    });
    others.chain([own]).collect()
}
