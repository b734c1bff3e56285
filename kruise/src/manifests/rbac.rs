//! What the manager may do, and nothing more.

use kruise_admission::manifests::{MUTATING, VALIDATING};
use kruise_api::definition::Kind;
use serde_json::{Value, json};

use crate::gates::Gates;
use crate::lookup::CONFIGURATION;

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

/// The certificates, and no other Secret of the namespace; a creation cannot be limited to a name. And what administrators
/// decide about webhooks.
fn webhook_rules() -> Value {
    json!([
        rule("", &["secrets"], &["create"]),
        named(
            rule("", &["secrets"], &["get", "update"]),
            &["kruise-webhook-certs"]
        ),
        named(rule("", &["configmaps"], &["get"]), &[CONFIGURATION]),
    ])
}

fn cluster_rules(gates: &Gates) -> Value {
    // An object is read alone only when its name turns out to be taken: to learn whose it is.
    const MANAGE: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
    let webhooks = |plural, name| {
        let rule = rule("admissionregistration.k8s.io", &[plural], &["get", "patch"]);
        named(rule, &[name])
    };
    let definitions = rule(
        "apiextensions.k8s.io",
        &["customresourcedefinitions"],
        &["get", "patch"],
    );
    let kinds = kruise_api::kinds::ALL.into_iter();
    let names: Vec<String> = kinds.map(Kind::name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut rules = vec![
        rule("", &["pods"], MANAGE),
        rule("", &["persistentvolumeclaims"], MANAGE),
        rule("", &["configmaps"], MANAGE),
        rule("", &["pods/status", "pods/resize"], &["patch"]),
        rule("", &["nodes"], &["get", "list", "watch"]),
        rule("", &["namespaces"], &["get", "list", "watch"]),
        rule("", &["events"], &["create", "patch"]),
        rule("apps", &["controllerrevisions"], MANAGE),
        rule(
            "apps.kruise.io",
            &["clonesets"],
            &["get", "list", "watch", "patch"],
        ),
        rule("apps.kruise.io", &["clonesets/status"], &["patch"]),
        rule("apps.kruise.io", &["sidecarsets"], &["get", "list", "watch"]),
        rule("apps.kruise.io", &["sidecarsets/status"], &["patch"]),
        // Asked for by clusters that check who may block the deletion of an owner.
        rule(
            "apps.kruise.io",
            &["clonesets/finalizers", "sidecarsets/finalizers"],
            &["update"],
        ),
        // Looked at when somebody refers to them: the other objects about a workload, and the workload itself.
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
    ];
    // Only who asks for images ahead of rollouts lets the manager have them pulled.
    if gates.on("PreDownloadImageForInPlaceUpdate") {
        let verbs = ["get", "list", "watch", "create", "delete"];
        rules.push(rule("apps.kruise.io", &["imagepulljobs"], &verbs));
    }
    // Only where claims are resized does it matter whether their class lets them be.
    if gates.on("StatefulSetAutoResizePVCGate") {
        rules.push(rule("storage.k8s.io", &["storageclasses"], &["get", "list"]));
    }
    Value::Array(rules)
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
    fn what_a_gate_needs_is_for_those_who_ask_for_it() {
        for (gate, resource) in [
            ("PreDownloadImageForInPlaceUpdate=true", "imagepulljobs\""),
            ("StatefulSetAutoResizePVCGate=true", "storageclasses\""),
        ] {
            for (gates, granted) in [("", false), (gate, true)] {
                let rules = cluster_rules(&Gates::parse(gates, "").unwrap()).to_string();
                assert_eq!(rules.contains(resource), granted, "{gates}");
            }
        }
    }
}
