//! The readiness gate of pods that Kruise workloads make.
//!
//! Kubelet fixes a pod's readiness gates at creation, so this is the only moment.

use kruise_api::names::{APPS_GROUP, KRUISE_POD_READY};
use serde_json::{Value, json};

use super::draft::list;
use super::step::{Context, Done, Stop};
use crate::Response;

/// Appends the readiness gate `KruisePodReady` to a new pod whose controller is in group `apps.kruise.io`, or to any
/// new pod with [`crate::Options::readiness_gate_for_all`].
pub(super) fn apply(pod: &mut Value, context: &Context<'_>) -> Result<Done, Stop> {
    if !context.options.readiness_gate_for_all && !controlled_by_kruise(pod) {
        return Ok(Done::NOTHING);
    }
    let gates = pod.get_mut("spec").and_then(|spec| list(spec, "readinessGates"));
    let Some(gates) = gates else {
        return Err(Stop::Deny(Response::undecodable(
            "spec.readinessGates must be a list",
        )));
    };
    if gates.iter().any(is_ours) {
        return Ok(Done::NOTHING);
    }
    gates.push(json!({"conditionType": KRUISE_POD_READY}));
    Ok(Done::CHANGED)
}

fn is_ours(gate: &Value) -> bool {
    gate.get("conditionType").and_then(Value::as_str) == Some(KRUISE_POD_READY)
}

fn controlled_by_kruise(pod: &Value) -> bool {
    let owners = pod.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let controller = owners
        .into_iter()
        .flatten()
        .find(|owner| owner.get("controller") == Some(&Value::Bool(true)));
    controller
        .and_then(|owner| owner.get("apiVersion")?.as_str()?.split_once('/'))
        .is_some_and(|(group, _)| group == APPS_GROUP)
}

#[cfg(test)]
mod tests {
    use crate::pod::sidecars::Set;
    use kruise_api::podunavailablebudget::PodUnavailableBudget;
    use kruise_api::workloadspread::WorkloadSpread;
    use std::sync::Arc;

    use super::*;
    use crate::lookup::{Lookup, LookupResult, Lookups};
    use crate::pod::review;
    use crate::{Operation, Options, Outcome, Request};

    const FOR_ALL: Options = Options {
        readiness_gate_for_all: true,
        ..Options::DEFAULT
    };

    fn pod(owner: &str, controller: bool) -> Value {
        json!({
            "metadata": {"ownerReferences": [
                {"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "controller": false},
                {"apiVersion": owner, "kind": "Any", "controller": controller},
            ]},
            "spec": {"containers": [], "newerThanUs": [1]},
        })
    }

    fn request(object: Value) -> Request {
        let review =
            json!({"kind": {"version": "v1", "kind": "Pod"}, "operation": "CREATE", "object": object});
        Request::from_review(review).unwrap()
    }

    fn mutate(request: &Request, options: Options) -> Response {
        let no_sets = LookupResult::all::<Set>(Arc::default());
        let lookups = Lookups::from_iter([
            (Lookup::all::<Set>(""), no_sets),
            (
                Lookup::all::<PodUnavailableBudget>(String::new()),
                LookupResult::all::<PodUnavailableBudget>(Vec::new()),
            ),
            (
                Lookup::all::<WorkloadSpread>(String::new()),
                LookupResult::all::<WorkloadSpread>(Vec::new()),
            ),
        ]);
        match review(request, options, &lookups) {
            Outcome::Response(response) => response,
            other => panic!("{other:?}"),
        }
    }

    fn patch(object: Value, options: Options) -> Option<Value> {
        match mutate(&request(object), options) {
            Response::Allow { patch, .. } => patch.map(|patch| serde_json::from_str(&patch).unwrap()),
            denied @ Response::Deny { .. } => panic!("{denied:?}"),
        }
    }

    #[test]
    fn pods_of_kruise_workloads_get_the_gate() {
        let gate = json!({"conditionType": "KruisePodReady"});
        let inserted = |op| json!([{"op": op, "path": "/spec/readinessGates", "value": [gate]}]);
        let options = Options::default();
        for version in ["apps.kruise.io/v1alpha1", "apps.kruise.io/v9"] {
            assert_eq!(patch(pod(version, true), options), Some(inserted("add")));
        }
        let mut with_null = pod("apps.kruise.io/v1beta1", true);
        with_null["spec"]["readinessGates"] = Value::Null;
        assert_eq!(patch(with_null, options), Some(inserted("replace")));
        let mut with_other = pod("apps.kruise.io/v1beta1", true);
        with_other["spec"]["readinessGates"] = json!([{"conditionType": "other"}]);
        let appended = json!([{"op": "add", "path": "/spec/readinessGates/1", "value": gate}]);
        assert_eq!(patch(with_other, options), Some(appended));
    }

    #[test]
    fn the_gate_is_there_once() {
        let mut present = pod("apps.kruise.io/v1beta1", true);
        present["spec"]["readinessGates"] =
            json!([{"conditionType": "KruisePodReady"}, {"conditionType": "b"}]);
        assert_eq!(patch(present, FOR_ALL), None);
    }

    #[test]
    fn pods_of_others_get_it_only_when_all_shall() {
        for other in [
            pod("apps/v1", true),
            pod("apps.kruise.io/v1beta1", false),
            pod("apps.kruise.io.evil/v1", true),
            json!({"spec": {}}),
        ] {
            assert_eq!(patch(other.clone(), Options::default()), None, "{other}");
            assert!(patch(other, FOR_ALL).is_some());
        }
    }

    #[test]
    fn only_creation_of_the_pod_itself_counts() {
        let mut update = request(pod("apps.kruise.io/v1beta1", true));
        update.operation = Operation::Update;
        assert_eq!(mutate(&update, FOR_ALL), Response::ALLOW);
        let mut eviction = request(pod("apps.kruise.io/v1beta1", true));
        eviction.sub_resource = "eviction".into();
        assert_eq!(mutate(&eviction, FOR_ALL), Response::ALLOW);
    }

    #[test]
    fn an_object_that_is_no_pod_is_turned_down() {
        for object in [
            Value::Null,
            json!([]),
            json!({"spec": 1}),
            json!({"spec": {"readinessGates": 1}}),
        ] {
            let denied = mutate(&request(object), FOR_ALL);
            assert!(matches!(denied, Response::Deny { code: 400, .. }), "{denied:?}");
        }
    }
}
