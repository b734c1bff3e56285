//! The patch that ends an in-place update, or brings a new pod into service.

use jiff::Timestamp;
use kruise_api::{
    lifecycle::Lifecycle,
    names::{IN_PLACE_UPDATE_READY, KRUISE_POD_READY},
};
use kruise_views::{PodView, Truth};
use serde_json::{Value, json};

use crate::{
    lifecycle::{State, go_time},
    put, readiness,
};

/// What a pod needs to enter, or come back into, service.
#[derive(Clone, Debug, PartialEq)]
pub struct Finish {
    /// Strategic merge patch for the status endpoint, metadata included.
    pub patch: Value,
    /// Does it change a condition, or only metadata?
    pub conditions: bool,
    /// Is it right for this very version of the pod only?
    pub exact: bool,
}

/// Builds the patch that sets missing readiness conditions and moves the lifecycle on; `None` if all is as it should
/// be. `next` is the lifecycle state to enter, if any; the hooks of `lifecycle` hold and let go of the pod accordingly.
pub fn finish(
    pod: &PodView,
    next: Option<State>,
    lifecycle: Option<&Lifecycle>,
    now: Timestamp,
) -> Option<Finish> {
    let state = next.unwrap_or_else(|| State::of(pod));
    let mut conditions = readiness::settle(pod, state, lifecycle, now);
    let exact = !conditions.is_empty();
    if pod.has_gate(IN_PLACE_UPDATE_READY) && !settled(pod) {
        conditions.push(json!({
            "type": IN_PLACE_UPDATE_READY, "status": "True", "reason": null, "message": null,
            "lastTransitionTime": go_time(now),
        }));
    }
    if !exact && pod.has_gate(KRUISE_POD_READY) && pod.condition(KRUISE_POD_READY).is_none() {
        conditions
            .push(json!({"type": KRUISE_POD_READY, "status": "True", "lastTransitionTime": go_time(now)}));
    }
    if conditions.is_empty() && next.is_none() {
        return None;
    }
    let mut patch = json!({});
    if let Some(next) = next {
        put(&mut patch, &["metadata"], next.metadata(now));
    }
    let changed = !conditions.is_empty();
    if changed {
        put(&mut patch, &["status", "conditions"], conditions.into());
    }
    Some(Finish {
        patch,
        conditions: changed,
        exact,
    })
}

fn settled(pod: &PodView) -> bool {
    pod.condition(IN_PLACE_UPDATE_READY).is_some_and(|condition| {
        condition.status == Truth::True && condition.reason.is_empty() && condition.message.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use kruise_views::Truth;

    use super::finish;
    use crate::{
        inplace::fixture::{condition, now, pod},
        lifecycle::State,
    };

    #[test]
    fn a_new_pod_gets_both_conditions_and_its_state_in_one_patch() {
        let mut new = pod();
        new.conditions = Box::default();
        let finish = finish(&new, Some(State::Normal), None, now()).unwrap();
        assert_eq!(finish.patch["status"]["conditions"].as_array().unwrap().len(), 2);
        assert_eq!(
            finish.patch["metadata"]["labels"]["lifecycle.apps.kruise.io/state"],
            "Normal"
        );
    }

    #[test]
    fn a_pod_that_is_as_it_should_be_gets_nothing() {
        assert_eq!(finish(&pod(), None, None, now()), None);
    }

    #[test]
    fn a_pod_readiness_condition_that_somebody_turned_off_is_left_alone() {
        let mut held = pod();
        held.conditions = Box::new([
            condition("InPlaceUpdateReady", Truth::True),
            condition("KruisePodReady", Truth::False),
        ]);
        assert_eq!(finish(&held, None, None, now()), None);
    }
}
