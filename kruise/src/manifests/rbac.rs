//! The rights of the manager: those that it needs, and no others.

use std::collections::{BTreeMap, BTreeSet};

use kruise_admission::manifests::{MUTATING, VALIDATING};
use kruise_api::definition::Kind;
use kruise_plan_kit::ResourceId;
use serde_json::{Value, json};

use crate::controllers;
use crate::gates::{DEFINITIONS_PROTECTION, DELETION_PROTECTION, Gates};
use crate::lookup::CONFIGURATION;
use crate::manager::Registration;

/// Service account, roles and bindings in a namespace.
pub fn objects(namespace: &str, gates: &Gates) -> Vec<Value> {
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
               "metadata": {"name": "kruise-manager", "namespace": namespace}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
               "metadata": {"name": "kruise-manager-role"}, "rules": cluster_rules(gates)}),
        binding(
            "ClusterRoleBinding",
            "kruise-manager-rolebinding",
            None,
            "ClusterRole",
            "kruise-manager-role",
            namespace,
        ),
    ];
    for (name, bound_by, rules) in [
        (
            "kruise-leader-election-role",
            "kruise-leader-election-rolebinding",
            lease_rules(),
        ),
        (
            "kruise-webhook-role",
            "kruise-webhook-rolebinding",
            webhook_rules(),
        ),
    ] {
        objects.push(
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                            "metadata": {"name": name, "namespace": namespace}, "rules": rules}),
        );
        objects.push(binding(
            "RoleBinding",
            bound_by,
            Some(namespace),
            "Role",
            name,
            namespace,
        ));
    }
    objects
}

/// The lease may have any name, as `--leader-election-id` says.
fn lease_rules() -> Value {
    json!([rule(
        "coordination.k8s.io",
        &["leases"],
        &["get", "create", "update"]
    )])
}

/// The Secret of the certificates and no other one (a watch of one name is granted like a read of it), and the ConfigMap with the settings of administrators. RBAC cannot limit
/// a creation to a name.
fn webhook_rules() -> Value {
    json!([
        rule("", &["secrets"], &["create"]),
        named(
            rule("", &["secrets"], &["get", "list", "watch", "update"]),
            &["kruise-webhook-certs"]
        ),
        named(rule("", &["configmaps"], &["get"]), &[CONFIGURATION]),
    ])
}

fn cluster_rules(gates: &Gates) -> Value {
    let webhooks = |plural, name| {
        let rule = rule("admissionregistration.k8s.io", &[plural], WATCHED);
        named(rule, &[name])
    };
    let definitions = rule("apiextensions.k8s.io", &["customresourcedefinitions"], WATCHED);
    let kinds = kruise_api::kinds::ALL.into_iter();
    let names: Vec<String> = kinds.map(Kind::name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut rules = rules_of_controllers(&controllers::ALL, gates);
    rules.extend([
        rule("", &["events"], &["create", "patch"]),
        // Webhooks read them when an object refers to them: other objects about a workload, and the workload itself.
        rule("policy.kruise.io", &["podunavailablebudgets"], &["list"]),
        rule(
            "apps.kruise.io",
            &["workloadspreads", "persistentpodstates"],
            &["list"],
        ),
        rule("apps", &["deployments", "replicasets", "statefulsets"], &["get"]),
        rule("batch", &["jobs"], &["get"]),
        webhooks("mutatingwebhookconfigurations", MUTATING),
        webhooks("validatingwebhookconfigurations", VALIDATING),
        named(definitions, &names),
    ]);
    if gates.on(DELETION_PROTECTION) {
        rules.push(rule("", &["persistentvolumeclaims", "pods"], &["list"]));
    }
    // A definition that is protected may be of any resource.
    if gates.on(DEFINITIONS_PROTECTION) {
        rules.push(rule("*", &["*"], &["list"]));
    }
    Value::Array(rules)
}

/// Verbs for objects that are granted by name.
const WATCHED: &[&str] = &["get", "list", "watch", "patch"];

const READ: &[&str] = &["get", "list", "watch"];

/// Workloads with a cache.
const WORKLOADS: [ResourceId; 5] = [
    ResourceId::DEPLOYMENTS,
    ResourceId::REPLICA_SETS,
    ResourceId::APPS_STATEFULSETS,
    ResourceId::CLONESETS,
    ResourceId::STATEFULSETS,
];

/// The rights in these registrations: one rule for each resource and subresource.
pub fn rules_of_controllers(registrations: &[&Registration], gates: &Gates) -> Vec<Value> {
    let mut verbs: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    let mut allow = |group: &'static str, plural: String, more: &[&'static str]| {
        verbs.entry((group, plural)).or_default().extend(more);
    };
    for registration in registrations.iter().filter(|one| one.is_on(gates)) {
        if let Some(ResourceId { group, plural }) = registration.resource() {
            allow(group, plural.to_owned(), READ);
            allow(group, format!("{plural}/status"), &["patch"]);
            // Required by the admission plugin OwnerReferencesPermissionEnforcement.
            allow(group, format!("{plural}/finalizers"), &["update"]);
        }
        if registration.finds_workloads {
            for ResourceId { group, plural } in WORKLOADS {
                allow(group, plural.to_owned(), READ);
            }
            allow("", "replicationcontrollers".to_owned(), &["get"]);
            // Workloads of any kind say here how many pods they want.
            allow("*", "*/scale".to_owned(), &["get"]);
        }
        for ResourceId { group, plural } in registration.watches {
            allow(group, (*plural).to_owned(), READ);
        }
        for grant in registration.grants {
            if grant.gate.is_some_and(|gate| !gates.on(gate)) {
                continue;
            }
            let ResourceId { group, plural } = grant.resource;
            if grant.subresource.is_empty() {
                allow(group, plural.to_owned(), READ);
                allow(group, plural.to_owned(), grant.verbs);
            } else {
                allow(group, format!("{plural}/{}", grant.subresource), grant.verbs);
            }
        }
    }
    let rules = verbs.iter().map(|((group, resource), verbs)| {
        let verbs: Vec<&str> = verbs.iter().copied().collect();
        rule(group, &[resource], &verbs)
    });
    rules.collect()
}

/// The same rule for these objects only.
fn named(mut rule: Value, names: &[&str]) -> Value {
    if let Some(rule) = rule.as_object_mut() {
        rule.insert("resourceNames".into(), json!(names));
    }
    rule
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn binding(kind: &str, name: &str, of: Option<&str>, role_kind: &str, role: &str, namespace: &str) -> Value {
    let metadata = match of {
        Some(namespace) => json!({"name": name, "namespace": namespace}),
        None => json!({"name": name}),
    };
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "kruise-manager", "namespace": namespace}],
    })
}

#[cfg(test)]
mod tests {
    use super::cluster_rules;
    use crate::gates::Gates;

    #[test]
    fn rights_for_a_gate_are_granted_only_with_the_gate() {
        for (gate, resource) in [
            ("PreDownloadImageForInPlaceUpdate=true", "imagepulljobs\""),
            ("StatefulSetAutoResizePVCGate=true", "storageclasses\""),
            (
                "ResourcesDeletionProtection=true,DeletionProtectionForCRDCascadingGate=true",
                "\"resources\":[\"*\"]",
            ),
        ] {
            for (gates, granted) in [("", false), (gate, true)] {
                let rules = cluster_rules(&Gates::parse(gates, "").unwrap()).to_string();
                assert_eq!(rules.contains(resource), granted, "{gates}");
            }
        }
    }
}
