//! Custom resources in versions that are not stored.
//!
//! The converter in here renames `spec.size` of `v1` to `spec.count` of `v2`, which is stored, and notes its work in an
//! annotation.

use kruise_sim::{Method, Outcome, Request, WebhookCall, WebhookReply};
use serde_json::{Value, json};

use crate::server::Server;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/example.com/v1/namespaces/default/things";
const V2: &str = "/apis/example.com/v2/namespaces/default/things";

fn definition(strategy: &str) -> Value {
    let version = |name: &str, member: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage,
            "subresources": {"status": {}, "scale": {"specReplicasPath": format!(".spec.{member}"),
                "statusReplicasPath": ".status.seen"}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {
                    member: {"type": "integer", "minimum": 0}, format!("mode-{name}"): {"type": "string", "default": "x"}}},
                "status": {"type": "object", "properties": {"seen": {"type": "integer"}}}}}}})
    };
    json!({"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "conversion": {"strategy": strategy, "webhook": {"conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://localhost/convert", "caBundle": "Y2E="}}},
        "versions": [version("v1", "size", false), version("v2", "count", true)]}})
}

fn server() -> Server {
    let mut server = Server::new();
    assert_eq!(server.post(DEFINITIONS, &definition("Webhook")).0, 201);
    server
}

fn converted(object: &Value, wanted: &str) -> Value {
    let mut object = object.clone();
    let (from, to) = if wanted == "example.com/v1" {
        ("count", "size")
    } else {
        ("size", "count")
    };
    object["apiVersion"] = wanted.into();
    if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
        object["spec"][to] = value;
    }
    object["metadata"]["annotations"]["converted-to"] = wanted.into();
    // what a webhook makes of other metadata is not taken
    object["metadata"]["generation"] = 99.into();
    object
}

fn reply(call: &WebhookCall, change: impl Fn(&mut Value)) -> WebhookReply {
    assert_eq!(call.review["kind"], "ConversionReview");
    assert_eq!(call.review["apiVersion"], "apiextensions.k8s.io/v1");
    let request = &call.review["request"];
    let wanted = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap();
    let objects: Vec<Value> = objects.iter().map(|object| converted(object, wanted)).collect();
    let mut review = json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": {
        "uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}});
    change(&mut review["response"]);
    WebhookReply::Review(review)
}

fn convert(call: &WebhookCall) -> WebhookReply {
    reply(call, |_| {})
}

/// Sends a request and converts whatever is requested. Returns the answer and how many objects each call had.
fn send(server: &mut Server, request: &Request) -> (u16, Value, Vec<usize>) {
    let mut outcome = server.api.handle(request, server.now);
    let mut sizes = Vec::new();
    while let Outcome::Call(call) = outcome {
        sizes.push(call.review["request"]["objects"].as_array().unwrap().len());
        outcome = server.resume(call.id, convert(&call));
    }
    let response = outcome.response().unwrap();
    (response.code, response.value(), sizes)
}

fn request(method: Method, target: &str, body: Option<&Value>) -> Request {
    Request::new(method, target, body)
}

fn thing(name: &str, member: &str, value: i64) -> Value {
    json!({"metadata": {"name": name}, "spec": {member: value}})
}

fn needed_call(server: &mut Server, request: &Request) -> WebhookCall {
    match server.api.handle(request, server.now) {
        Outcome::Call(call) => *call,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_list_is_converted_in_one_call_and_what_is_stored_in_none() {
    let mut server = server();
    for name in ["a", "b", "c"] {
        assert_eq!(server.post(V2, &thing(name, "count", 2)).0, 201);
    }
    let (code, list, sizes) = send(&mut server, &request(Method::Get, V1, None));
    assert_eq!((code, sizes), (200, vec![3]));
    let items = list["items"].as_array().unwrap();
    let names: Vec<&Value> = items.iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(items[0]["apiVersion"], "example.com/v1");
    // pruned and defaulted by the schema of the version
    assert_eq!(items[0]["spec"], json!({"size": 2, "mode-v1": "x"}));
    assert_eq!(items[0]["metadata"]["generation"], 1);
    assert_eq!(
        items[0]["metadata"]["annotations"]["converted-to"],
        "example.com/v1"
    );
    let stored = server.get(V2).1;
    assert_eq!(
        stored["items"][0]["spec"],
        json!({"count": 2, "mode-v2": "x"}),
        "no webhook was called"
    );
    assert_eq!(
        list["metadata"]["resourceVersion"],
        stored["metadata"]["resourceVersion"]
    );
}

#[test]
fn a_list_that_grew_meanwhile_converts_the_new_object_only() {
    let mut server = server();
    server.post(V2, &thing("a", "count", 1));
    let first = needed_call(&mut server, &request(Method::Get, V1, None));
    server.post(V2, &thing("b", "count", 1));
    let Outcome::Call(second) = server.resume(first.id, convert(&first)) else {
        panic!("the new object must be converted");
    };
    let objects = second.review["request"]["objects"].as_array().unwrap();
    assert_eq!(objects.len(), 1);
    assert_eq!(objects[0]["metadata"]["name"], "b");
    let list = server
        .resume(second.id, convert(&second))
        .response()
        .unwrap()
        .value();
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
}

#[test]
fn writes_are_stored_converted_and_answered_in_their_own_version() {
    let mut server = server();
    let body = thing("a", "size", 3);
    let (code, created, sizes) = send(&mut server, &request(Method::Post, V1, Some(&body)));
    assert_eq!((code, sizes.len()), (201, 2), "there and back: {created}");
    assert_eq!(created["spec"]["size"], 3);
    let path = format!("{V2}/a");
    assert_eq!(server.get(&path).1["spec"]["count"], 3);
    assert_eq!(
        server.get(&path).1["metadata"]["resourceVersion"],
        created["metadata"]["resourceVersion"]
    );
    let read = send(&mut server, &request(Method::Get, &format!("{V1}/a"), None));
    assert_eq!(
        (read.1["spec"].clone(), read.1["metadata"]["uid"].clone()),
        (created["spec"].clone(), created["metadata"]["uid"].clone())
    );

    let target = format!("{V1}/a");
    let patch = json!({"spec": {"size": 4}});
    let patch = request(Method::Patch, &target, Some(&patch)).content_type("application/merge-patch+json");
    let (code, patched, _) = send(&mut server, &patch);
    assert_eq!((code, &patched["spec"]["size"]), (200, &json!(4)));
    assert_eq!(patched["metadata"]["generation"], 2);
    assert_eq!(server.get(&path).1["spec"]["count"], 4);

    let stale = send(&mut server, &request(Method::Put, &target, Some(&created)));
    assert_eq!(stale.0, 409, "{}", stale.1);
    let mut update = patched.clone();
    update["spec"]["size"] = 5.into();
    assert_eq!(
        send(&mut server, &request(Method::Put, &target, Some(&update))).0,
        200
    );
    assert_eq!(server.get(&path).1["spec"]["count"], 5);

    update["spec"]["size"] = (-1).into();
    update["metadata"]["resourceVersion"] = Value::Null;
    let (code, refused, _) = send(
        &mut server,
        &request(Method::Patch, &target, Some(&json!({"spec": {"size": -1}})))
            .content_type("application/merge-patch+json"),
    );
    assert_eq!(code, 422);
    assert!(
        refused["message"].as_str().unwrap().contains("spec.size"),
        "{refused}"
    );
}

#[test]
fn status_and_scale_are_those_of_the_version() {
    let mut server = server();
    server.post(V2, &thing("a", "count", 1));
    let status = json!({"status": {"seen": 7}});
    let target = format!("{V1}/a/status");
    let patch = request(Method::Patch, &target, Some(&status)).content_type("application/merge-patch+json");
    assert_eq!(send(&mut server, &patch).0, 200);
    assert_eq!(server.get(&format!("{V2}/a")).1["status"]["seen"], 7);
    let target = format!("{V1}/a/scale");
    let (_, scale, _) = send(&mut server, &request(Method::Get, &target, None));
    assert_eq!(
        (&scale["spec"]["replicas"], &scale["status"]["replicas"]),
        (&json!(1), &json!(7))
    );
    let wanted = json!({"spec": {"replicas": 9}});
    let patch = request(Method::Patch, &target, Some(&wanted)).content_type("application/merge-patch+json");
    let (code, scale, _) = send(&mut server, &patch);
    assert_eq!((code, &scale["spec"]["replicas"]), (200, &json!(9)));
    assert_eq!(server.get(&format!("{V2}/a")).1["spec"]["count"], 9);
}

#[test]
fn a_conversion_that_fails_fails_the_request_and_nothing_is_stored() {
    type Spoil = fn(&mut Value);
    let spoilt: [(Spoil, &str); 7] = [
        (
            |response| response["result"] = json!({"status": "Failure", "message": "no way"}),
            " failed: no way",
        ),
        (
            |response| response["convertedObjects"] = json!([]),
            " returned 0 objects, expected 1",
        ),
        (
            |response| response["convertedObjects"][0]["metadata"]["name"] = "other".into(),
            " returned invalid object: must have the same name: a != other",
        ),
        (
            |response| response["convertedObjects"][0]["apiVersion"] = "example.com/v3".into(),
            " returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v3)",
        ),
        (
            |response| response["convertedObjects"][0]["metadata"]["labels"] = json!({"a": 1}),
            " returned invalid metadata: metadata.labels must be a map of strings in converted object",
        ),
        (
            |response| *response = Value::Null,
            " failed: no response provided",
        ),
        (
            |response| response["uid"] = "other".into(),
            " failed: expected response.uid=",
        ),
    ];
    let mut server = server();
    let before = server.api.revision();
    let create = request(Method::Post, V1, Some(&thing("a", "size", 3)));
    for (spoil, why) in spoilt {
        let call = needed_call(&mut server, &create);
        let response = server.resume(call.id, reply(&call, spoil)).response().unwrap();
        let expected = format!("conversion webhook for example.com/v1, Kind=Thing{why}");
        let status = response.value();
        let message = status["message"].as_str().unwrap();
        assert!(message.starts_with(&expected), "{message} instead of {expected}");
        assert_eq!(response.code, 500);
    }
    let call = needed_call(&mut server, &create);
    let failed = WebhookReply::Failed("Post \"https://x\": refused".into());
    let response = server.resume(call.id, failed).response().unwrap();
    let status = response.value();
    assert_eq!(
        status["message"],
        "conversion webhook for example.com/v1, Kind=Thing failed: Post \"https://x\": refused"
    );
    assert_eq!(server.api.revision(), before);
}

#[test]
fn a_collection_is_deleted_once_all_is_converted() {
    let mut server = server();
    for name in ["a", "b"] {
        server.post(V2, &thing(name, "count", 2));
    }
    let before = server.api.revision();
    let mut outcome = server.api.handle(&request(Method::Delete, V1, None), server.now);
    while let Outcome::Call(call) = outcome {
        assert_eq!(server.api.revision(), before, "nothing goes before all is known");
        outcome = server.resume(call.id, convert(&call));
    }
    let response = outcome.response().unwrap();
    assert_eq!(response.value()["items"].as_array().unwrap().len(), 2);
    assert_eq!(server.get(V2).1["items"], json!([]));
}

#[test]
fn events_wait_for_their_conversion_and_stay_in_order() {
    let mut server = server();
    server.post(V2, &thing("a", "count", 1));
    let watch = server.watch(&format!("{V1}?watch=true&allowWatchBookmarks=true"));
    let stored = server.watch(&format!("{V2}?watch=true"));
    assert_eq!(server.events(watch), []);
    let [first] = server.api.calls().try_into().unwrap();
    server.post(V2, &thing("b", "count", 2));
    let target = format!("{V2}/a");
    server.patch("merge", &target, &json!({"spec": {"count": 5}}));
    server.delete(&format!("{V2}/b"), None);
    assert_eq!(server.events(watch), [], "still waiting");
    assert_eq!(server.api.calls(), [], "one call at a time");
    assert!(server.api.resume(first.id, convert(&first)).is_none());
    server.pass(61);
    let shown = server.events(watch);
    assert_eq!(shown.len(), 1, "the others wait: {shown:?}");
    let [second] = server.api.calls().try_into().unwrap();
    assert_eq!(second.review["request"]["objects"].as_array().unwrap().len(), 3);
    assert!(server.api.resume(second.id, convert(&second)).is_none());
    let shown = [shown, server.events(watch)].concat();
    let short = |events: &[(String, Value)], member: &str| -> Vec<Value> {
        let objects = events.iter().filter(|(kind, _)| kind != "BOOKMARK");
        objects
            .map(|(kind, object)| {
                let metadata = &object["metadata"];
                json!([
                    kind,
                    metadata["name"],
                    object["spec"][member],
                    metadata["resourceVersion"]
                ])
            })
            .collect()
    };
    assert_eq!(short(&shown, "size"), short(&server.events(stored), "count"));
    let kinds: Vec<&str> = shown.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["ADDED", "ADDED", "MODIFIED", "DELETED", "BOOKMARK"]);
    assert!(
        shown
            .iter()
            .all(|(_, object)| object["apiVersion"] == "example.com/v1")
    );
}

#[test]
fn a_watch_whose_conversion_fails_ends_with_an_error() {
    let mut server = server();
    let watch = server.watch(&format!("{V1}?watch=true"));
    assert_eq!(server.events(watch), []);
    assert_eq!(server.api.calls(), [], "nothing to convert");
    server.post(V2, &thing("a", "count", 1));
    assert_eq!(server.events(watch), []);
    let [call] = server.api.calls().try_into().unwrap();
    let failed = WebhookReply::Failed("refused".into());
    assert!(server.api.resume(call.id, failed).is_none());
    let events = server.events(watch);
    assert_eq!(
        (events[0].0.as_str(), &events[0].1["code"]),
        ("ERROR", &json!(500))
    );
    assert_eq!(events[1].0, "END");
    let closed = server.watch(&format!("{V1}?watch=true"));
    server.events(closed);
    let [call] = server.api.calls().try_into().unwrap();
    server.api.close_watch(closed);
    assert!(
        server.api.resume(call.id, convert(&call)).is_none(),
        "no request waits any more"
    );
}

#[test]
fn without_a_webhook_only_the_version_and_its_shape_change() {
    let mut server = Server::new();
    server.post(DEFINITIONS, &definition("None"));
    assert_eq!(server.post(V2, &thing("a", "count", 1)).0, 201);
    let (code, object) = server.get(&format!("{V1}/a"));
    assert_eq!((code, &object["apiVersion"]), (200, &json!("example.com/v1")));
    assert_eq!(object["spec"], json!({"mode-v1": "x"}));
}

#[test]
fn a_webhook_for_another_version_of_the_resource_is_called_in_that_version() {
    let mut server = server();
    for (policy, concerned) in [("Exact", false), ("Equivalent", true)] {
        let body = json!({"metadata": {"name": "hook"}, "webhooks": [{"name": "hook.example.com", "sideEffects": "None",
            "clientConfig": {"url": "https://localhost/x"}, "admissionReviewVersions": ["v1"], "matchPolicy": policy,
            "rules": [{"operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v2"],
                "resources": ["things"]}]}]});
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        assert_eq!(server.post(path, &body).0, 201);
        let create = request(Method::Post, V1, Some(&thing("a", "size", 3)));
        let mut outcome = server.api.handle(&create, server.now);
        let mut seen = Vec::new();
        while let Outcome::Call(call) = outcome {
            let request = &call.review["request"];
            let answer = if call.review["kind"] == "AdmissionReview" {
                seen.push(json!([
                    request["kind"]["version"],
                    request["requestKind"]["version"],
                    request["object"]["spec"]["count"]
                ]));
                WebhookReply::Review(
                    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
                    "response": {"uid": request["uid"], "allowed": true, "patchType": "JSONPatch",
                    // [{"op":"replace","path":"/spec/count","value":8}]
                    "patch": "W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6Ii9zcGVjL2NvdW50IiwidmFsdWUiOjh9XQ=="}}),
                )
            } else {
                convert(&call)
            };
            outcome = server.resume(call.id, answer);
        }
        let object = outcome.response().unwrap().value();
        let (reviews, size) = if concerned {
            (vec![json!(["v2", "v1", 3])], 8)
        } else {
            (vec![], 3)
        };
        assert_eq!(
            (seen, &object["spec"]["size"]),
            (reviews, &json!(size)),
            "{policy}"
        );
        server.delete(&format!("{path}/hook"), None);
        server.delete(&format!("{V2}/a"), None);
    }
}

#[test]
fn what_was_stored_in_another_version_is_converted_too() {
    let mut server = server();
    server.post(V2, &thing("a", "count", 1));
    let path = format!("{DEFINITIONS}/things.example.com");
    let mut changed = server.get(&path).1;
    for (index, storage) in [(0, true), (1, false)] {
        changed["spec"]["versions"][index]["storage"] = storage.into();
    }
    assert_eq!(server.put(&path, &changed).0, 200);
    let (code, object, sizes) = send(&mut server, &request(Method::Get, &format!("{V1}/a"), None));
    assert_eq!(
        (code, &object["apiVersion"], sizes.len()),
        (200, &json!("example.com/v1"), 1)
    );
    assert_eq!(object["spec"]["size"], 1);
    assert_eq!(
        server.get(&format!("{V2}/a")).1["spec"]["count"],
        1,
        "it still is v2"
    );
    let patch = request(
        Method::Patch,
        &format!("{V1}/a"),
        Some(&json!({"spec": {"size": 2}})),
    );
    let (code, _, _) = send(&mut server, &patch.content_type("application/merge-patch+json"));
    assert_eq!(code, 200);
    let (_, object, sizes) = send(&mut server, &request(Method::Get, &format!("{V1}/a"), None));
    assert_eq!(
        (&object["spec"]["size"], sizes),
        (&json!(2), vec![]),
        "now it is v1"
    );
}

#[test]
fn a_write_that_changes_nothing_stores_an_object_in_the_version_that_is_stored_now() {
    let mut server = server();
    let (_, stored) = server.post(V2, &thing("a", "count", 2));
    let path = format!("{V2}/a");
    // nothing to do as long as it is stored so
    let same =
        Request::new(Method::Patch, &path, Some(&json!({}))).content_type("application/merge-patch+json");
    let (code, unchanged, _) = send(&mut server, &same);
    assert_eq!(
        (code, &unchanged["metadata"]["resourceVersion"]),
        (200, &stored["metadata"]["resourceVersion"])
    );
    let name = format!("{DEFINITIONS}/things.example.com");
    let (_, mut found) = server.get(&name);
    for version in found["spec"]["versions"].as_array_mut().unwrap() {
        version["storage"] = json!(version["name"] == "v1");
    }
    assert_eq!(server.put(&name, &found).0, 200);
    let (code, rewritten, _) = send(&mut server, &same);
    assert_eq!(code, 200);
    assert_ne!(
        rewritten["metadata"]["resourceVersion"],
        stored["metadata"]["resourceVersion"]
    );
    assert_eq!(rewritten["metadata"]["generation"], 1);
    // reads as it is stored, without a conversion
    let (code, read, sizes) = send(&mut server, &request(Method::Get, &format!("{V1}/a"), None));
    assert_eq!((code, &read["spec"]["size"], sizes), (200, &json!(2), vec![]));
}
