//! The node of a new pod is like that of the last one of its name: what a PersistentPodState has recorded of it
//! goes into the node selector of the pod, where it is required, and into its node affinity, where it is preferred.
//!
//! A pod that passes twice is changed once: labels are set again to the same values, and preferences that are there
//! already are not added. Weights that the API server would refuse become the nearest one that it takes, and none
//! below 1: stored objects may have any number, and the API server would refuse the pod.

use std::sync::Arc;

use kruise_api::{
    definition::Kind,
    names::persistentpodstate::INJECTED,
    persistentpodstate::{PersistentPodState, PodState, PreferredTopology},
};
use kruise_plan_kit::injected::is_injected;
use serde_json::{Map, Value, json};

use super::affinity::{object, prefer};
use super::draft::{annotate, controller, entry};
use super::step::{Context, Done, Stop};
use crate::json::text;
use crate::lookup::{Lookup, Stored, readable};

impl Stored for PersistentPodState {
    const KIND: &'static Kind = &kruise_api::persistentpodstate::KIND;

    type All = Vec<Arc<Self>>;

    fn read(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }

    fn collect(objects: Vec<Value>) -> Self::All {
        readable(objects)
    }
}

/// Largest weight of a preference.
const HEAVIEST: i32 = 100;

/// The PersistentPodStates of the namespace. A pod without a controller or without a name has no record, and none
/// are looked up for it.
pub(super) fn known<'a>(pod: &Value, context: &Context<'a>) -> Result<&'a [Arc<PersistentPodState>], Lookup> {
    let name = pod.get("metadata").map_or("", |metadata| text(metadata, "name"));
    if name.is_empty() || controller(pod).is_none() {
        return Ok(&[]);
    }
    context.lookups.list(&context.request.namespace)
}

/// Adds what is recorded for a pod of this name.
pub(super) fn apply(pod: &mut Value, context: &Context<'_>) -> Result<Done, Stop> {
    let states = known(pod, context)?;
    let Some((state, record)) = recorded(pod, states) else {
        return Ok(Done::NOTHING);
    };
    let selector = required(state, record);
    let preferences: Vec<Value> = state
        .spec
        .preferred_persistent_topology
        .iter()
        .filter_map(|one| preference(one, record))
        .collect();
    if selector.is_empty() && preferences.is_empty() {
        return Ok(Done::NOTHING);
    }
    let before = pod.clone();
    if entry(pod, "annotations", INJECTED) != Some(&*state.metadata.name) {
        annotate(pod, INJECTED, state.metadata.name.clone());
    }
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        if !selector.is_empty()
            && let Some(labels) = object(spec, "nodeSelector")
        {
            labels.extend(selector);
        }
        if !preferences.is_empty() {
            prefer(spec, preferences);
        }
    }
    Ok(if *pod == before {
        Done::NOTHING
    } else {
        Done::CHANGED
    })
}

/// The record of the pod's name: of the first PersistentPodState that is for its controller.
fn recorded<'a>(
    pod: &Value,
    states: &'a [Arc<PersistentPodState>],
) -> Option<(&'a PersistentPodState, &'a PodState)> {
    let owner = controller(pod)?;
    let is_for = |state: &&Arc<PersistentPodState>| {
        let target = &state.spec.target_ref;
        state.metadata.deletion_timestamp.is_none() && target.names(&owner.group, &owner.kind, &owner.name)
    };
    let state = states.iter().find(is_for)?;
    let record = state.status.pod_states.get(text(pod.get("metadata")?, "name"))?;
    (!record.node_topology_labels.is_empty()).then_some((state, record))
}

fn required(state: &PersistentPodState, record: &PodState) -> Map<String, Value> {
    let labels = state.spec.required().filter_map(|key| {
        let value = record.node_topology_labels.get(key)?;
        Some((key.to_owned(), value.as_str().into()))
    });
    labels.collect()
}

/// A preference in the form of a pod; `None` if it says nothing.
fn preference(topology: &PreferredTopology, record: &PodState) -> Option<Value> {
    let keys = topology.preference.keys.iter();
    let expressions: Vec<Value> = keys
        .filter_map(|key| {
            let value = record.node_topology_labels.get(key)?;
            Some(json!({"key": key, "operator": "In", "values": [value]}))
        })
        .collect();
    let says_something = topology.weight >= 1 && !expressions.is_empty() && !is_injected("PreferenceDropped");
    says_something.then(
        || json!({"weight": topology.weight.min(HEAVIEST), "preference": {"matchExpressions": expressions}}),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::{LookupResult, Lookups};
    use crate::pod::review;
    use crate::pod::sidecars::Set;
    use crate::{Options, Outcome, Request};
    use kruise_api::podunavailablebudget::PodUnavailableBudget;
    use kruise_api::workloadspread::WorkloadSpread;

    const ZONE: &str = "topology.kubernetes.io/zone";
    const HOST: &str = "kubernetes.io/hostname";

    fn state(change: Value) -> Arc<PersistentPodState> {
        let mut object = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "PersistentPodState",
            "metadata": {"name": "broker", "namespace": "shop"},
            "spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "broker"},
                "requiredPersistentTopology": {"keys": [ZONE]},
                "preferredPersistentTopology": [{"weight": 100, "preference": {"keys": [HOST]}}]},
            "status": {"observedGeneration": 1, "podStates": {"broker-0": {"nodeName": "n",
                "nodeTopologyLabels": {(ZONE): "a", (HOST): "n"}}}},
        });
        merge(&mut object, change);
        Arc::new(PersistentPodState::from_value(object).unwrap())
    }

    fn merge(into: &mut Value, change: Value) {
        let members = match change {
            Value::Object(members) if into.is_object() => members,
            other => return *into = other,
        };
        for (name, value) in members {
            merge(&mut into[&name], value);
        }
    }

    fn pod(spec: Value) -> Value {
        let mut pod = json!({"metadata": {"name": "broker-0", "ownerReferences": [
                {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "broker", "uid": "u", "controller": true}]},
            "spec": {"containers": [{"name": "main", "image": "web:1"}],
                "readinessGates": [{"conditionType": "KruisePodReady"}]}});
        merge(&mut pod["spec"], spec);
        pod
    }

    fn outcome(pod: &Value, states: Option<&[Arc<PersistentPodState>]>) -> Outcome {
        let review_of = json!({"uid": "u", "operation": "CREATE", "namespace": "shop", "object": pod,
            "kind": {"group": "", "version": "v1", "kind": "Pod"}});
        let request = Request::from_review(review_of).unwrap();
        let mut lookups = Lookups::default();
        lookups.insert(Lookup::all::<Set>(""), LookupResult::all::<Set>(Arc::default()));
        lookups.insert(
            Lookup::all::<PodUnavailableBudget>("shop"),
            LookupResult::all::<PodUnavailableBudget>(Vec::new()),
        );
        lookups.insert(
            Lookup::all::<WorkloadSpread>("shop"),
            LookupResult::all::<WorkloadSpread>(Vec::new()),
        );
        if let Some(states) = states {
            lookups.insert(
                Lookup::all::<PersistentPodState>("shop"),
                LookupResult::all::<PersistentPodState>(states.to_vec()),
            );
        }
        review(&request, Options::DEFAULT, &lookups)
    }

    fn injected(pod: &Value, states: &[Arc<PersistentPodState>]) -> Value {
        match outcome(pod, Some(states)) {
            Outcome::Response(response) => response.applied_to(pod),
            outcome => panic!("{outcome:?}"),
        }
    }

    fn term(weight: i32, key: &str, value: &str) -> Value {
        json!({"weight": weight, "preference": {"matchExpressions": [
            {"key": key, "operator": "In", "values": [value]}]}})
    }

    #[test]
    fn a_pod_with_a_record_gets_its_node_selector_preferences_and_annotation() {
        let after = injected(&pod(json!({})), &[state(json!({}))]);
        assert_eq!(after["metadata"]["annotations"], json!({INJECTED: "broker"}));
        assert_eq!(after["spec"]["nodeSelector"], json!({ZONE: "a"}));
        assert_eq!(
            after["spec"]["affinity"],
            json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term(100, HOST, "n")]}})
        );
    }

    #[test]
    fn what_is_required_replaces_the_templates_value_and_the_rest_of_it_stays() {
        let own = json!({"nodeSelector": {ZONE: "b", "disk": "ssd"}, "affinity": {"podAffinity": {}, "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [term(7, "disk", "ssd")]}}});
        let after = injected(&pod(own), &[state(json!({}))]);
        assert_eq!(after["spec"]["nodeSelector"], json!({ZONE: "a", "disk": "ssd"}));
        let affinity = json!({"podAffinity": {}, "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [term(7, "disk", "ssd"), term(100, HOST, "n")]}});
        assert_eq!(after["spec"]["affinity"], affinity);
    }

    #[test]
    fn a_pod_that_passes_twice_is_changed_once() {
        let states = [state(json!({}))];
        let once = injected(&pod(json!({})), &states);
        assert_eq!(injected(&once, &states), once);
    }

    #[test]
    fn a_pod_without_a_record_is_left_as_it_is() {
        let plain = pod(json!({}));
        let mut other_name = plain.clone();
        other_name["metadata"]["name"] = json!("broker-1");
        let mut other_owner = plain.clone();
        other_owner["metadata"]["ownerReferences"][0]["apiVersion"] = json!("apps/v1");
        let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        for (pod, states) in [
            (&plain, vec![]),
            (&plain, vec![state(json!({"status": null}))]),
            (&plain, vec![state(leaving)]),
            (
                &plain,
                vec![state(
                    json!({"status": {"podStates": {"broker-0": {"nodeTopologyLabels": null}}}}),
                )],
            ),
            (&other_name, vec![state(json!({}))]),
            (&other_owner, vec![state(json!({}))]),
        ] {
            assert_eq!(injected(pod, &states), *pod);
        }
    }

    #[test]
    fn a_version_of_the_targets_group_is_not_compared() {
        let older = json!({"spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1alpha1"}}});
        let after = injected(&pod(json!({})), &[state(older)]);
        assert_eq!(after["spec"]["nodeSelector"], json!({ZONE: "a"}));
    }

    #[test]
    fn keys_that_the_record_lacks_are_left_out_and_preferences_without_any_too() {
        let keys = json!({"spec": {"requiredPersistentTopology": {"keys": [ZONE, "none"]},
            "preferredPersistentTopology": [
                {"weight": 3, "preference": {"keys": ["none"]}},
                {"weight": 2, "preference": {"keys": ["none", HOST]}}]}});
        let after = injected(&pod(json!({})), &[state(keys)]);
        assert_eq!(after["spec"]["nodeSelector"], json!({ZONE: "a"}));
        let terms =
            &after["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!(terms, &json!([term(2, HOST, "n")]));
        let none = json!({"spec": {"requiredPersistentTopology": null,
            "preferredPersistentTopology": [{"weight": 3, "preference": {"keys": ["none"]}}]}});
        let plain = pod(json!({}));
        assert_eq!(injected(&plain, &[state(none)]), plain);
    }

    #[test]
    fn weights_that_the_server_refuses_do_not_reach_it() {
        let weighed = |weight: i32| {
            let spec = json!({"spec": {"preferredPersistentTopology": [
                {"weight": weight, "preference": {"keys": [HOST]}}]}});
            let after = injected(&pod(json!({})), &[state(spec)]);
            after["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
                .clone()
        };
        assert_eq!(weighed(i32::MAX), json!([term(100, HOST, "n")]));
        assert_eq!(weighed(1), json!([term(1, HOST, "n")]));
        for weight in [0, -1, i32::MIN] {
            assert_eq!(weighed(weight), Value::Null);
        }
    }

    #[test]
    fn records_are_looked_up_before_any_step_and_only_for_pods_with_a_name_and_a_controller() {
        let missing = Outcome::Missing(vec![Lookup::all::<PersistentPodState>("shop")]);
        assert_eq!(outcome(&pod(json!({})), None), missing);
        let mut unnamed = pod(json!({}));
        unnamed["metadata"]["name"] = json!("");
        let mut free = pod(json!({}));
        free["metadata"]["ownerReferences"] = Value::Null;
        for pod in [unnamed, free] {
            assert!(matches!(outcome(&pod, None), Outcome::Response(_)));
        }
    }
}
