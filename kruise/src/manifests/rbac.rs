//! What the manager may do, and nothing more.

use serde_json::{Value, json};

/// Service account, roles and bindings in a namespace.
pub fn objects(namespace: &str) -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
               "metadata": {"name": "kruise-manager", "namespace": namespace}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
               "metadata": {"name": "kruise-manager-role"}, "rules": cluster_rules()}),
        binding(
            "ClusterRoleBinding",
            "kruise-manager-rolebinding",
            None,
            "ClusterRole",
            "kruise-manager-role",
            namespace,
        ),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
               "metadata": {"name": "kruise-leader-election-role", "namespace": namespace},
               "rules": [rule("coordination.k8s.io", &["leases"], &["get", "list", "watch", "create", "update", "patch", "delete"]),
                         rule("", &["events"], &["create", "patch"])]}),
        binding(
            "RoleBinding",
            "kruise-leader-election-rolebinding",
            Some(namespace),
            "Role",
            "kruise-leader-election-role",
            namespace,
        ),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
               "metadata": {"name": "kruise-webhook-role", "namespace": namespace},
               "rules": [rule("", &["secrets"], &["get", "list", "watch", "create", "update", "patch"])]}),
        binding(
            "RoleBinding",
            "kruise-webhook-rolebinding",
            Some(namespace),
            "Role",
            "kruise-webhook-role",
            namespace,
        ),
    ]
}

fn cluster_rules() -> Value {
    const READ: &[&str] = &["get", "list", "watch"];
    const READ_WRITE: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
    const CONFIGURATIONS: &[&str] = &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    let configurations = named(
        rule(
            "admissionregistration.k8s.io",
            CONFIGURATIONS,
            &["update", "patch"],
        ),
        &[
            "kruise-mutating-webhook-configuration",
            "kruise-validating-webhook-configuration",
        ],
    );
    let conversion = named(
        rule(
            "apiextensions.k8s.io",
            &["customresourcedefinitions"],
            &["update", "patch"],
        ),
        &["clonesets.apps.kruise.io"],
    );
    json!([
        rule("", &["pods"], READ_WRITE),
        rule("", &["pods/status"], &["get", "patch", "update"]),
        rule("", &["nodes"], READ),
        rule("", &["events"], &["create", "patch", "update"]),
        rule("apps", &["controllerrevisions"], READ_WRITE),
        rule("apps.kruise.io", &["clonesets"], READ_WRITE),
        rule(
            "apps.kruise.io",
            &["clonesets/status"],
            &["get", "patch", "update"]
        ),
        rule("apps.kruise.io", &["clonesets/finalizers"], &["update"]),
        rule("admissionregistration.k8s.io", CONFIGURATIONS, READ),
        configurations,
        rule("apiextensions.k8s.io", &["customresourcedefinitions"], READ),
        conversion,
    ])
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
