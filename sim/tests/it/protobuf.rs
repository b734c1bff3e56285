//! Bodies in Kubernetes' binary encoding, which typed clients send.

use kruise_sim::{Method, Request};
use serde_json::json;

use crate::server::Server;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A field with a message or text.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2, u8::try_from(value.len()).unwrap()];
    out.extend(value);
    out
}

fn body(api_version: &str, kind: &str, object: &[Vec<u8>]) -> Vec<u8> {
    let names = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &names), field(2, &object.concat())].concat()
}

fn send(server: &mut Server, method: Method, target: &str, body: Vec<u8>) -> (u16, serde_json::Value) {
    let mut request = Request::new(method, target, None)
        .content_type(PROTOBUF)
        .accept("application/vnd.kubernetes.protobuf,application/json");
    request.body = body;
    server.send(&request)
}

fn config_map(name: &str) -> Vec<Vec<u8>> {
    let data = [field(1, b"k"), field(2, b"v")].concat();
    vec![field(1, &field(1, name.as_bytes())), field(2, &data)]
}

#[test]
fn an_object_is_created_and_replaced() {
    let mut server = Server::new();
    let (code, made) = send(
        &mut server,
        Method::Post,
        CONFIG_MAPS,
        body("v1", "ConfigMap", &config_map("a")),
    );
    assert_eq!((code, &made["data"]), (201, &json!({"k": "v"})), "{made}");
    let target = format!("{CONFIG_MAPS}/a");
    let (code, found) = send(
        &mut server,
        Method::Put,
        &target,
        body("", "", &[field(1, &field(1, b"a"))]),
    );
    assert_eq!((code, found.get("data")), (200, None), "{found}");
    assert_eq!(found["kind"], "ConfigMap");
}

#[test]
fn options_of_a_deletion_count() {
    let mut server = Server::new();
    send(
        &mut server,
        Method::Post,
        CONFIG_MAPS,
        body("v1", "ConfigMap", &config_map("a")),
    );
    let target = format!("{CONFIG_MAPS}/a");
    let wrong = field(2, &field(1, b"11111111-1111-4111-8111-111111111111"));
    let (code, failure) = send(
        &mut server,
        Method::Delete,
        &target,
        body("v1", "DeleteOptions", &[wrong]),
    );
    assert_eq!((code, &failure["reason"]), (409, &json!("Conflict")));
    let orphan = field(4, b"Sideways");
    let (code, _) = send(
        &mut server,
        Method::Delete,
        &target,
        body("v1", "DeleteOptions", &[orphan]),
    );
    assert_eq!(code, 422);
    let (code, _) = send(
        &mut server,
        Method::Delete,
        &target,
        body("v1", "DeleteOptions", &[]),
    );
    assert_eq!(code, 200);
    assert_eq!(server.get(&target).0, 404);
}

#[test]
fn an_eviction_must_name_its_pod() {
    let mut server = Server::new();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(server.post(pods, &pod).0, 201);
    let evict = |server: &mut Server, name: &str| {
        let eviction = body("policy/v1", "Eviction", &[field(1, &field(1, name.as_bytes()))]);
        send(server, Method::Post, &format!("{pods}/p/eviction"), eviction).0
    };
    assert_eq!(evict(&mut server, "other"), 400);
    assert_eq!(evict(&mut server, "p"), 201);
    assert_eq!(server.get(&format!("{pods}/p")).0, 404);
}

#[test]
fn what_is_no_object_is_refused_and_changes_nothing() {
    let mut server = Server::new();
    let before = server.api.revision();
    for bytes in [
        b"".to_vec(),
        b"{}".to_vec(),
        b"k8s\0\x0a\xff".to_vec(),
        body("v1", "Pod", &config_map("a")),
        body("v1", "ConfigMap", &[vec![8, 1]]),
        body("v1", "ConfigMap", &[b"\x0a\x7fshort".to_vec()]),
        // no name
        body("v1", "ConfigMap", &[]),
    ] {
        let (code, failure) = send(&mut server, Method::Post, CONFIG_MAPS, bytes);
        assert!(code == 400 || code == 422, "{failure}");
    }
    assert_eq!(server.api.revision(), before);
}

#[test]
fn definitions_and_custom_resources_come_as_json_only() {
    let mut server = Server::new();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let bytes = body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &[]);
    assert_eq!(send(&mut server, Method::Post, definitions, bytes).0, 415);
}

#[test]
fn answers_are_json_and_a_client_that_takes_none_is_refused() {
    let mut server = Server::new();
    let request = Request::new(Method::Get, CONFIG_MAPS, None).accept(PROTOBUF);
    assert_eq!(server.send(&request).0, 406);
}
