//! What cannot end by itself, told once: a plan that is made again does not repeat it within half an hour.

use kruise_api::names::sidecarterminator::{
    SIDECAR_IGNORE_EXIT_CODE, TERMINATE_SIDECAR, TERMINATE_SIDECAR_WITH_IMAGE,
};
use kruise_plan_kit::{EventNote, Memory, Plan, Why};
use kruise_views::MarkedSidecar;

use super::groups::names;
use super::reasons;

/// No container is a main container.
pub(super) fn no_main(plan: &mut Plan, memory: &Memory) {
    let text = format!(
        "every container of the pod has the variable {TERMINATE_SIDECAR} or {TERMINATE_SIDECAR_WITH_IMAGE}; none is \
         terminated, because the pod has no main container to wait for"
    );
    once(plan, memory, "no-main", text);
}

/// The variables of these sidecars do not go with the node.
pub(super) fn unstoppable(plan: &mut Plan, memory: &Memory, sidecars: &[&MarkedSidecar], is_virtual: bool) {
    let list = list(sidecars);
    let text = if is_virtual {
        format!(
            "sidecar {list} is not terminated: on a virtual node that takes the variable {TERMINATE_SIDECAR_WITH_IMAGE}"
        )
    } else {
        format!(
            "sidecar {list} is not terminated: on a node that is not virtual that takes the variable {TERMINATE_SIDECAR}"
        )
    };
    once(plan, memory, "unstoppable", text);
}

/// These sidecars have not started, and cannot be stopped.
pub(super) fn unstarted(plan: &mut Plan, memory: &Memory, sidecars: &[&MarkedSidecar]) {
    let list = list(sidecars);
    let text = format!("sidecar {list} has not started yet; it is terminated when it has");
    once(plan, memory, "unstarted", text);
}

/// These sidecars began anew after they were stopped.
pub(super) fn restarted(plan: &mut Plan, memory: &Memory, sidecars: &[&MarkedSidecar]) {
    let list = list(sidecars);
    let text = format!(
        "sidecar {list} was terminated and runs again, because its exit code was not 0 and the restart policy of the pod is \
         OnFailure; it is terminated again. With the variable {SIDECAR_IGNORE_EXIT_CODE} the pod ends whatever its exit code is"
    );
    once(plan, memory, "restarted", text);
}

/// Names in the form of the other events.
fn list(sidecars: &[&MarkedSidecar]) -> String {
    format!("[{}]", names(sidecars).join(" "))
}

fn once(plan: &mut Plan, memory: &Memory, key: &str, text: String) {
    plan.why.push(Why::of_set(text.clone()));
    if !memory.attempts.contains_key(key) {
        plan.attempts.push(key.to_owned());
        plan.events
            .push(EventNote::new(&reasons::SIDECAR_NOT_TERMINATED, text));
    }
}
