//! An installation whose manager watches one namespace only: rights and webhooks that end there.
//!
//! What is in namespaces is granted by a Role in the watched one. What is in none, such as nodes, definitions and
//! SidecarSets, is granted by the ClusterRole as in every installation. Webhooks are called for objects of the watched
//! namespace. They are called for objects that are in no namespace, too: a selector of namespaces does not exclude
//! those. What the manager keeps in its own namespace, such as its lease and the revisions of SidecarSets, is
//! granted there in every installation. Copies of pull secrets are for all nodes, and such a manager makes none: it
//! has no right in the namespace of node agents, and reads secrets in the watched one.

use kruise_api::definition::Scope;
use kruise_plan_kit::ResourceId;
use kruise_plan_kit::sidecars::names::NAMESPACE_NAME;
use kube_schema::validate::not_a_dns_label;
use serde_json::{Value, json};

use super::rbac::{ANY_GROUP, COPIES, Place, Role, rule};

/// Namespace of the events about objects that are in none.
const DEFAULT: &str = "default";

/// Resources of others that are in no namespace.
const CLUSTER_SCOPED: [ResourceId; 6] = [
    ResourceId::NODES,
    ResourceId::NAMESPACES,
    ResourceId::STORAGE_CLASSES,
    registration("mutatingwebhookconfigurations"),
    registration("validatingwebhookconfigurations"),
    ResourceId {
        group: "apiextensions.k8s.io",
        plural: "customresourcedefinitions",
    },
];

const fn registration(plural: &'static str) -> ResourceId {
    ResourceId {
        group: "admissionregistration.k8s.io",
        plural,
    }
}

/// The name of a namespace.
pub fn name(text: &str) -> Result<String, String> {
    match not_a_dns_label(text) {
        None => Ok(text.to_owned()),
        Some(reason) => Err(format!("{text:?} names no namespace: {reason}")),
    }
}

/// Whether a rule is about objects in namespaces only.
pub fn is_in_namespaces(rule: &Value) -> bool {
    let texts = |field: &str| rule.get(field).and_then(Value::as_array).into_iter().flatten();
    let mut groups = texts("apiGroups").filter_map(Value::as_str);
    groups.all(|group| {
        let mut resources = texts("resources").filter_map(Value::as_str);
        resources.all(|resource| !is_cluster_scoped(group, resource))
    })
}

fn is_cluster_scoped(group: &str, resource: &str) -> bool {
    // All resources of a group; `*/scale` is of workloads, which are in namespaces.
    if resource == ANY_GROUP {
        return true;
    }
    let plural = resource.split('/').next().unwrap_or_default();
    let of_others = |one: &ResourceId| one.group == group && one.plural == plural;
    let mut ours = kruise_kinds::kinds().iter().copied();
    CLUSTER_SCOPED.iter().any(of_others)
        || ours.any(|kind| kind.scope == Scope::Cluster && kind.group == group && kind.plural == plural)
}

/// The same rights where the manager watches this namespace only.
pub fn limited<'n>(roles: Vec<Role<'n>>, watched: &'n str) -> Vec<Role<'n>> {
    let mut limited = Vec::new();
    for mut role in roles.into_iter().filter(|role| role.name != COPIES) {
        if !matches!(role.place, Place::Cluster) {
            limited.push(role);
            continue;
        }
        let (inside, outside) = role
            .rules
            .into_iter()
            .partition(|needed| is_in_namespaces(&needed.rule));
        role.rules = outside;
        let in_watched = Role {
            name: role.name,
            binding: role.binding,
            place: Place::Namespace(watched),
            rules: inside,
        };
        limited.extend([role, in_watched]);
    }
    limited.push(of_events());
    limited
}

/// The right to emit events about objects that are in no namespace.
pub fn of_events() -> Role<'static> {
    Role {
        name: "kruise-manager-events-role",
        binding: "kruise-manager-events-rolebinding",
        place: Place::Namespace(DEFAULT),
        rules: vec![rule("", &["events"], &["create", "patch"]).into()],
    }
}

/// The term of a selector of namespaces that selects this one.
pub fn selected(watched: &str) -> Value {
    json!({"key": NAMESPACE_NAME, "operator": "In", "values": [watched]})
}

/// Limits the webhooks of a configuration to this namespace.
pub fn limit_webhooks(configuration: &mut Value, watched: &str) {
    let webhooks = configuration.get_mut("webhooks").and_then(Value::as_array_mut);
    let webhooks = webhooks.into_iter().flatten().filter_map(Value::as_object_mut);
    for webhook in webhooks {
        let selector = webhook
            .entry("namespaceSelector")
            .or_insert_with(|| json!({"matchExpressions": []}));
        if let Some(terms) = selector.get_mut("matchExpressions").and_then(Value::as_array_mut) {
            terms.push(selected(watched));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::rbac::{needed_by, roles};
    use kruise_frame::profile::Profile;
    use kruise_frame::registration::{Area, Registration};
    use kruise_kinds as controllers;

    #[test]
    fn all_that_a_manager_of_one_namespace_may_do_elsewhere_is_about_objects_in_no_namespace_and_its_own() {
        let all = roles("system", &Profile::default());
        let granted = all.iter().filter(|role| role.name != COPIES);
        let before: usize = granted.map(|role| role.rules.len()).sum();
        let limited = limited(all, "shop");
        let after: usize = limited.iter().map(|role| role.rules.len()).sum();
        assert_eq!(
            after,
            before + 1,
            "each rule is granted once, and one for events is added"
        );
        for role in &limited {
            let texts: Vec<String> = role.rules.iter().map(|needed| needed.rule.to_string()).collect();
            match role.place {
                Place::Cluster => {
                    for text in &texts {
                        assert!(
                            !text.contains("\"pods") && !text.contains("clonesets\""),
                            "{text}"
                        );
                    }
                    assert!(role.rules.iter().all(|needed| !is_in_namespaces(&needed.rule)));
                }
                Place::Namespace("shop") => {
                    assert!(role.rules.iter().all(|needed| is_in_namespaces(&needed.rule)));
                }
                Place::Namespace(other) => assert!(["system", DEFAULT].contains(&other)),
            }
        }
    }

    /// A resource of others that is watched in the whole cluster is in [`CLUSTER_SCOPED`].
    #[test]
    fn the_rights_of_each_controller_are_about_objects_in_namespaces_or_in_none() {
        let cluster_scoped = controllers::ALL
            .iter()
            .copied()
            .flat_map(|registration: &Registration| registration.grants)
            .filter(|grant| grant.area == Area::Cluster);
        for grant in cluster_scoped {
            let rule = rule(grant.resource.group, &[grant.resource.plural], &["get"]);
            assert!(!is_in_namespaces(&rule), "{}", grant.resource);
        }
        let nodes = needed_by(controllers::ALL);
        let nodes = nodes
            .iter()
            .find(|needed| needed.rule.to_string().contains("\"nodes\""));
        assert!(!is_in_namespaces(&nodes.unwrap().rule));
    }

    #[test]
    fn every_webhook_of_objects_in_namespaces_is_limited_and_keeps_its_other_terms() {
        let configurations = crate::manifests::configurations("system", false, &Profile::default());
        for before in configurations {
            let mut after = before.clone();
            limit_webhooks(&mut after, "shop");
            let entries = |of: &Value| of["webhooks"].as_array().unwrap().clone();
            for (before, after) in entries(&before).iter().zip(entries(&after)) {
                let terms = |of: &Value| -> Vec<Value> {
                    let terms = of.pointer("/namespaceSelector/matchExpressions");
                    terms.and_then(Value::as_array).cloned().unwrap_or_default()
                };
                let mut expected = terms(before);
                expected.push(json!({
                    "key": "kubernetes.io/metadata.name", "operator": "In", "values": ["shop"],
                }));
                assert_eq!(terms(&after), expected, "{}", before["name"]);
            }
        }
    }
}
