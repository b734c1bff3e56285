//! Letting a pod go, or holding it where a hook asks for that.

use jiff::Timestamp;
use kruise_api::names::SPECIFIED_DELETE;
use kruise_plan_kit::{
    Chain, Intent, Step, events,
    lifecycle::{self, State},
};
use serde_json::Value;

use super::{claims, members::Member, observe::Observed, writes};

/// How a pod leaves.
pub(super) enum Leave {
    /// This write moves it on.
    Now(Chain),
    /// A hook holds it; nothing to write.
    Held,
}

/// Is the pod's deletion held by the `preDelete` hook?
pub(super) fn is_held(observed: &Observed<'_>, member: &Member<'_>) -> bool {
    let hook = observed
        .set
        .spec
        .lifecycle
        .as_ref()
        .and_then(|lifecycle| lifecycle.pre_delete.as_ref());
    lifecycle::holds(hook, member.pod)
}

/// Deletes a pod, or moves it to `PreparingDelete` while its hook holds it.
pub(super) fn remove(observed: &Observed<'_>, member: &Member<'_>, reason: &str, now: Timestamp) -> Leave {
    if !is_held(observed, member) {
        return Leave::Now(for_good(
            observed,
            writes::delete(member.pod, reason.to_owned()),
            member,
        ));
    }
    if member.state == State::PreparingDelete {
        return Leave::Held;
    }
    let next = (Intent::SetLifecycle, State::PreparingDelete);
    let reason = format!("{reason}; its preDelete hook is asked first");
    let step = writes::turn(observed, member.pod, next, &[], reason, now);
    Leave::Now(writes::chain(vec![step]))
}

/// Deletes a pod so that it comes back on `revision`. A held pod is also marked, so that a shortage of pods does not
/// call it back.
pub(super) fn recreate(
    observed: &Observed<'_>,
    member: &Member<'_>,
    revision: &str,
    reason: &str,
    now: Timestamp,
) -> Chain {
    let pod = member.pod;
    let done = format!(
        "successfully delete pod {} to recreate it for update(revision {revision})",
        pod.name
    );
    let held = is_held(observed, member);
    let mut step = if held {
        let asked: (&[&str], Value) = (&["labels", SPECIFIED_DELETE], "true".into());
        let next = (Intent::RequestDelete, State::PreparingDelete);
        let reason = format!("{reason}; its preDelete hook is asked first");
        writes::turn(observed, pod, next, &[asked], reason, now)
    } else {
        writes::delete(pod, reason.to_owned())
    };
    step.done = Some(writes::event(&events::SUCCESSFUL_RECREATE, done));
    step.failed = Some(writes::failure(
        &events::FAILED_RECREATE,
        format!(
            "failed to delete pod {} for update(revision {revision}): ",
            pod.name
        ),
    ));
    if held {
        writes::chain(vec![step])
    } else {
        for_good(observed, step, member)
    }
}

/// A deletion, and after it those of the pod's claims: the set wants no pod in this place again.
fn for_good(observed: &Observed<'_>, deletion: Step, member: &Member<'_>) -> Chain {
    let mut steps = vec![deletion];
    steps.extend(claims::deletions(observed, member.pod));
    writes::chain(steps)
}
