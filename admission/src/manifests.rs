//! What an API server has to know to call our webhooks: the [table](crate::table) as configurations.
//!
//! An installer applies [`configurations`]; a running manager adds the CA and drops the entries it does not serve.
//!
//! Pods that use none of our features do not depend on us: the pod webhook is called only for pods a Kruise workload
//! made that still lack the readiness gate, which our own controllers set themselves, and for pods that ask for an
//! order of their containers. Pods of a SidecarSet, a budget, a PodProbeMarker or the target of a
//! PersistentPodState or a WorkloadSpread have an entry of their own. So creation of other pods survives an outage
//! of every manager. Updates and deletions of a pod depend on us only if it names a budget, its deletion also if it
//! names a WorkloadSpread, and its eviction if its namespace holds one of them. Likewise a CloneSet that is not
//! protected from deletion can be deleted meanwhile, by hand or with its namespace; a protected one cannot. The
//! same holds for every kind that can be protected. The label can be removed without a manager.

use kruise_api::definition::Scope;
use kruise_api::names::{
    APPS_GROUP, DELETE_PROTECTION, KRUISE_POD_READY, LAUNCH_PRIORITY, LAUNCH_PRIORITY_VARIABLE,
};
use serde_json::{Value, json};

use crate::deletion::{
    dependants::Protected,
    kinds::{KINDS, ProtectedKind},
};
use crate::disruption::{self, Requests};
use crate::kinds::KindWebhooks;
use crate::protocol::Phase;
pub use crate::table::MUTATE_POD;
use crate::table::{Subject, Webhook, webhooks};
pub use crate::widening::PODS_OF_SETS;

/// Name of the `MutatingWebhookConfiguration`.
pub const MUTATING: &str = "kruise-mutating-webhook-configuration";
/// Name of the `ValidatingWebhookConfiguration`.
pub const VALIDATING: &str = "kruise-validating-webhook-configuration";
/// Name of the service in front of the managers.
pub const SERVICE: &str = "kruise-webhook-service";
/// Both configurations, for a manager of these kinds in `namespace`. The annotation `template` is empty, so that a
/// running manager takes the `webhooks` written here as the new template. With `all_pods` the webhook reviews every
/// pod outside the excluded namespaces. The gate `KruisePodReadinessGate` needs that. So does
/// `EnableExternalCerts`: the manager then does not add the entry [`PODS_OF_SETS`] to the configuration.
pub fn configurations(kinds: &[&'static KindWebhooks], namespace: &str, all_pods: bool) -> Vec<Value> {
    let entries = |phase| -> Vec<Value> {
        let of_phase = webhooks(kinds).filter(|webhook| webhook.phase == phase);
        of_phase
            .map(|webhook| entry(&webhook, namespace, all_pods))
            .collect()
    };
    vec![
        configuration(
            "MutatingWebhookConfiguration",
            MUTATING,
            &entries(Phase::Mutating),
        ),
        configuration(
            "ValidatingWebhookConfiguration",
            VALIDATING,
            &entries(Phase::Validating),
        ),
    ]
}

fn configuration(kind: &str, name: &str, webhooks: &[Value]) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "annotations": {"template": ""}},
        "webhooks": webhooks,
    })
}

/// A row of the table: what all have in common, and what depends on its subject.
fn entry(webhook: &Webhook, namespace: &str, all_pods: bool) -> Value {
    let has_effect = match webhook.subject {
        Subject::Deletions(_) | Subject::ProtectionLabel => false,
        Subject::Pods | Subject::Disruptions(_) => true,
        Subject::Kind(kind) => kind.has_effect(webhook.phase),
    };
    let mut entry = json!({
        "name": webhook.name,
        "clientConfig": {"service": {
            "name": SERVICE, "namespace": namespace, "path": webhook.path(), "port": 443,
        }},
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": if has_effect { "NoneOnDryRun" } else { "None" },
        "admissionReviewVersions": ["v1", "v1beta1"],
        "timeoutSeconds": webhook.time_limit().server_seconds,
    });
    let own = match webhook.subject {
        Subject::Pods => pods(all_pods),
        Subject::Disruptions(requests) => disruptions(requests),
        Subject::Kind(kind) => objects(kind, webhook.phase),
        Subject::Deletions(kind) => deletions(kind),
        Subject::ProtectionLabel => labels(),
    };
    if let (Some(entry), Value::Object(own)) = (entry.as_object_mut(), own) {
        entry.extend(own);
    }
    entry
}

/// Label of namespaces that keeps their pods away from webhooks, if it has this value.
pub const CONTROL_PLANE: &str = "control-plane";
const OURS: &str = "openkruise";
const SYSTEM: &str = "kube-system";

/// Are pods of this namespace, whose label [`CONTROL_PLANE`] has this value, shown to webhooks?
pub fn is_in_reach(namespace: &str, control_plane: Option<&str>) -> bool {
    namespace != SYSTEM && control_plane != Some(OURS)
}

fn outside_of_systems() -> Value {
    json!({"matchExpressions": [
        {"key": CONTROL_PLANE, "operator": "NotIn", "values": [OURS]},
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [SYSTEM]},
    ]})
}

fn pod_rule(resource: &str, operations: &[&str]) -> Value {
    json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": operations,
        "scope": "Namespaced",
    })
}

/// What makes a pod unavailable that names a budget. Only an administrator may resize by another resource than the
/// pod, so that is a rule of its own.
fn disruptions(requests: Requests) -> Value {
    let rules = match requests {
        Requests::OfPods => vec![
            pod_rule("pods", &["UPDATE", "DELETE"]),
            pod_rule("pods/resize", &["UPDATE"]),
        ],
        Requests::Evictions => vec![pod_rule("pods/eviction", &["CREATE"])],
    };
    json!({
        "rules": rules,
        "namespaceSelector": outside_of_systems(),
        "matchConditions": disruption::conditions(requests),
    })
}

fn pods(all_pods: bool) -> Value {
    let mut pods = json!({
        "rules": [pod_rule("pods", &["CREATE"])],
        "namespaceSelector": outside_of_systems(),
        "reinvocationPolicy": "Never",
    });
    if let (false, Some(pods)) = (all_pods, pods.as_object_mut()) {
        pods.insert("matchConditions".into(), pod_conditions());
    }
    pods
}

/// Deletions of protected objects.
fn deletions(kind: &ProtectedKind) -> Value {
    with_label(json!({
        "rules": [rule_of(kind, &["DELETE"])],
        "matchConditions": [{"name": "protected", "expression": protected(kind.protected)}],
    }))
}

/// New values of the protection label that have no effect. A warning is not worth a request that fails.
fn labels() -> Value {
    let rules: Vec<Value> = KINDS
        .iter()
        .map(|kind| rule_of(kind, &["CREATE", "UPDATE"]))
        .collect();
    with_label(json!({
        "rules": rules,
        "failurePolicy": "Ignore",
        "matchConditions": [{"name": "without-effect", "expression": without_effect()}],
    }))
}

/// Only for objects with the protection label, outside of the namespace of the system.
fn with_label(mut entry: Value) -> Value {
    if let Some(entry) = entry.as_object_mut() {
        entry.insert(
            "objectSelector".into(),
            json!({"matchExpressions": [{"key": DELETE_PROTECTION, "operator": "Exists"}]}),
        );
        entry.insert(
            "namespaceSelector".into(),
            json!({"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [SYSTEM]},
            ]}),
        );
    }
    entry
}

fn rule_of(kind: &ProtectedKind, operations: &[&str]) -> Value {
    json!({
        "apiGroups": [kind.group], "apiVersions": kind.versions, "resources": [kind.plural],
        "operations": operations, "scope": scope(kind.scope),
    })
}

/// CEL that holds only for deletions that may have to be refused.
fn protected(protected: Protected) -> String {
    let labels = "oldObject.metadata.labels";
    let always = format!("{labels}['{DELETE_PROTECTION}'] == 'Always'");
    let value = match protected {
        Protected::Endpoint => always,
        _ => format!("({always} || {labels}['{DELETE_PROTECTION}'] == 'Cascading')"),
    };
    format!(
        "oldObject != null && has({labels}) && '{DELETE_PROTECTION}' in {labels} && \
         !has(oldObject.metadata.deletionTimestamp) && {value}"
    )
}

/// CEL that holds only for new values of the label that protect nothing.
fn without_effect() -> String {
    let (new, old) = ("object.metadata.labels", "oldObject.metadata.labels");
    let endpoints = KINDS.iter().filter(|kind| kind.protected == Protected::Endpoint);
    let others: Vec<String> = endpoints
        .map(|kind| format!("request.kind.kind != '{}'", kind.kind))
        .collect();
    let others = others.join(" && ");
    let key = DELETE_PROTECTION;
    format!(
        "has({new}) && '{key}' in {new} && {new}['{key}'] != 'Always' && \
         ({new}['{key}'] != 'Cascading' || !({others})) && \
         (oldObject == null || !has({old}) || !('{key}' in {old}) || {old}['{key}'] != {new}['{key}'])"
    )
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Namespaced => "Namespaced",
        Scope::Cluster => "Cluster",
    }
}

fn objects(webhooks: &KindWebhooks, phase: Phase) -> Value {
    let scope = scope(webhooks.kind.scope);
    let (deletions, operations) = match phase {
        Phase::Validating if webhooks.deletions => (true, &["CREATE", "UPDATE", "DELETE"][..]),
        Phase::Validating | Phase::Mutating => (false, &["CREATE", "UPDATE"][..]),
    };
    let rules = json!([{
        "apiGroups": [webhooks.kind.group],
        "apiVersions": webhooks.versions(),
        "resources": [webhooks.kind.plural],
        "operations": operations,
        "scope": scope,
    }]);
    match phase {
        Phase::Mutating => json!({"rules": rules, "reinvocationPolicy": "Never"}),
        Phase::Validating if deletions => {
            json!({"rules": rules, "matchConditions": [protected_if_deleted()]})
        }
        Phase::Validating => json!({"rules": rules}),
    }
}

/// CEL that is false only for deletions nobody asked to be protected from.
fn protected_if_deleted() -> Value {
    json!({
        "name": "protected-if-deleted",
        "expression": format!(
            "request.operation != 'DELETE' || (oldObject != null && has(oldObject.metadata.labels) && \
             '{DELETE_PROTECTION}' in oldObject.metadata.labels)"
        ),
    })
}

/// CEL that holds only for pods a step of the pod webhook would change.
fn pod_conditions() -> Value {
    let gate = format!(
        "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, \
         has(owner.controller) && owner.controller && owner.apiVersion.startsWith('{APPS_GROUP}/')) && \
         (!has(object.spec.readinessGates) || \
         !object.spec.readinessGates.exists(gate, gate.conditionType == '{KRUISE_POD_READY}'))"
    );
    let in_order =
        format!("has(object.metadata.annotations) && '{LAUNCH_PRIORITY}' in object.metadata.annotations");
    let by_priority = format!(
        "object.spec.containers != null && object.spec.containers.exists(one, \
         has(one.env) && one.env.exists(variable, variable.name == '{LAUNCH_PRIORITY_VARIABLE}'))"
    );
    json!([{"name": "asks-for-a-step", "expression": format!("{gate} || {in_order} || {by_priority}")}])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deletion::kinds::LABEL_WEBHOOK;
    use crate::kinds::ALL;

    fn entries(for_all: bool) -> Vec<Value> {
        let lists = configurations(ALL, "kruise-system", for_all)
            .into_iter()
            .map(|one| one["webhooks"].as_array().unwrap().clone());
        lists.flatten().collect()
    }

    #[test]
    fn every_registered_path_is_served() {
        let served: Vec<String> = webhooks(ALL).flat_map(|webhook| webhook.paths()).collect();
        let entries = entries(false);
        assert_eq!(entries.len(), webhooks(ALL).count());
        for entry in entries {
            let path = entry["clientConfig"]["service"]["path"].as_str().unwrap();
            assert!(served.iter().any(|served| *served == path), "{path}");
        }
    }

    #[test]
    fn namespaces_of_the_system_are_out_of_reach() {
        let namespaces = &pods(false)["namespaceSelector"]["matchExpressions"];
        let keeps_out = |key: &str, value: &str| {
            let mut terms = namespaces.as_array().unwrap().iter();
            terms.any(|term| term["key"] == key && term["operator"] == "NotIn" && term["values"][0] == value)
        };
        assert!(keeps_out("kubernetes.io/metadata.name", "kube-system") && !is_in_reach("kube-system", None));
        assert!(keeps_out("control-plane", "openkruise") && !is_in_reach("any", Some("openkruise")));
        assert!(is_in_reach("any", None) && is_in_reach("any", Some("other")));
    }

    #[test]
    fn names_and_template_let_a_manager_find_and_refresh_them() {
        let found = configurations(ALL, "ns", false);
        let names: Vec<&Value> = found.iter().map(|one| &one["metadata"]["name"]).collect();
        assert_eq!(names, [MUTATING, VALIDATING]);
        for one in &found {
            assert_eq!(one["metadata"]["annotations"]["template"], "");
        }
        for webhook in entries(false) {
            let only_warns = webhook["name"] == LABEL_WEBHOOK;
            let policy = if only_warns { "Ignore" } else { "Fail" };
            assert_eq!(webhook["failurePolicy"], policy);
            let writes = [
                "vsidecarset.kb.io",
                "vpodunavailablebudget.kb.io",
                "vpersistentpodstate.kb.io",
                "vpodprobemarker.kb.io",
                "vworkloadspread.kb.io",
                "mpod.kb.io",
                "vpod.kb.io",
                "vpodeviction.kb.io",
            ];
            let has_effect = writes.iter().any(|name| webhook["name"] == *name);
            assert_eq!(
                webhook["sideEffects"],
                if has_effect { "NoneOnDryRun" } else { "None" }
            );
            assert_eq!(webhook["admissionReviewVersions"], json!(["v1", "v1beta1"]));
        }
    }

    #[test]
    fn kinds_of_the_table_are_registered_under_upstreams_names_and_paths() {
        let all = entries(false);
        let found = |name: &str| {
            let webhook = all.iter().find(|webhook| webhook["name"] == name);
            let webhook = webhook.unwrap_or_else(|| panic!("{name}"));
            let rule = &webhook["rules"][0];
            format!(
                "{} {} {}",
                webhook["clientConfig"]["service"]["path"].as_str().unwrap(),
                rule["resources"][0].as_str().unwrap(),
                rule["operations"]
            )
        };
        for (kind, plural) in [
            ("statefulset", "statefulsets"),
            ("daemonset", "daemonsets"),
            ("broadcastjob", "broadcastjobs"),
            ("advancedcronjob", "advancedcronjobs"),
        ] {
            let operations = r#"["CREATE","UPDATE"]"#;
            let expected = format!("/mutate-apps-kruise-io-{kind} {plural} {operations}");
            assert_eq!(found(&format!("m{kind}.kb.io")), expected);
            let operations = match kind {
                "statefulset" | "daemonset" => r#"["CREATE","UPDATE","DELETE"]"#,
                _ => operations,
            };
            let expected = format!("/validate-apps-kruise-io-{kind} {plural} {operations}");
            assert_eq!(found(&format!("v{kind}.kb.io")), expected);
        }
        assert_eq!(
            found("mcontainerrecreaterequest.kb.io"),
            r#"/mutate-apps-kruise-io-containerrecreaterequest containerrecreaterequests ["CREATE","UPDATE"]"#
        );
        assert_eq!(
            found("vpodprobemarker.kb.io"),
            r#"/validate-apps-kruise-io-podprobemarker podprobemarkers ["CREATE","UPDATE"]"#
        );
        assert_eq!(
            found("vephemeraljobs.kb.io"),
            r#"/validate-apps-kruise-io-v1alpha1-ephemeraljob ephemeraljobs ["CREATE","UPDATE"]"#
        );
        for kind in ["imagepulljob", "imagelistpulljob"] {
            for (letter, phase) in [("m", "mutate"), ("v", "validate")] {
                let expected = format!(r#"/{phase}-apps-kruise-io-{kind} {kind}s ["CREATE","UPDATE"]"#);
                assert_eq!(found(&format!("{letter}{kind}-v1beta1.kb.io")), expected);
            }
        }
        let none = ["vcontainerrecreaterequest.kb.io", "mpodprobemarker.kb.io"];
        assert!(
            all.iter()
                .all(|webhook| none.iter().all(|name| webhook["name"] != *name))
        );
    }

    #[test]
    fn deletions_reach_us_by_the_protection_label_alone() {
        let all = entries(false);
        let named = |name: &str| all.iter().find(|webhook| webhook["name"] == name).unwrap();
        let validate = named("vcloneset.kb.io");
        assert_eq!(
            validate["rules"][0]["operations"],
            json!(["CREATE", "UPDATE", "DELETE"])
        );
        assert_eq!(
            named("vstatefulset.kb.io")["matchConditions"],
            validate["matchConditions"]
        );
        let expression = validate["matchConditions"][0]["expression"].as_str().unwrap();
        assert_eq!(
            expression,
            "request.operation != 'DELETE' || (oldObject != null && has(oldObject.metadata.labels) && \
             'policy.kruise.io/delete-protection' in oldObject.metadata.labels)"
        );
    }

    #[test]
    fn only_labelled_objects_of_other_kinds_depend_on_a_manager_and_only_for_their_deletion() {
        let all = entries(false);
        for kind in &KINDS {
            let named = all
                .iter()
                .find(|webhook| webhook["name"] == kind.webhook)
                .unwrap();
            assert_eq!(named["failurePolicy"], "Fail");
            assert_eq!(
                named["objectSelector"]["matchExpressions"],
                json!([{"key": "policy.kruise.io/delete-protection", "operator": "Exists"}])
            );
            let namespaces = &named["namespaceSelector"]["matchExpressions"];
            assert_eq!(namespaces[0]["values"], json!(["kube-system"]));
            assert_eq!(named["rules"].as_array().unwrap().len(), 1);
            assert_eq!(named["rules"][0]["operations"], json!(["DELETE"]));
            let condition = named["matchConditions"][0]["expression"].as_str().unwrap();
            let heeds_cascading = condition.contains("== 'Cascading'");
            assert_eq!(
                heeds_cascading,
                kind.protected != Protected::Endpoint,
                "{condition}"
            );
        }
        let label = all
            .iter()
            .find(|webhook| webhook["name"] == LABEL_WEBHOOK)
            .unwrap();
        assert_eq!(label["rules"].as_array().unwrap().len(), KINDS.len());
        let condition = label["matchConditions"][0]["expression"].as_str().unwrap();
        assert!(
            condition.contains("!(request.kind.kind != 'Service' && request.kind.kind != 'Ingress')"),
            "{condition}"
        );
    }

    #[test]
    fn disruptions_are_registered_as_upstream_does_and_resizes_too() {
        let all = entries(true);
        let named = |name: &str| all.iter().find(|webhook| webhook["name"] == name).unwrap();
        let rules = |name: &str| {
            let rules = named(name)["rules"].as_array().unwrap().iter();
            let texts = rules.map(|rule| format!("{} {}", rule["operations"], rule["resources"][0]));
            texts.collect::<Vec<_>>()
        };
        assert_eq!(
            rules("vpod.kb.io"),
            ["[\"UPDATE\",\"DELETE\"] \"pods\"", "[\"UPDATE\"] \"pods/resize\""]
        );
        assert_eq!(rules("vpodeviction.kb.io"), ["[\"CREATE\"] \"pods/eviction\""]);
        for name in ["vpod.kb.io", "vpodeviction.kb.io"] {
            let webhook = named(name);
            assert_eq!(webhook["clientConfig"]["service"]["path"], "/validate-pod");
            assert_eq!(webhook["failurePolicy"], "Fail");
            assert_eq!(webhook["namespaceSelector"], outside_of_systems());
        }
        let conditions = &named("vpodeviction.kb.io")["matchConditions"];
        assert_eq!(
            *conditions,
            json!([{"name": "where-a-budget-is", "expression": "true"}])
        );
    }

    #[test]
    fn a_gate_that_is_off_takes_its_operations_away() {
        let webhook = |name: &str| webhooks(ALL).find(|webhook| webhook.name == name).unwrap();
        let (pods, evictions) = (webhook("vpod.kb.io"), webhook("vpodeviction.kb.io"));
        for (deletions, updates) in [(true, false), (false, true), (false, false)] {
            let mut options = crate::Options::DEFAULT;
            (options.budgets.deletions, options.budgets.updates) = (deletions, updates);
            options.workload_spread = false;
            assert_eq!(pods.is_needed("DELETE", options), deletions);
            assert_eq!(evictions.is_needed("CREATE", options), deletions);
            assert_eq!(pods.is_needed("UPDATE", options), updates);
            assert_eq!(pods.is_needed("*", options), deletions || updates);
            // Deletions of pods in subsets are counted.
            options.workload_spread = true;
            assert!(pods.is_needed("DELETE", options) && evictions.is_needed("CREATE", options));
            assert_eq!(pods.is_needed("UPDATE", options), updates);
        }
    }

    #[test]
    fn pods_that_use_no_feature_reach_us_only_when_all_pods_shall_have_the_gate() {
        let pod = |for_all| {
            let found = entries(for_all)
                .into_iter()
                .find(|webhook| webhook["name"] == "mpod.kb.io");
            found.unwrap()
        };
        assert_eq!(pod(false)["matchConditions"].as_array().unwrap().len(), 1);
        assert_eq!(pod(true).get("matchConditions"), None);
        for pod in [pod(false), pod(true)] {
            let excluded = &pod["namespaceSelector"]["matchExpressions"];
            assert_eq!(excluded[0]["values"], json!(["openkruise"]));
            assert_eq!(excluded[1]["values"], json!(["kube-system"]));
        }
    }
}
