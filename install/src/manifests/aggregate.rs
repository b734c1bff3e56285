//! Rights on our kinds for those who have the roles view, edit and admin of Kubernetes.

use kruise_api::definition::Kind;
use kruise_frame::profile::Profile;
use serde_json::{Value, json};

use super::rbac::rule;

/// Kinds that only administrators of a namespace may change: they write to other namespaces, or run containers in
/// pods that exist.
const OF_ADMINISTRATORS: [&str; 2] = ["ephemeraljobs", "resourcedistributions"];

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];

/// The three roles, which Kubernetes adds to its own. One that would grant nothing is left out.
pub fn roles(profile: &Profile) -> Vec<Value> {
    let all = || profile.of_kinds(kruise_kinds::kinds());
    let is_for_all = |kind: &&Kind| !OF_ADMINISTRATORS.contains(&kind.plural);
    let mut roles = vec![
        role(
            "admin",
            &rules(all().filter(|kind| !is_for_all(kind)), WRITE, &[]),
        ),
        role("edit", &rules(all().filter(is_for_all), WRITE, &[])),
        role("view", &rules(all(), READ, &["status"])),
    ];
    let grants = |role: &Value| role["rules"].as_array().is_some_and(|rules| !rules.is_empty());
    roles.retain(grants);
    roles
}

fn role(name: &str, rules: &[Value]) -> Value {
    let label = format!("rbac.authorization.k8s.io/aggregate-to-{name}");
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": format!("aggregate-kruise-{name}"), "labels": {label: "true"}},
        "rules": rules,
    })
}

/// A rule for each group, with the scale of kinds that have one, and more subresources.
fn rules(kinds: impl Iterator<Item = &'static Kind> + Clone, verbs: &[&str], parts: &[&str]) -> Vec<Value> {
    let mut groups: Vec<&str> = kinds.clone().map(|kind| kind.group).collect();
    groups.dedup();
    let of_group = groups.iter().map(|group| {
        let kinds = kinds.clone().filter(|kind| kind.group == *group);
        let resources = kinds.flat_map(|kind| {
            let has_scale = (kind.versions)().iter().any(|version| version.scale);
            let parts = parts.iter().copied().chain(has_scale.then_some("scale"));
            let parts = parts.map(move |part| format!("{}/{part}", kind.plural));
            std::iter::once(kind.plural.to_owned()).chain(parts)
        });
        let resources: Vec<String> = resources.collect();
        let resources: Vec<&str> = resources.iter().map(String::as_str).collect();
        rule(group, &resources, verbs)
    });
    of_group.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(name: &str, verb: &str) -> Vec<String> {
        let roles = roles(&Profile::default());
        let role = roles
            .iter()
            .find(|role| role["metadata"]["name"] == format!("aggregate-kruise-{name}"));
        let rules = role.unwrap()["rules"].as_array().unwrap();
        let with_verb = rules
            .iter()
            .filter(|rule| rule["verbs"].as_array().unwrap().contains(&json!(verb)));
        let resources = with_verb.flat_map(|rule| rule["resources"].as_array().unwrap().clone());
        resources
            .map(|resource| resource.as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn everybody_who_may_view_sees_all_kinds_with_their_status_and_scale() {
        let seen = grants("view", "watch");
        for kind in kruise_kinds::kinds().iter().copied() {
            assert!(seen.contains(&kind.plural.to_owned()));
            assert!(seen.contains(&format!("{}/status", kind.plural)));
        }
        assert!(seen.contains(&"clonesets/scale".to_owned()));
        assert!(!seen.contains(&"sidecarsets/scale".to_owned()));
        assert!(grants("view", "patch").is_empty());
    }

    #[test]
    fn what_reaches_beyond_the_objects_of_a_namespace_is_for_administrators() {
        let (edit, admin) = (grants("edit", "create"), grants("admin", "create"));
        assert!(edit.contains(&"clonesets".to_owned()) && edit.contains(&"podunavailablebudgets".to_owned()));
        for plural in OF_ADMINISTRATORS {
            assert!(!edit.contains(&plural.to_owned()) && admin.contains(&plural.to_owned()));
        }
        assert!(edit.iter().all(|resource| !resource.ends_with("/status")));
    }
}
