//! PersistentPodStates: whose pods come back, and in what respect.
//!
//! | Field | Rule |
//! |---|---|
//! | `targetRef` | complete; a StatefulSet is one of the two groups; never changes |
//! | `requiredPersistentTopology`, `preferredPersistentTopology` | one of them at least |
//! | `preferredPersistentTopology[].weight` | 1 to 100, as in the affinity of a pod |
//! | `targetRef` of a new object | another kind is listed in ConfigMap `kruise-configuration`; no other object of the kind is about the workload |

use kruise_api::names;
use kruise_api::persistentpodstate::PersistentPodState;
use kube_schema::validate::Errors;
use serde_json::Value;

use super::{KindWebhooks, Scope, target};
use crate::json::{integer, items, present};
use crate::lookup::Reader;
use crate::pod::sidecars::Reach;
use crate::widening::PODS_OF_SETS;
use crate::widening::{StoredSoon, Widening};

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    validating: Some("vpersistentpodstate.kb.io"),
    codes: (400, 400),
    newest: true,
    rules,
    changes,
    others,
    widens,
    may_widen: true,
    ..KindWebhooks::of(&kruise_api::persistentpodstate::KIND)
};

/// Webhooks must be called for the pods of the target of a new object. The target does not change.
fn widens(state: &Value, scope: &Scope<'_>) -> Vec<Widening> {
    if scope.old.is_some() {
        return Vec::new();
    }
    let Ok(mut state) = PersistentPodState::from_value(state.clone()) else {
        return Vec::new();
    };
    scope.namespace.clone_into(&mut state.metadata.namespace);
    let object = StoredSoon::of(scope.kind, &state.metadata);
    let reach = Reach::of_pod_state(&state);
    let widening = reach.map(|reach| Widening::of_pods(PODS_OF_SETS, object, [reach]));
    widening.into_iter().collect()
}

/// Where administrators list further kinds.
const LISTED: &str = names::persistentpodstate::WORKLOADS;

fn rules(errors: &mut Errors, object: &Value, _: &Scope<'_>) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let found = spec.get("targetRef").unwrap_or(&Value::Null);
    target::complete(
        errors,
        found,
        "empty TargetReference is not valid for PersistentPodState.",
    );
    if let Some((group, "StatefulSet")) = target::group_kind(found)
        && !["apps", "apps.kruise.io"].contains(&group)
    {
        let detail = "StatefulSets are of group apps or apps.kruise.io";
        errors.invalid(target::PATH, found.clone(), detail);
    }
    let preferred = items(spec, "preferredPersistentTopology");
    if present(spec, "requiredPersistentTopology").is_none() && preferred.is_empty() {
        let detail = "requiredPersistentTopology or preferredPersistentTopology must say in what nodes agree";
        errors.invalid("spec", Value::Null, detail);
    }
    for (index, topology) in preferred.iter().enumerate() {
        let weight = integer(topology, "weight");
        if let Some(weight) = weight.filter(|weight| !(1..=100).contains(weight)) {
            let path = format!("spec.preferredPersistentTopology[{index}].weight");
            errors.invalid(path, weight, "must be from 1 to 100, which is what pods may have");
        }
    }
}

fn changes(errors: &mut Errors, new: &Value, old: &Value, _: &Scope<'_>) {
    let target = |object: &Value| {
        let found = object.pointer("/spec/targetRef").unwrap_or(&Value::Null);
        target::parts(found).map(str::to_owned)
    };
    if target(new) != target(old) {
        errors.forbidden(target::PATH, "targetRef is immutable");
    }
}

fn others(errors: &mut Errors, object: &Value, scope: &Scope<'_>, reader: &mut Reader<'_>) {
    if scope.old.is_some() {
        return;
    }
    let found = object.pointer("/spec/targetRef").unwrap_or(&Value::Null);
    if !matches!(target::group_kind(found), Some((_, "StatefulSet"))) {
        target::named_by_administrators(errors, found, LISTED, reader);
    }
    target::unique(
        errors,
        &kruise_api::persistentpodstate::KIND,
        object,
        scope,
        reader,
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Case, case, put};
    use super::*;

    const STATE: Case = case("PersistentPodState", good);

    const OTHERS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/persistentpodstates";

    fn good() -> Value {
        json!({
            "targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "broker"},
            "requiredPersistentTopology": {"keys": ["topology.kubernetes.io/zone"]},
            "newerThanUs": true,
        })
    }

    #[test]
    fn each_broken_rule_is_refused_with_its_field() {
        STATE.each_is_refused(&[
            ("targetRef.apiVersion", json!(""), "spec.targetRef: Invalid"),
            ("targetRef.kind", json!(""), "spec.targetRef: Invalid"),
            ("targetRef.name", json!(""), "spec.targetRef: Invalid"),
            ("targetRef.apiVersion", json!("v1"), "spec.targetRef: Invalid"),
            ("targetRef.apiVersion", json!("a/b/c"), "spec.targetRef: Invalid"),
            ("requiredPersistentTopology", Value::Null, "spec: Invalid"),
            (
                "preferredPersistentTopology",
                weighed(0),
                "spec.preferredPersistentTopology[0].weight: Invalid",
            ),
            (
                "preferredPersistentTopology",
                weighed(101),
                "spec.preferredPersistentTopology[0].weight: Invalid",
            ),
        ]);
    }

    fn weighed(weight: i32) -> Value {
        json!([{"weight": weight, "preference": {"keys": ["zone"]}}])
    }

    #[test]
    fn a_stored_weight_stays_and_does_not_hold_back_other_changes() {
        let mut stored = good();
        put(&mut stored, "preferredPersistentTopology", &weighed(0));
        let mut edited = stored.clone();
        put(
            &mut edited,
            "persistentPodStateRetentionPolicy",
            &json!("WhenDeleted"),
        );
        assert_eq!(STATE.update_refused(&stored, &edited), None);
    }

    #[test]
    fn a_new_one_widens_the_condition_of_the_webhook_for_the_pods_of_its_target() {
        let object = STATE.object("v1beta1", &good());
        let scope = |old| Scope {
            kind: "PersistentPodState",
            version: "v1beta1",
            namespace: "shop",
            name: "good",
            old,
            now: jiff::Timestamp::UNIX_EPOCH,
            options: crate::Options::DEFAULT,
        };
        let [widening] = &widens(&object, &scope(None))[..] else {
            panic!("one webhook")
        };
        assert_eq!(widening.webhook, PODS_OF_SETS);
        let condition = &widening.conditions()[0];
        assert!(
            condition.contains("'shop'") && condition.contains("o.name == 'broker'"),
            "{condition}"
        );
        assert!(
            widens(&object, &scope(Some(&object))).is_empty(),
            "the target stays"
        );
    }

    #[test]
    fn preferences_suffice() {
        let mut spec = good();
        put(&mut spec, "requiredPersistentTopology", &Value::Null);
        spec["preferredPersistentTopology"] = json!([{"weight": 1, "preference": {"keys": []}}]);
        assert_eq!(STATE.refused("v1beta1", &spec), None);
        let older = json!({
            "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "broker"},
            "requiredPersistentTopology": {"nodeTopologyKeys": []},
        });
        assert_eq!(STATE.refused("v1alpha1", &older), None);
    }

    #[test]
    fn another_kind_of_workload_is_one_that_administrators_list() {
        let mut spec = good();
        put(&mut spec, "targetRef.apiVersion", &json!("example.com/v1"));
        put(&mut spec, "targetRef.kind", &json!("Broker"));
        let object = STATE.object("v1beta1", &spec);
        let said = |listed: Value| {
            let seen = [(LISTED, listed), (OTHERS, json!({"items": []}))];
            STATE.seeing(&seen, "CREATE", &object, &Value::Null)
        };
        let listed = |group: &str| {
            let one = json!({"Group": group, "Version": "v1", "kind": "Broker"});
            json!(json!({"Workloads": [one]}).to_string())
        };
        assert_eq!(said(listed("example.com")), None);
        for (setting, expected) in [
            (Value::Null, "does not list this kind"),
            (listed("example.org"), "does not list this kind"),
            (json!("{"), "cannot be read"),
        ] {
            let message = said(setting).unwrap();
            assert!(
                message.contains("spec.targetRef: Invalid") && message.contains(expected),
                "{message}"
            );
        }
        // asked of new objects only
        assert_eq!(STATE.seeing(&[], "UPDATE", &object, &object), None);
    }

    #[test]
    fn a_workload_has_one_state() {
        let object = STATE.object("v1beta1", &good());
        let beside = |name: &str, workload: &str| {
            let mut other = object.clone();
            other["metadata"]["name"] = json!(name);
            other["spec"]["targetRef"]["name"] = json!(workload);
            other["spec"]["targetRef"]["apiVersion"] = json!("apps.kruise.io/v1alpha1");
            STATE.seeing(
                &[(OTHERS, json!({"items": [other]}))],
                "CREATE",
                &object,
                &Value::Null,
            )
        };
        let message = beside("first", "broker").unwrap();
        let expected = "PersistentPodState first is about the same workload";
        assert!(
            message.contains("spec.targetRef: Invalid") && message.contains(expected),
            "{message}"
        );
        assert_eq!(beside("first", "other"), None);
        assert_eq!(beside("good", "broker"), None);
    }

    #[test]
    fn the_workload_stays_even_its_version() {
        let mut other = good();
        put(
            &mut other,
            "persistentPodStateRetentionPolicy",
            &json!("WhenDeleted"),
        );
        assert_eq!(STATE.update_refused(&good(), &other), None);
        put(
            &mut other,
            "targetRef.apiVersion",
            &json!("apps.kruise.io/v1alpha1"),
        );
        let message = STATE.update_refused(&good(), &other).unwrap();
        assert!(
            message.contains("spec.targetRef: Forbidden: targetRef is immutable"),
            "{message}"
        );
    }
}
