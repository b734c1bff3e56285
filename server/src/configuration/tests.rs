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
        object["webhooks"] = webhooks.clone();
    }
    object
}

#[test]
fn the_first_pass_stores_the_template_and_the_second_writes_nothing() {
    let first = webhooks(&installed(), b"ca", &service(), |_| true).unwrap();
    let patch = first.patch.unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(patch["webhooks"][0]["clientConfig"]["caBundle"], "Y2E=");
    assert_eq!(patch["webhooks"][0]["clientConfig"]["service"]["name"], "svc");
    let second = webhooks(&applied(installed(), &patch), b"ca", &service(), |_| true).unwrap();
    assert_eq!(second.patch, None);
}

#[test]
fn a_webhook_without_handler_is_dropped_and_comes_back_with_its_handler() {
    let off = webhooks(&installed(), b"ca", &service(), |path| path != "/two").unwrap();
    assert_eq!(off.dropped, ["two"]);
    let held = applied(installed(), &off.patch.unwrap());
    assert_eq!(held["webhooks"].as_array().unwrap().len(), 1);
    let on = webhooks(&held, b"ca", &service(), |_| true)
        .unwrap()
        .patch
        .unwrap();
    assert_eq!(on["webhooks"][1]["name"], "two");
}

#[test]
fn a_host_replaces_the_service_by_a_url() {
    let endpoint = Endpoint::Url {
        host: "::1".into(),
        port: 9876,
    };
    let patch = webhooks(&installed(), b"ca", &endpoint, |_| true)
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
    let outcome = webhooks(&object, b"ca", &service(), |_| true);
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
