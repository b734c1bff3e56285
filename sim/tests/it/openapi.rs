//! The OpenAPI documents hold together.

use serde_json::{Value, json};

use crate::server::Server;

fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(target)) = members.get("$ref") {
                found.push(target);
            }
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_kind_has_a_schema() {
    let mut server = Server::new();
    let (_, index) = server.get("/openapi/v3");
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.len() > 8, "{index}");
    for (name, place) in paths {
        let (code, document) = server.get(place["serverRelativeURL"].as_str().unwrap());
        assert_eq!(code, 200, "{name}");
        let mut found = Vec::new();
        references(&document, &mut found);
        for target in found {
            let pointer = target.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{name}: {target}");
        }
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for (path, item) in document["paths"].as_object().unwrap() {
            let kind = &item["get"]["x-kubernetes-group-version-kind"];
            let has = |schema: &Value| schema["x-kubernetes-group-version-kind"] == json!([kind]);
            assert!(schemas.values().any(has), "{path}");
        }
    }
}

#[test]
fn schemas_know_types_and_how_lists_merge() {
    let mut server = Server::new();
    let (_, document) = server.get("/openapi/v3/api/v1");
    let schemas = &document["components"]["schemas"];
    let spec = &schemas["io.k8s.api.core.v1.PodSpec"];
    let containers = &spec["properties"]["containers"];
    assert_eq!(
        containers["items"],
        json!({"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"})
    );
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(spec["required"], json!(["containers"]));
    assert_eq!(
        spec["properties"]["terminationGracePeriodSeconds"],
        json!({"type": "integer", "format": "int64"})
    );
}

/// Does a document say that a kind is patched strategically? kubectl applies by that.
fn takes_strategic(document: &Value, path: &str) -> bool {
    let content = &document["paths"][path]["patch"]["requestBody"]["content"];
    assert!(
        content["application/merge-patch+json"].is_object(),
        "{path}: {content}"
    );
    content["application/strategic-merge-patch+json"].is_object()
}

#[test]
fn built_in_kinds_are_patched_strategically_and_definitions_are_among_them() {
    let mut server = Server::new();
    for (document, path) in [
        ("/openapi/v3/api/v1", "/api/v1/namespaces/{namespace}/pods/{name}"),
        (
            "/openapi/v3/apis/apiextensions.k8s.io/v1",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}",
        ),
    ] {
        assert!(takes_strategic(&server.get(document).1, path), "{path}");
    }
}

#[test]
fn a_custom_resource_brings_its_own_schema() {
    let mut server = Server::new();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "description": "What is wanted.",
        "properties": {"size": {"type": "integer"}}}}});
    let definition = json!({"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com",
        "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(server.post(definitions, &definition).0, 201);
    let (_, document) = server.get("/openapi/v3/apis/example.com/v1");
    assert!(!takes_strategic(
        &document,
        "/apis/example.com/v1/namespaces/{namespace}/things/{name}"
    ));
    let thing = &document["components"]["schemas"]["com.example.v1.Thing"]["properties"];
    assert_eq!(thing["spec"]["description"], "What is wanted.");
    assert_eq!(
        thing["metadata"]["$ref"],
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
}
