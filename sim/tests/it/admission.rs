//! Webhooks are called, and their answers obeyed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kruise_sim::{Method, Outcome, Request, WebhookCall, WebhookReply};
use serde_json::{Value, json};

use crate::server::Server;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Registers a webhook for config maps; `extra` is merged into it.
fn register(server: &mut Server, kind: &str, name: &str, extra: Value) {
    let mut webhook = json!({
        "name": format!("{name}.example.com"), "clientConfig": {"url": "https://localhost/x"}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [{"operations": ["CREATE", "UPDATE", "DELETE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"]}],
    });
    webhook
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    let plural = format!("{kind}webhookconfigurations");
    let body = json!({"metadata": {"name": name}, "webhooks": [webhook]});
    let (code, answer) = server.post(&format!("/apis/admissionregistration.k8s.io/v1/{plural}"), &body);
    assert_eq!(code, 201, "{answer}");
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"k": "v"}})
}

fn call(outcome: Outcome) -> WebhookCall {
    match outcome {
        Outcome::Call(call) => *call,
        other => panic!("no call: {other:?}"),
    }
}

fn answer(call: &WebhookCall, mut response: Value) -> WebhookReply {
    response["uid"] = call.review["request"]["uid"].clone();
    WebhookReply::Review(
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}),
    )
}

fn allow(call: &WebhookCall, patch: Option<Value>) -> WebhookReply {
    let mut response = json!({"allowed": true});
    if let Some(patch) = patch {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(patch.to_string()).into();
    }
    answer(call, response)
}

fn add_label(name: &str) -> Value {
    json!([{"op": "add", "path": "/metadata/labels", "value": {name: "1"}}])
}

fn create(server: &mut Server, name: &str) -> Outcome {
    let request = Request::new(Method::Post, MAPS, Some(&map(name)));
    server.api.handle(&request, server.now)
}

#[test]
fn a_mutating_webhook_changes_what_is_stored() {
    let mut server = Server::new();
    register(&mut server, "mutating", "m", json!({}));
    let before = server.api.revision();
    let sent = call(create(&mut server, "a"));
    assert_eq!(sent.webhook, "m.example.com");
    assert_eq!(sent.client, json!({"url": "https://localhost/x"}));
    let request = &sent.review["request"];
    assert_eq!(
        (&request["operation"], &request["name"]),
        (&json!("CREATE"), &json!("a"))
    );
    assert_eq!(request["object"]["data"], json!({"k": "v"}));
    assert_eq!(request["oldObject"], Value::Null);
    assert_eq!(
        server.api.revision(),
        before,
        "nothing is stored while a webhook is called"
    );
    let response = server
        .resume(sent.id, allow(&sent, Some(add_label("x"))))
        .response()
        .unwrap();
    assert_eq!(response.code, 201);
    assert_eq!(response.value()["metadata"]["labels"], json!({"x": "1"}));
    assert_eq!(server.get(&format!("{MAPS}/a")).1, response.value());
}

#[test]
fn warnings_of_webhooks_reach_the_client_each_once() {
    let mut server = Server::new();
    register(&mut server, "mutating", "m", json!({}));
    register(&mut server, "validating", "v", json!({}));
    let warned = |server: &mut Server, outcome: Outcome| {
        let first = call(outcome);
        let reply = json!({"allowed": true, "warnings": ["careful", "of the first"]});
        let second = call(server.resume(first.id, answer(&first, reply)));
        let reply = json!({"allowed": true, "warnings": ["careful", "of the second"]});
        let ended = server.resume(second.id, answer(&second, reply));
        ended.response().unwrap().warnings
    };
    let created = create(&mut server, "a");
    let expected = ["careful", "of the first", "of the second"];
    assert_eq!(warned(&mut server, created), expected);
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "other"}});
    let update = Request::new(Method::Put, &format!("{MAPS}/a"), Some(&body));
    let updated = server.api.handle(&update, server.now);
    assert_eq!(warned(&mut server, updated), expected);
}

#[test]
fn a_validating_webhook_sees_the_result_and_may_refuse() {
    let mut server = Server::new();
    register(&mut server, "mutating", "m", json!({}));
    register(&mut server, "validating", "v", json!({}));
    let first = call(create(&mut server, "a"));
    let second = call(server.resume(first.id, allow(&first, Some(add_label("x")))));
    assert_eq!(second.webhook, "v.example.com");
    let object = &second.review["request"]["object"];
    assert_eq!(object["metadata"]["labels"], json!({"x": "1"}));
    assert!(object["metadata"]["uid"].is_string());
    let refusal =
        json!({"allowed": false, "status": {"message": "not today", "code": 422, "reason": "Invalid"}});
    let response = server
        .resume(second.id, answer(&second, refusal))
        .response()
        .unwrap();
    let status = response.value();
    assert_eq!((response.code, &status["reason"]), (422, &json!("Invalid")));
    assert_eq!(
        status["message"],
        "admission webhook \"v.example.com\" denied the request: not today"
    );
    assert_eq!(server.get(&format!("{MAPS}/a")).0, 404);
}

#[test]
fn an_unreachable_webhook_blocks_unless_it_may_be_ignored() {
    for (policy, code) in [("Fail", 500), ("Ignore", 201)] {
        let mut server = Server::new();
        register(&mut server, "validating", "v", json!({"failurePolicy": policy}));
        let sent = call(create(&mut server, "a"));
        let failed = WebhookReply::Failed("connection refused".into());
        let response = server.resume(sent.id, failed).response().unwrap();
        assert_eq!(response.code, code, "{policy}");
        assert_eq!(
            server
                .resume(sent.id, allow(&sent, None))
                .response()
                .unwrap()
                .code,
            500,
            "answered once"
        );
    }
}

#[test]
fn selectors_rules_and_namespaces_keep_requests_out() {
    let mut server = Server::new();
    register(
        &mut server,
        "validating",
        "a",
        json!({"objectSelector": {"matchLabels": {"in": "1"}}}),
    );
    register(
        &mut server,
        "validating",
        "b",
        json!({"namespaceSelector": {"matchExpressions":
        [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]}]}}),
    );
    register(
        &mut server,
        "validating",
        "c",
        json!({"rules": [{"operations": ["CREATE"], "apiGroups": [""],
        "apiVersions": ["v1"], "resources": ["configmaps/status", "pods/*"]}]}),
    );
    assert_eq!(create(&mut server, "x").response().unwrap().code, 201);
    let labelled = json!({"metadata": {"name": "y", "labels": {"in": "1"}}});
    let request = Request::new(Method::Post, MAPS, Some(&labelled));
    assert_eq!(
        call(server.api.handle(&request, server.now)).webhook,
        "a.example.com"
    );
}

#[test]
fn a_webhook_is_called_again_after_a_later_change() {
    let mut server = Server::new();
    register(
        &mut server,
        "mutating",
        "first",
        json!({"reinvocationPolicy": "IfNeeded"}),
    );
    register(&mut server, "mutating", "second", json!({}));
    let first = call(create(&mut server, "a"));
    let second = call(server.resume(first.id, allow(&first, None)));
    let third = call(server.resume(second.id, allow(&second, Some(add_label("x")))));
    assert_eq!(
        [&*second.webhook, &*third.webhook],
        ["second.example.com", "first.example.com"]
    );
    assert_eq!(
        third.review["request"]["object"]["metadata"]["labels"],
        json!({"x": "1"})
    );
    assert_eq!(
        server
            .resume(third.id, allow(&third, None))
            .response()
            .unwrap()
            .code,
        201
    );
}

#[test]
fn an_update_that_meets_a_conflict_calls_anew() {
    let mut server = Server::new();
    server.post(MAPS, &map("a"));
    register(&mut server, "validating", "v", json!({}));
    let target = format!("{MAPS}/a");
    let patch = |server: &mut Server, key: &str| {
        let request = Request::new(Method::Patch, &target, Some(&json!({"data": {key: "new"}})));
        let request = request.content_type("application/merge-patch+json");
        call(server.api.handle(&request, server.now))
    };
    let slow = patch(&mut server, "slow");
    let fast = patch(&mut server, "fast");
    assert_eq!(
        server
            .resume(fast.id, allow(&fast, None))
            .response()
            .unwrap()
            .code,
        200
    );
    let again = call(server.resume(slow.id, allow(&slow, None)));
    assert_eq!(again.review["request"]["oldObject"]["data"]["fast"], "new");
    let response = server.resume(again.id, allow(&again, None)).response().unwrap();
    assert_eq!(
        response.value()["data"],
        json!({"k": "v", "fast": "new", "slow": "new"})
    );
}

#[test]
fn conditions_decide_whether_a_webhook_is_called() {
    let mut server = Server::new();
    let condition = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    register(
        &mut server,
        "validating",
        "v",
        condition("request.operation != 'DELETE' || (oldObject != null && has(oldObject.metadata.labels))"),
    );
    let sent = call(create(&mut server, "a"));
    assert_eq!(
        server
            .resume(sent.id, allow(&sent, None))
            .response()
            .unwrap()
            .code,
        201
    );
    assert_eq!(
        server.delete(&format!("{MAPS}/a"), None).0,
        200,
        "no webhook is called"
    );
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    for (policy, code) in [("Fail", 403), ("Ignore", 201)] {
        server.delete(&format!("{path}/v"), None);
        let mut extra = condition("object.absent == 1");
        extra["failurePolicy"] = policy.into();
        register(&mut server, "validating", "v", extra);
        let response = create(&mut server, "b").response().unwrap();
        assert_eq!(response.code, code, "{policy}");
        if policy == "Fail" {
            assert_eq!(
                response.value()["message"],
                "configmaps \"b\" is forbidden: expression 'object.absent == 1' resulted in error: no such key: absent"
            );
        }
    }
}

#[test]
fn conditions_that_are_not_understood_are_refused() {
    let mut server = Server::new();
    let webhook = json!({"name": "v.example.com", "clientConfig": {"url": "https://localhost/x"}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "matchConditions": [
            {"name": "c", "expression": "true"}, {"name": "c", "expression": "object.name.matches('x')"}]});
    let body = json!({"metadata": {"name": "v"}, "webhooks": [webhook]});
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let (code, status) = server.post(path, &body);
    assert_eq!(code, 422);
    let fields: Vec<&Value> = status["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| &cause["field"])
        .collect();
    assert_eq!(
        fields,
        [
            "webhooks[0].matchConditions[1].name",
            "webhooks[0].matchConditions[1].expression"
        ]
    );
}

#[test]
fn an_answer_to_another_review_is_none() {
    let mut server = Server::new();
    register(&mut server, "validating", "v", json!({}));
    let first = call(create(&mut server, "a"));
    let second = call(create(&mut server, "a"));
    let response = server.resume(first.id, allow(&second, None)).response().unwrap();
    let (sent, given) = (&first.review["request"]["uid"], &second.review["request"]["uid"]);
    assert_eq!(
        response.value()["message"],
        format!(
            "Internal error occurred: failed calling webhook \"v.example.com\": received invalid webhook response: \
             expected response.uid={sent}, got {given}"
        )
    );
    assert_eq!(server.get(&format!("{MAPS}/a")).0, 404);
}

/// A webhook whose rules are about `resources` of any group.
fn for_resources(resources: &[&str]) -> Value {
    json!({"rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources}]})
}

#[test]
fn operations_may_be_all() {
    let mut server = Server::new();
    register(&mut server, "validating", "v", for_resources(&["*"]));
    call(create(&mut server, "a"));
}

#[test]
fn scaling_is_admitted_as_a_scale() {
    let mut server = Server::new();
    let labels = json!({"app": "web"});
    let deployment = json!({"metadata": {"name": "web"}, "spec": {"replicas": 1, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let path = "/apis/apps/v1/namespaces/default/deployments";
    assert_eq!(server.post(path, &deployment).0, 201);
    register(&mut server, "mutating", "whole", for_resources(&["deployments"]));
    register(
        &mut server,
        "mutating",
        "scale",
        for_resources(&["deployments/scale"]),
    );
    let target = format!("{path}/web/scale");
    let patch = Request::new(Method::Patch, &target, Some(&json!({"spec": {"replicas": 5}})));
    let patch = patch.content_type("application/merge-patch+json");
    let sent = call(server.api.handle(&patch, server.now));
    assert_eq!(sent.webhook, "scale.example.com");
    let request = &sent.review["request"];
    assert_eq!(
        request["kind"],
        json!({"group": "autoscaling", "version": "v1", "kind": "Scale"})
    );
    assert_eq!(
        (&request["resource"]["resource"], &request["subResource"]),
        (&json!("deployments"), &json!("scale"))
    );
    assert_eq!(
        (
            &request["object"]["spec"]["replicas"],
            &request["oldObject"]["spec"]["replicas"]
        ),
        (&json!(5), &json!(1))
    );
    let less = json!([{"op": "replace", "path": "/spec/replicas", "value": 3}]);
    let scaled = server
        .resume(sent.id, allow(&sent, Some(less)))
        .response()
        .unwrap();
    assert_eq!(
        (scaled.code, &scaled.value()["spec"]["replicas"]),
        (200, &json!(3))
    );
    assert_eq!(server.get(&format!("{path}/web")).1["spec"]["replicas"], 3);
}

#[test]
fn an_eviction_is_admitted_instead_of_the_deletion() {
    let mut server = Server::new();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(server.post(pods, &pod).0, 201);
    register(&mut server, "validating", "pods", for_resources(&["pods"]));
    register(
        &mut server,
        "validating",
        "evictions",
        for_resources(&["pods/eviction"]),
    );
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
    let evict = Request::new(Method::Post, &format!("{pods}/a/eviction"), Some(&eviction));
    let sent = call(server.api.handle(&evict, server.now));
    assert_eq!(sent.webhook, "evictions.example.com");
    assert_eq!(sent.review["request"]["operation"], "CREATE");
    assert_eq!(sent.review["request"]["kind"]["kind"], "Eviction");
    assert_eq!(
        server
            .resume(sent.id, allow(&sent, None))
            .response()
            .unwrap()
            .code,
        201
    );
    assert_eq!(server.get(&format!("{pods}/a")).0, 404);
}

#[test]
fn an_eviction_is_admitted_before_anybody_looks_for_the_pod_and_shows_a_dry_run_in_its_body() {
    let mut server = Server::new();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(server.post(pods, &pod).0, 201);
    register(
        &mut server,
        "validating",
        "evictions",
        for_resources(&["pods/eviction"]),
    );
    let evict = |server: &mut Server, name: &str, options: Value, query: &str| {
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
            "deleteOptions": options});
        let path = format!("{pods}/{name}/eviction{query}");
        let sent = call(
            server
                .api
                .handle(&Request::new(Method::Post, &path, Some(&eviction)), server.now),
        );
        let request = &sent.review["request"];
        assert_eq!(
            (&request["name"], &request["namespace"]),
            (&json!(name), &json!("default"))
        );
        assert_eq!(request["oldObject"], Value::Null);
        let dry_run = request["dryRun"].clone();
        let in_body = request["object"]["deleteOptions"]["dryRun"].clone();
        let code = server
            .resume(sent.id, allow(&sent, None))
            .response()
            .unwrap()
            .code;
        (code, dry_run, in_body)
    };
    let all = json!({"dryRun": ["All"]});
    assert_eq!(
        evict(&mut server, "a", all.clone(), ""),
        (201, json!(false), json!(["All"]))
    );
    assert_eq!(
        evict(&mut server, "a", json!({}), "?dryRun=All"),
        (201, json!(true), Value::Null)
    );
    assert_eq!(server.get(&format!("{pods}/a")).0, 200, "dry runs delete nothing");
    assert_eq!(
        evict(&mut server, "gone", json!({}), ""),
        (404, json!(false), Value::Null)
    );
    assert_eq!(
        evict(&mut server, "a", json!({}), ""),
        (201, json!(false), Value::Null)
    );
    assert_eq!(server.get(&format!("{pods}/a")).0, 404);
}

#[test]
fn a_resize_and_a_deletion_show_the_pod_as_it_was_to_conditions_and_webhooks() {
    let mut server = Server::new();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, guarded: bool| {
        let annotations = if guarded {
            json!({"guard/by": "web"})
        } else {
            json!({})
        };
        json!({"metadata": {"name": name, "annotations": annotations}, "spec": {"containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}})
    };
    for (name, guarded) in [("a", true), ("b", false)] {
        assert_eq!(server.post(pods, &pod(name, guarded)).0, 201);
    }
    let mut guarded = for_resources(&["pods", "pods/resize"]);
    guarded["matchConditions"] = json!([{"name": "guarded", "expression":
        "oldObject != null && has(oldObject.metadata.annotations) && 'guard/by' in oldObject.metadata.annotations && \
         !has(oldObject.metadata.deletionTimestamp) && request.namespace in ['default', 'shop'] && \
         (request.operation == 'DELETE' || object.spec != oldObject.spec)"}]);
    register(&mut server, "validating", "guards", guarded);
    let resize = |server: &mut Server, name: &str, cpu: &str| {
        let body = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}});
        let request = Request::new(Method::Patch, &format!("{pods}/{name}/resize"), Some(&body));
        let request = request.content_type("application/strategic-merge-patch+json");
        server.api.handle(&request, server.now)
    };
    let cpu = "/spec/containers/0/resources/requests/cpu";
    let sent = call(resize(&mut server, "a", "2"));
    let request = sent.review["request"].clone();
    assert_eq!(
        (&request["operation"], &request["subResource"]),
        (&json!("UPDATE"), &json!("resize"))
    );
    assert_eq!(request["oldObject"].pointer(cpu), Some(&json!("1")));
    assert_eq!(request["object"].pointer(cpu), Some(&json!("2")));
    server.resume(sent.id, allow(&sent, None)).response().unwrap();
    let same = resize(&mut server, "a", "2").response();
    assert_eq!(same.map(|response| response.code), Some(200), "nothing changes");
    let other = resize(&mut server, "b", "2").response();
    assert_eq!(
        other.map(|response| response.code),
        Some(200),
        "nothing guards it"
    );
    let delete = Request::new(Method::Delete, &format!("{pods}/a?dryRun=All"), None::<&Value>);
    let sent = call(server.api.handle(&delete, server.now));
    let request = &sent.review["request"];
    assert_eq!(
        (&request["operation"], &request["dryRun"]),
        (&json!("DELETE"), &json!(true))
    );
    assert_eq!(request["oldObject"]["metadata"]["name"], "a");
    assert_eq!(request["object"], Value::Null);
}

#[test]
fn selectors_match_what_earlier_webhooks_did() {
    let mut server = Server::new();
    register(&mut server, "mutating", "a", json!({}));
    let selector = json!({"objectSelector": {"matchLabels": {"x": "1"}}});
    register(&mut server, "mutating", "b", selector);
    let first = call(create(&mut server, "m"));
    let second = call(server.resume(first.id, allow(&first, Some(add_label("x")))));
    assert_eq!(second.webhook, "b.example.com");
    let again = call(create(&mut server, "m"));
    let created = server.resume(again.id, allow(&again, None)).response().unwrap();
    assert_eq!(created.code, 201, "without the label no other webhook is called");
}

#[test]
fn a_refusal_has_the_status_of_the_webhook_and_is_never_a_success() {
    for (status, code, reason, message) in [
        (Value::Null, 400, Value::Null, " without explanation"),
        (json!({"code": 200, "message": "no"}), 400, Value::Null, ": no"),
        (json!({"code": 409, "reason": "Odd"}), 409, json!("Odd"), ": Odd"),
    ] {
        let mut server = Server::new();
        register(&mut server, "validating", "v", json!({}));
        let sent = call(create(&mut server, "a"));
        let refusal = answer(&sent, json!({"allowed": false, "status": status}));
        let response = server.resume(sent.id, refusal).response().unwrap();
        let found = response.value();
        assert_eq!((response.code, &found["reason"]), (code, &reason));
        let expected = format!("admission webhook \"v.example.com\" denied the request{message}");
        assert_eq!(found["message"], expected);
    }
}
