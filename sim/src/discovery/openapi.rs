//! As much of OpenAPI as kubectl needs: which operations validate fields, which patches a kind takes, and the schemas
//! that it explains and merges by.

mod schema;

use serde_json::{Map, Value, json};

use super::legacy;
use crate::registry::{Registry, Resource};
use crate::verbs::patch_media;
use crate::wire::Response;

/// Version 2, which kubectl reads to check the objects of a list: a document without definitions leaves that to the
/// server. It is protobuf: `swagger: "2.0"`, and an empty `info`.
const VERSION_2: &[u8] = b"\x0a\x032.0\x12\x00";

pub(super) fn version_2(accept: &str) -> Response {
    if !accept.contains("protobuf") {
        let info = json!({"title": "Kubernetes", "version": VERSION});
        return Response::json(200, &json!({"swagger": "2.0", "info": info, "paths": {}}));
    }
    Response {
        content_type: "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        ..Response::bytes(200, VERSION_2.to_vec())
    }
}

pub(super) fn respond(registry: &Registry, path: &str) -> Option<Response> {
    let rest = path.strip_prefix("/openapi/v3")?;
    match rest.trim_matches('/') {
        "" => Some(index(registry)),
        place => document(registry, place),
    }
}

const VERSION: &str = "v1.34.2";

fn place(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

fn index(registry: &Registry) -> Response {
    let mut paths = Map::new();
    let groups = std::iter::once(String::new()).chain(legacy::group_names(registry));
    for group in groups {
        for version in legacy::versions(registry, &group) {
            let place = place(&group, &version);
            let url = json!({"serverRelativeURL": format!("/openapi/v3/{place}")});
            paths.insert(place, url);
        }
    }
    Response::json(200, &json!({"paths": paths}))
}

fn document(registry: &Registry, wanted: &str) -> Option<Response> {
    let (root, version) = wanted.rsplit_once('/')?;
    let group = root.strip_prefix("apis/").unwrap_or_default();
    if place(group, version) != wanted || !registry.serves(group, version) {
        return None;
    }
    let of = || {
        let all = registry.all().map(AsRef::as_ref);
        all.filter(|one: &&Resource| one.id.group.as_ref() == group && one.version(version).is_some())
    };
    let paths: Map<String, Value> = of().map(|one| path_item(one, wanted, version)).collect();
    let schemas = schema::schemas(of(), version);
    let info = json!({"title": "Kubernetes", "version": VERSION});
    Some(Response::json(
        200,
        &json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}),
    ))
}

/// The path of one object, whose operations say that they validate fields, and which patches they take.
fn path_item(resource: &Resource, root: &str, version: &str) -> (String, Value) {
    let namespace = if resource.is_namespaced() {
        "namespaces/{namespace}/"
    } else {
        ""
    };
    let path = format!("/{root}/{namespace}{}/{{name}}", resource.id.plural);
    let kind =
        json!({"group": resource.id.group.as_ref(), "version": version, "kind": resource.kind.as_ref()});
    let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
    let operation = |action: &str| {
        json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind,
            "parameters": [parameter("dryRun"), parameter("fieldValidation")], "responses": {},
        })
    };
    let shown = schema::name(resource, version).unwrap_or_default();
    let content = json!({"application/json": {"schema": {"$ref": format!("#/components/schemas/{shown}")}}});
    let get = json!({
        "x-kubernetes-action": "get", "x-kubernetes-group-version-kind": kind,
        "responses": {"200": {"description": "OK", "content": content}},
    });
    let mut patch = operation("patch");
    let media: Map<String, Value> = patch_media(resource)
        .map(|media| (media.to_owned(), json!({})))
        .collect();
    if let Value::Object(members) = &mut patch {
        members.insert("requestBody".to_owned(), json!({"content": media}));
    }
    (path, json!({"get": get, "patch": patch, "put": operation("put")}))
}
