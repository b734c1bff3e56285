//! `KruisePodReady`: a condition that several writers may hold False, each under keys of its own.
//!
//! The keys are in the condition's message, a sorted JSON list. The condition is True again when the last key has
//! gone, whoever removed it. Writing the list anew from a stale copy would drop somebody's key: patches built here are
//! right only for the very version of the pod they were built from.

use std::{collections::BTreeSet, fmt::Write as _};

use jiff::Timestamp;
use kruise_api::{
    lifecycle::{Lifecycle, LifecycleHook},
    names::{
        KRUISE_POD_READY,
        conditions::{READINESS_GATES_NOT_READY, READY},
    },
};
use kruise_views::{PodView, Truth};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    injected::is_injected,
    lifecycle::{State, go_time},
};

/// How this writer calls itself in the list.
const WRITER: &str = "Lifecycle";
const BEFORE_DELETION: &str = "preDeleteHook";
const BEFORE_UPDATE: &str = "preUpdateHook";

/// One writer's reason to keep a pod out of service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hold {
    user_agent: String,
    key: String,
}

/// Appends a readiness gate to the specification of a pod, if it is missing. The webhook would add `KruisePodReady`
/// too; pods that have it from the start are right while the webhook is away.
pub fn add_gate(spec: &mut Map<String, Value>, gate: &str) {
    let gates = spec.entry("readinessGates").or_insert_with(|| json!([]));
    if gates.is_null() {
        *gates = json!([]);
    }
    let Some(gates) = gates.as_array_mut() else { return };
    let is_it = |have: &Value| have.get("conditionType").is_some_and(|kind| kind == gate);
    if !gates.iter().any(is_it) {
        gates.push(json!({"conditionType": gate}));
    }
}

/// Do hooks of this set take pods out of service?
pub fn marks(lifecycle: Option<&Lifecycle>) -> bool {
    let hooks = lifecycle.map(|hooks| [&hooks.pre_delete, &hooks.in_place_update]);
    hooks
        .into_iter()
        .flatten()
        .flatten()
        .any(|hook| hook.mark_pod_not_ready)
}

/// The conditions to patch so that the hooks hold a pod in `state` exactly as they ask to; none if they do.
///
/// A pod held before its deletion or its update is out of service if that hook marks pods, and any other pod is not
/// held by hooks: not after an update, nor after a hook that was forgotten. While a pod is being updated a hold stays
/// as it is; the end of the update takes it away.
pub fn settle(pod: &PodView, state: State, lifecycle: Option<&Lifecycle>, now: Timestamp) -> Vec<Value> {
    if !pod.has_gate(KRUISE_POD_READY) || state == State::Foreign {
        return Vec::new();
    }
    let Some(before) = holds(pod) else {
        return Vec::new();
    };
    let marking = |hook: Option<&LifecycleHook>| hook.is_some_and(|hook| hook.mark_pod_not_ready);
    let deletion = lifecycle.and_then(|hooks| hooks.pre_delete.as_ref());
    let update = lifecycle.and_then(|hooks| hooks.in_place_update.as_ref());
    let mut after = before.clone();
    let mut want = |key: &str, wanted: bool| {
        let hold = Hold {
            user_agent: WRITER.into(),
            key: key.into(),
        };
        if wanted {
            after.insert(hold);
        } else if !is_injected("HookKeyLeft") {
            after.remove(&hold);
        }
    };
    want(
        BEFORE_DELETION,
        state == State::PreparingDelete && marking(deletion),
    );
    if state != State::Updating {
        want(BEFORE_UPDATE, state == State::PreparingUpdate && marking(update));
    }
    // A hold of ours under a condition that somebody turned True holds nothing: it is written again.
    let idle = pod.is_true(KRUISE_POD_READY) && after.iter().any(|hold| hold.user_agent == WRITER);
    if after == before && !idle {
        return Vec::new();
    }
    write(pod, &after, now)
}

/// The conditions to patch so that a writer's key keeps the pod out of service; none if it does.
///
/// A condition that is off for a reason that nobody can read is left alone: such a pod is out of service.
pub fn hold(pod: &PodView, writer: &str, key: &str, now: Timestamp) -> Vec<Value> {
    let Some(mut holds) = holds(pod) else {
        return Vec::new();
    };
    let is_new = holds.insert(Hold {
        user_agent: writer.into(),
        key: key.into(),
    });
    // OpenKruise adds a condition without a status, and anybody may have turned it True since.
    let is_off = pod
        .condition(KRUISE_POD_READY)
        .is_some_and(|condition| condition.status == Truth::False);
    if is_off && !is_new {
        return Vec::new();
    }
    write(pod, &holds, now)
}

/// The conditions to patch so that a writer's key does not keep the pod out of service; none if it does not.
pub fn release(pod: &PodView, writer: &str, key: &str, now: Timestamp) -> Vec<Value> {
    let Some(mut holds) = holds(pod) else {
        return Vec::new();
    };
    let was_there = holds.remove(&Hold {
        user_agent: writer.into(),
        key: key.into(),
    });
    if was_there {
        write(pod, &holds, now)
    } else {
        Vec::new()
    }
}

/// The holds on a pod. `None` if the condition is off for a reason that nobody can read: then it is somebody else's.
fn holds(pod: &PodView) -> Option<BTreeSet<Hold>> {
    let Some(condition) = pod.condition(KRUISE_POD_READY) else {
        return Some(BTreeSet::new());
    };
    match serde_json::from_str(&condition.message) {
        Ok(holds) => Some(holds),
        Err(_) if condition.status == Truth::True => Some(BTreeSet::new()),
        Err(_) => None,
    }
}

fn write(pod: &PodView, holds: &BTreeSet<Hold>, now: Timestamp) -> Vec<Value> {
    let truth = if holds.is_empty() {
        Truth::True
    } else {
        Truth::False
    };
    let mut condition = json!({
        "type": KRUISE_POD_READY, "status": format!("{truth:?}"),
        // A set of pairs of strings always serializes.
        "message": serde_json::to_string(holds).unwrap_or_default(),
    });
    if pod
        .condition(KRUISE_POD_READY)
        .is_none_or(|before| before.status != truth)
        && let Some(condition) = condition.as_object_mut()
    {
        condition.insert("lastTransitionTime".into(), go_time(now).into());
    }
    let mut conditions = vec![condition];
    if truth == Truth::False && serves(pod) {
        conditions.push(not_ready(&failing_gates(pod, KRUISE_POD_READY), &go_time(now)));
    }
    conditions
}

/// Is the pod in service, so that a gate that becomes False takes it out?
pub(crate) fn serves(pod: &PodView) -> bool {
    pod.is_true("Ready") && pod.is_true("ContainersReady")
}

/// The pod's own condition, as the kubelet would write it for failing gates.
pub(crate) fn not_ready(message: &str, now: &str) -> Value {
    json!({
        "type": READY, "status": "False", "reason": READINESS_GATES_NOT_READY, "message": message,
        "lastTransitionTime": now,
    })
}

/// The kubelet's words for each gate that is not True once the gate `off` is False.
pub(crate) fn failing_gates(pod: &PodView, off: &str) -> String {
    let mut text = String::with_capacity(128);
    let mut failing = 0;
    for gate in &pod.gates {
        let status = match pod.condition(gate) {
            _ if &**gate == off => Some(Truth::False),
            Some(condition) if condition.status == Truth::True => continue,
            Some(condition) => Some(condition.status),
            None => None,
        };
        text.push_str(if failing == 0 { "" } else { ", " });
        failing += 1;
        // Writing to a string cannot fail.
        let _ = match status {
            None => write!(
                text,
                "corresponding condition of pod readiness gate \"{gate}\" does not exist."
            ),
            Some(status) => write!(
                text,
                "the status of pod readiness gate \"{gate}\" is not \"True\", but {status:?}"
            ),
        };
    }
    if failing == 1 { text } else { format!("[{text}]") }
}

#[cfg(test)]
mod tests {
    use kruise_api::lifecycle::{Lifecycle, LifecycleHook};
    use kruise_views::{ConditionView, PodView, Truth};
    use serde_json::{Value, json};

    use super::{hold, marks, release, settle};
    use crate::{
        inplace::fixture::{condition, now, pod},
        lifecycle::State,
    };

    fn marking() -> Lifecycle {
        let hook = LifecycleHook {
            mark_pod_not_ready: true,
            ..LifecycleHook::default()
        };
        Lifecycle {
            pre_delete: Some(hook.clone()),
            in_place_update: Some(hook),
            ..Lifecycle::default()
        }
    }

    fn held(status: Truth, message: &str) -> PodView {
        let own = ConditionView {
            message: message.into(),
            ..condition("KruisePodReady", status)
        };
        let conditions = [condition("Ready", Truth::False), own];
        PodView {
            conditions: Box::new(conditions),
            ..pod()
        }
    }

    fn settled(pod: &PodView, state: State, lifecycle: &Lifecycle) -> Vec<Value> {
        settle(pod, state, Some(lifecycle), now())
    }

    const DELETION: &str = r#"[{"userAgent":"Lifecycle","key":"preDeleteHook"}]"#;
    const UPDATE: &str = r#"[{"userAgent":"Lifecycle","key":"preUpdateHook"}]"#;

    #[test]
    fn a_marking_hook_takes_a_serving_pod_out_of_service() {
        let conditions = settled(&pod(), State::PreparingDelete, &marking());
        assert_eq!(
            conditions[0],
            json!({"type": "KruisePodReady", "status": "False", "message": DELETION,
                   "lastTransitionTime": "2026-01-02T03:04:05Z"})
        );
        assert_eq!(
            (
                &conditions[1]["type"],
                &conditions[1]["status"],
                &conditions[1]["reason"]
            ),
            (&json!("Ready"), &json!("False"), &json!("ReadinessGatesNotReady"))
        );
        assert_eq!(
            conditions[1]["message"],
            "the status of pod readiness gate \"KruisePodReady\" is not \"True\", but False"
        );
        assert_eq!(
            settled(&pod(), State::PreparingDelete, &Lifecycle::default()),
            [] as [Value; 0]
        );
    }

    #[test]
    fn ready_is_lowered_only_where_it_stands_on_ready_containers() {
        for off in ["Ready", "ContainersReady"] {
            let mut pod = pod();
            pod.conditions
                .iter_mut()
                .find(|have| &*have.kind == off)
                .unwrap()
                .status = Truth::False;
            assert_eq!(
                settled(&pod, State::PreparingUpdate, &marking()).len(),
                1,
                "{off}"
            );
        }
    }

    #[test]
    fn a_missing_condition_is_added_false() {
        let mut new = pod();
        new.conditions = Box::default();
        let conditions = settled(&new, State::PreparingDelete, &marking());
        assert_eq!((conditions.len(), &conditions[0]["status"]), (1, &json!("False")));
    }

    #[test]
    fn a_hold_that_stands_is_not_written_again_and_one_under_a_true_condition_is() {
        assert!(settled(&held(Truth::False, DELETION), State::PreparingDelete, &marking()).is_empty());
        assert!(!settled(&held(Truth::True, DELETION), State::PreparingDelete, &marking()).is_empty());
    }

    #[test]
    fn every_way_back_lets_go_of_both_keys_and_so_does_a_forgotten_hook() {
        for message in [DELETION, UPDATE] {
            for state in [State::None, State::PreparingNormal, State::Normal, State::Updated] {
                let conditions = settled(&held(Truth::False, message), state, &marking());
                assert_eq!(
                    (&conditions[0]["status"], &conditions[0]["message"]),
                    (&json!("True"), &json!("[]")),
                    "{message} {state:?}"
                );
            }
        }
        for (message, state) in [
            (DELETION, State::PreparingDelete),
            (UPDATE, State::PreparingUpdate),
        ] {
            for lifecycle in [None, Some(&Lifecycle::default())] {
                let conditions = settle(&held(Truth::False, message), state, lifecycle, now());
                assert_eq!(conditions[0]["status"], "True", "{state:?}");
            }
        }
        assert!(settle(&held(Truth::False, UPDATE), State::Updating, None, now()).is_empty());
    }

    #[test]
    fn another_writers_key_keeps_the_pod_out_of_service() {
        let other = r#"{"userAgent":"ContainerRecreateRequest","key":"shop/restart"}"#;
        let both = format!("[{other},{}]", &UPDATE[1..UPDATE.len() - 1]);
        let conditions = settled(&held(Truth::False, &both), State::Normal, &marking());
        assert_eq!(
            conditions,
            [json!({"type": "KruisePodReady", "status": "False", "message": format!("[{other}]")})]
        );
        let conditions = settled(
            &held(Truth::False, &format!("[{other}]")),
            State::PreparingUpdate,
            &marking(),
        );
        assert_eq!(conditions[0]["message"], both);
        assert!(
            settled(
                &held(Truth::False, &format!("[{other}]")),
                State::Normal,
                &marking()
            )
            .is_empty()
        );
    }

    #[test]
    fn a_condition_that_is_off_for_an_unreadable_reason_is_left_alone() {
        assert!(settled(&held(Truth::False, "by hand"), State::Normal, &marking()).is_empty());
        assert!(settled(&held(Truth::False, ""), State::PreparingDelete, &marking()).is_empty());
        assert_eq!(
            settled(&held(Truth::True, "by hand"), State::PreparingDelete, &marking()).len(),
            1
        );
    }

    #[test]
    fn a_pod_without_the_gate_is_never_marked() {
        let ungated = PodView {
            gates: Box::default(),
            ..pod()
        };
        assert!(settled(&ungated, State::PreparingDelete, &marking()).is_empty());
        assert!(marks(Some(&marking())) && !marks(None) && !marks(Some(&Lifecycle::default())));
    }

    const REQUEST: &str = r#"[{"userAgent":"ContainerRecreateRequest","key":"shop/restart"}]"#;

    fn with_key(pod: &PodView) -> Vec<Value> {
        hold(pod, "ContainerRecreateRequest", "shop/restart", now())
    }

    fn without_key(pod: &PodView) -> Vec<Value> {
        release(pod, "ContainerRecreateRequest", "shop/restart", now())
    }

    #[test]
    fn a_key_takes_a_pod_out_of_service_once_and_is_always_false() {
        let conditions = with_key(&pod());
        assert_eq!(
            (
                &conditions[0]["status"],
                &conditions[0]["message"],
                conditions.len()
            ),
            (&json!("False"), &json!(REQUEST), 2)
        );
        assert!(with_key(&held(Truth::False, REQUEST)).is_empty());
        // OpenKruise's condition without a status, and one that somebody turned True.
        for status in [Truth::Unknown, Truth::True] {
            assert_eq!(
                with_key(&held(status, REQUEST))[0]["status"],
                "False",
                "{status:?}"
            );
        }
        let mut new = pod();
        new.conditions = Box::default();
        assert_eq!(with_key(&new)[0]["status"], "False", "without a condition");
        assert!(with_key(&held(Truth::False, "by hand")).is_empty());
    }

    #[test]
    fn only_the_last_key_puts_a_pod_back_into_service() {
        let other = &DELETION[1..DELETION.len() - 1];
        let both = format!("[{},{other}]", &REQUEST[1..REQUEST.len() - 1]);
        assert_eq!(with_key(&held(Truth::False, DELETION))[0]["message"], both);
        let left = without_key(&held(Truth::False, &both));
        assert_eq!(
            (&left[0]["status"], &left[0]["message"]),
            (&json!("False"), &json!(DELETION))
        );
        let last = without_key(&held(Truth::False, REQUEST));
        assert_eq!(
            (&last[0]["status"], &last[0]["message"], last.len()),
            (&json!("True"), &json!("[]"), 1)
        );
        for message in [DELETION, "by hand", "[]"] {
            assert!(without_key(&held(Truth::False, message)).is_empty(), "{message}");
        }
    }
}
