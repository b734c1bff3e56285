//! One document per group and version.

use serde_json::{Value, json};

use crate::registry::{Registry, Resource, Subresource, Writes};
use crate::wire::Response;

pub(super) fn core_versions() -> Response {
    let addresses = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]);
    Response::json(
        200,
        &json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}),
    )
}

/// Groups but the core one, each once; the order is that of their names.
pub(super) fn group_names(registry: &Registry) -> Vec<String> {
    let mut names: Vec<String> = registry.all().map(|one| one.id.group.to_string()).collect();
    names.dedup();
    names.retain(|name| !name.is_empty());
    names
}

/// Versions of a group, the preferred one first.
pub(super) fn versions(registry: &Registry, group: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for resource in registry.all().filter(|one| one.id.group.as_ref() == group) {
        for version in &resource.versions {
            if !out.contains(&version.name) {
                out.push(version.name.clone());
            }
        }
    }
    out
}

fn group_value(registry: &Registry, name: &str) -> Option<Value> {
    let versions = versions(registry, name);
    let version = |version: &String| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let preferred = version(versions.first()?);
    let all: Vec<Value> = versions.iter().map(version).collect();
    Some(json!({"name": name, "versions": all, "preferredVersion": preferred}))
}

pub(super) fn groups(registry: &Registry) -> Response {
    let names = group_names(registry);
    let groups: Vec<Value> = names
        .iter()
        .filter_map(|name| group_value(registry, name))
        .collect();
    Response::json(
        200,
        &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}),
    )
}

pub(super) fn group(registry: &Registry, name: &str) -> Option<Response> {
    let mut value = group_value(registry, name)?;
    if let Value::Object(members) = &mut value {
        members.insert("kind".into(), "APIGroup".into());
        members.insert("apiVersion".into(), "v1".into());
    }
    Some(Response::json(200, &value))
}

pub(super) fn resources(registry: &Registry, group: &str, version: &str) -> Option<Response> {
    if !registry.serves(group, version) {
        return None;
    }
    let mut list = Vec::new();
    for resource in registry.all() {
        if resource.id.group.as_ref() == group && resource.version(version).is_some() {
            list.push(entry(resource));
            list.extend(
                resource
                    .subresources
                    .iter()
                    .filter_map(|one| sub_entry(resource, *one)),
            );
        }
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    Some(Response::json(
        200,
        &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list}),
    ))
}

/// The verbs of a resource, sorted.
pub(super) fn verbs(resource: &Resource) -> Vec<&'static str> {
    let mut verbs = vec![
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ];
    if resource.writes == Writes::NoDeleteCollection {
        verbs.retain(|verb| *verb != "deletecollection");
    }
    verbs
}

/// The entry of a subresource in discovery.
pub(super) struct Offer {
    /// Group and version of the kind, if they are not those of the resource.
    pub(super) of: Option<(&'static str, &'static str)>,
    pub(super) kind: String,
    pub(super) verbs: Vec<&'static str>,
}

/// A subresource, if it works.
pub(super) fn subresource(resource: &Resource, which: Subresource) -> Option<Offer> {
    let own = resource.kind.to_string();
    let (of, kind, verbs) = match which {
        Subresource::Status | Subresource::Resize | Subresource::EphemeralContainers => {
            (None, own, vec!["get", "patch", "update"])
        }
        Subresource::Scale => (
            Some(("autoscaling", "v1")),
            "Scale".into(),
            vec!["get", "patch", "update"],
        ),
        Subresource::Eviction => (Some(("policy", "v1")), "Eviction".into(), vec!["create"]),
        Subresource::Binding => (None, "Binding".into(), vec!["create"]),
        Subresource::Finalize => (None, own, vec!["update"]),
        Subresource::Log => (None, own, vec!["get"]),
        Subresource::Absent(_) => return None,
    };
    Some(Offer { of, kind, verbs })
}

fn entry(resource: &Resource) -> Value {
    let mut value = json!({
        "name": resource.id.plural.as_ref(), "singularName": resource.singular, "namespaced": resource.is_namespaced(),
        "kind": resource.kind.as_ref(), "verbs": verbs(resource),
    });
    if let Value::Object(members) = &mut value {
        if !resource.short_names.is_empty() {
            members.insert("shortNames".into(), resource.short_names.clone().into());
        }
        if !resource.categories.is_empty() {
            members.insert("categories".into(), resource.categories.clone().into());
        }
    }
    value
}

fn sub_entry(resource: &Resource, which: Subresource) -> Option<Value> {
    let Offer { of, kind, verbs } = subresource(resource, which)?;
    let mut value = json!({
        "name": format!("{}/{}", resource.id.plural, which.name()), "singularName": "",
        "namespaced": resource.is_namespaced(), "kind": kind, "verbs": verbs,
    });
    if let (Some((group, version)), Value::Object(members)) = (of, &mut value) {
        members.insert("group".into(), group.into());
        members.insert("version".into(), version.into());
    }
    Some(value)
}
