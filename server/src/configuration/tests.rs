use super::*;

fn service() -> Endpoint {
    Endpoint::Service {
        namespace: "ns".into(),
        name: "svc".into(),
    }
}

fn webhook(name: &str, path: &str) -> Value {
    json!({"name": name, "clientConfig": {"service": {"namespace": "a", "name": "b", "port": 443, "path": path}}})
}

fn installed() -> Value {
    json!({"metadata": {"resourceVersion": "7"}, "webhooks": [webhook("one", "/one"), webhook("two", "/two")]})
}

/// What the API server would hold after the patch; both patched objects are small enough to do it by hand.
fn applied(mut object: Value, patch: &Value) -> Value {
    if let Some(text) = patch.pointer("/metadata/annotations/template") {
        object["metadata"]["annotations"] = json!({"template": text});
    }
    if let Some(webhooks) = patch.get("webhooks") {
        object["webhooks"] = defaulted(webhooks.clone());
    }
    object
}

#[test]
fn the_first_reconcile_stores_the_template_and_the_second_writes_nothing() {
    let first = webhooks(&installed(), b"ca", &service(), |_| true, &[]).unwrap();
    let patch = first.patch.unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(patch["webhooks"][0]["clientConfig"]["caBundle"], "Y2E=");
    assert_eq!(patch["webhooks"][0]["clientConfig"]["service"]["name"], "svc");
    let second = webhooks(&applied(installed(), &patch), b"ca", &service(), |_| true, &[]).unwrap();
    assert_eq!(second.patch, None);
}

#[test]
fn a_webhook_without_handler_is_dropped_and_restored_with_its_handler() {
    let off = webhooks(&installed(), b"ca", &service(), |call| call.path != "/two", &[]).unwrap();
    assert_eq!(off.dropped, ["two"]);
    let held = applied(installed(), &off.patch.unwrap());
    assert_eq!(held["webhooks"].as_array().unwrap().len(), 1);
    let on = webhooks(&held, b"ca", &service(), |_| true, &[])
        .unwrap()
        .patch
        .unwrap();
    assert_eq!(on["webhooks"][1]["name"], "two");
}

#[test]
fn a_rule_loses_operations_that_are_not_handled_and_has_them_back_later() {
    let mut printed = installed();
    let rule = |operations: Value| json!({"operations": operations, "resources": ["pods"]});
    printed["webhooks"][0]["rules"] = json!([rule(json!(["UPDATE", "DELETE"])), rule(json!(["UPDATE"]))]);
    printed["webhooks"][1]["rules"] = json!([rule(json!(["UPDATE"]))]);
    let is_handled =
        |call: &Call<'_>| call.operation != "UPDATE" || call.webhook != call.path.replace('/', "");
    let off = webhooks(&printed, b"ca", &service(), is_handled, &[]).unwrap();
    assert_eq!(off.dropped, ["two"]);
    let held = applied(printed, &off.patch.unwrap());
    let rules = held["webhooks"][0]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0]["operations"], json!(["DELETE"]));
    let on = webhooks(&held, b"ca", &service(), |_| true, &[])
        .unwrap()
        .patch
        .unwrap();
    assert_eq!(
        on["webhooks"][0]["rules"][0]["operations"],
        json!(["UPDATE", "DELETE"])
    );
    assert_eq!(on["webhooks"][1]["name"], "two");
}

/// What a live configuration looks like: the API server has filled in every default.
fn live() -> Value {
    let wanted = webhooks(&bare(), b"ca", &service(), |_| true, &[])
        .unwrap()
        .patch
        .unwrap();
    let mut live = applied(bare(), &wanted);
    for webhook in live["webhooks"].as_array_mut().unwrap() {
        let defaults = json!({
            "timeoutSeconds": 10, "matchPolicy": "Equivalent", "reinvocationPolicy": "Never",
            "namespaceSelector": {}, "objectSelector": {}, "failurePolicy": "Fail", "fromTheFuture": 1,
        });
        for (name, value) in defaults.as_object().unwrap() {
            webhook[name] = value.clone();
        }
        webhook["clientConfig"]["service"]["port"] = json!(443);
        webhook["rules"][0]["scope"] = json!("*");
    }
    live
}

/// An installer's entries, without anything that has a default.
fn bare() -> Value {
    let entry = |name: &str, path: &str| {
        let client = json!({"service": {"namespace": "a", "name": "b", "path": path}});
        let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
        json!({"name": name, "clientConfig": client, "rules": [rule], "sideEffects": "None"})
    };
    json!({"metadata": {"resourceVersion": "7"}, "webhooks": [entry("one", "/one"), entry("two", "/two")]})
}

#[test]
fn defaults_of_the_api_server_are_no_difference() {
    assert_eq!(
        webhooks(&live(), b"ca", &service(), |_| true, &[]).unwrap().patch,
        None
    );
}

#[test]
fn any_edit_of_a_managed_field_is_reverted() {
    let edits: [(&str, Value); 8] = [
        (
            "/webhooks/0/namespaceSelector",
            json!({"matchLabels": {"a": "b"}}),
        ),
        ("/webhooks/0/timeoutSeconds", json!(1)),
        (
            "/webhooks/0/matchConditions",
            json!([{"name": "never", "expression": "false"}]),
        ),
        ("/webhooks/0/clientConfig/caBundle", json!("b2xk")),
        ("/webhooks/0/clientConfig/service/name", json!("other")),
        ("/webhooks/1/rules/0/operations", json!(["CREATE", "UPDATE"])),
        ("/webhooks/1/rules", json!([])),
        ("/webhooks/1/sideEffects", Value::Null),
    ];
    for (pointer, value) in edits {
        let mut edited = live();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        edited.pointer_mut(parent).unwrap()[name] = value;
        let patch = webhooks(&edited, b"ca", &service(), |_| true, &[]).unwrap().patch;
        assert!(patch.is_some(), "{pointer}");
    }
    let mut longer = live();
    let extra = longer["webhooks"][0].clone();
    longer["webhooks"].as_array_mut().unwrap().push(extra);
    assert!(
        webhooks(&longer, b"ca", &service(), |_| true, &[])
            .unwrap()
            .patch
            .is_some()
    );
    let mut url = live();
    url["webhooks"][0]["clientConfig"] = json!({"url": "https://elsewhere/one", "caBundle": "Y2E="});
    assert!(
        webhooks(&url, b"ca", &service(), |_| true, &[])
            .unwrap()
            .patch
            .is_some()
    );
}

#[test]
fn a_host_replaces_the_service_by_a_url() {
    let endpoint = Endpoint::Url {
        host: "::1".into(),
        port: 9876,
    };
    let patch = webhooks(&installed(), b"ca", &endpoint, |_| true, &[])
        .unwrap()
        .patch
        .unwrap();
    let client = &patch["webhooks"][0]["clientConfig"];
    assert_eq!(client["url"], "https://[::1]:9876/one");
    assert_eq!(client.get("service"), None);
}

#[test]
fn a_broken_template_is_an_error() {
    let mut object = installed();
    object["metadata"]["annotations"] = json!({"template": "{"});
    let outcome = webhooks(&object, b"ca", &service(), |_| true, &[]);
    assert!(matches!(outcome, Err(Error::Template(_))));
}

#[test]
fn conversion_is_written_once_and_only_for_the_webhook_strategy() {
    let mut crd = json!({"metadata": {"resourceVersion": "3"}, "spec": {"conversion": {"strategy": "None"}}});
    assert_eq!(conversion(&crd, b"ca", &service()), None);
    crd["spec"]["conversion"]["strategy"] = json!("Webhook");
    let patch = conversion(&crd, b"ca", &service()).unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "3");
    assert_eq!(
        patch["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["path"],
        "/convert"
    );
    assert_eq!(
        patch["spec"]["conversion"]["webhook"]["clientConfig"]["url"],
        Value::Null
    );
    crd["spec"]["conversion"]["webhook"] = patch["spec"]["conversion"]["webhook"].clone();
    assert_eq!(conversion(&crd, b"ca", &service()), None);
    assert!(conversion(&crd, b"new", &service()).is_some());
}
