//! Everything in two documents, as newer clients request it.

use serde_json::{Value, json};

use super::legacy;
use crate::registry::{Registry, Resource, Scope};
use crate::wire::Response;

pub(super) fn groups(registry: &Registry, core: bool) -> Response {
    let names = if core {
        vec![String::new()]
    } else {
        legacy::group_names(registry)
    };
    let items: Vec<Value> = names.iter().map(|name| group(registry, name)).collect();
    let value = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    });
    Response {
        content_type: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        ..Response::json(200, &value)
    }
}

fn group(registry: &Registry, name: &str) -> Value {
    let versions: Vec<Value> = legacy::versions(registry, name)
        .iter()
        .map(|version| {
            let of = registry
                .all()
                .filter(|one| one.id.group.as_ref() == name && one.version(version).is_some());
            let resources: Vec<Value> = of.map(|one| resource(one, version)).collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let metadata = if name.is_empty() {
        json!({})
    } else {
        json!({"name": name})
    };
    json!({"metadata": metadata, "versions": versions})
}

fn resource(resource: &Resource, version: &str) -> Value {
    let scope = match resource.scope {
        Scope::Namespaced => "Namespaced",
        Scope::Cluster => "Cluster",
    };
    let kind =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let own = &resource.id.group;
    let subresources: Vec<Value> = resource
        .subresources
        .iter()
        .filter_map(|one| {
            let offer = legacy::subresource(resource, *one)?;
            let (group, version) = offer.of.unwrap_or((own, version));
            Some(json!({"subresource": one.name(), "responseKind": kind(group, version, &offer.kind), "verbs": offer.verbs}))
        })
        .collect();
    let mut value = json!({
        "resource": resource.id.plural.as_ref(), "responseKind": kind(own, version, &resource.kind), "scope": scope,
        "singularResource": resource.singular, "verbs": legacy::verbs(resource),
    });
    if let Value::Object(members) = &mut value {
        let lists = [
            ("shortNames", &resource.short_names),
            ("categories", &resource.categories),
        ];
        for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            members.insert(name.into(), list.clone().into());
        }
        if !subresources.is_empty() {
            members.insert("subresources".into(), subresources.into());
        }
    }
    value
}
