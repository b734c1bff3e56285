//! Objects from creation to deletion.

use kruise_sim::{Method, Request};
use serde_json::{Value, json};

use crate::server::Server;

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}})
}

fn map(name: &str, value: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"k": value}})
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn a_created_pod_has_defaults_and_reads_back_as_it_was_answered() {
    let mut server = Server::new();
    let (code, created) = server.post(PODS, &pod("a"));
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["spec"]["restartPolicy"], "Always");
    assert_eq!(
        created["spec"]["containers"][0]["imagePullPolicy"],
        "IfNotPresent"
    );
    assert_eq!(
        created["status"],
        json!({"phase": "Pending", "qosClass": "BestEffort"})
    );
    assert_eq!(created["metadata"]["generation"], 1);
    assert_eq!(server.get(&format!("{PODS}/a")), (200, created));
    assert_eq!(server.get(&format!("{PODS}/b")).0, 404);
    let (code, status) = server.post(PODS, &pod("a"));
    assert_eq!((code, status["reason"].as_str()), (409, Some("AlreadyExists")));
    assert_eq!(status["message"], "pods \"a\" already exists");
}

#[test]
fn a_stale_version_conflicts_and_a_write_that_changes_nothing_takes_no_revision() {
    let mut server = Server::new();
    let (_, first) = server.post(MAPS, &map("m", "1"));
    let target = format!("{MAPS}/m");
    let mut changed = first.clone();
    changed["data"]["k"] = "2".into();
    let (code, second) = server.put(&target, &changed);
    assert_eq!(code, 200);
    assert_eq!(revision(&second), revision(&first) + 1);
    let (code, status) = server.put(&target, &changed);
    assert_eq!((code, status["reason"].as_str()), (409, Some("Conflict")));
    assert_eq!(server.put(&target, &second), (200, second.clone()));
    assert_eq!(server.api.revision(), revision(&second));
}

#[test]
fn rows_of_a_table_name_the_kind_of_their_whole_objects() {
    let mut server = Server::new();
    server.post(MAPS, &map("m", "1"));
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    for path in [MAPS.to_owned(), format!("{MAPS}/m")] {
        let request = Request::new(Method::Get, &format!("{path}?includeObject=Object"), None);
        let (code, table) = server.send(&request.accept(table));
        assert_eq!(code, 200, "{table}");
        let object = &table["rows"][0]["object"];
        // `kubectl get --sort-by` reads it.
        assert_eq!(
            (&object["apiVersion"], &object["kind"]),
            (&json!("v1"), &json!("ConfigMap"))
        );
        assert_eq!(object["data"], json!({"k": "1"}));
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    let mut server = Server::new();
    let before = server.api.revision();
    let (code, answer) = server.post(&format!("{MAPS}?dryRun=All"), &map("m", "1"));
    assert_eq!(code, 201);
    assert!(answer["metadata"].get("resourceVersion").is_none());
    assert_eq!(server.api.revision(), before);
    assert_eq!(server.get(&format!("{MAPS}/m")).0, 404);
}

#[test]
fn a_pod_with_a_node_waits_for_its_grace_period_and_another_does_not() {
    let mut server = Server::new();
    let target = format!("{PODS}/a");
    server.post(PODS, &pod("a"));
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}});
    assert_eq!(server.post(&format!("{target}/binding"), &binding).0, 201);
    let (code, waiting) = server.delete(&target, None);
    assert_eq!(code, 200);
    assert_eq!(waiting["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(waiting["metadata"]["deletionTimestamp"], "2026-01-01T00:00:30Z");
    assert_eq!(server.get(&target).0, 200);
    assert_eq!(
        server.delete(&target, Some(&json!({"gracePeriodSeconds": 0}))).0,
        200
    );
    assert_eq!(server.get(&target).0, 404);
    server.post(PODS, &pod("b"));
    server.delete(&format!("{PODS}/b"), None);
    assert_eq!(server.get(&format!("{PODS}/b")).0, 404);
}

#[test]
fn the_last_finalizer_takes_a_deleted_object_with_it() {
    let mut server = Server::new();
    let mut object = map("m", "1");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.post(MAPS, &object);
    let target = format!("{MAPS}/m");
    let (code, waiting) = server.delete(&target, None);
    assert_eq!(
        (code, &waiting["metadata"]["deletionGracePeriodSeconds"]),
        (200, &json!(0))
    );
    let add = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    assert_eq!(server.patch("merge", &target, &add).0, 422);
    let (code, _) = server.patch("merge", &target, &json!({"metadata": {"finalizers": null}}));
    assert_eq!(code, 200);
    assert_eq!(server.get(&target).0, 404);
}

#[test]
fn preconditions_hold_a_deletion_back() {
    let mut server = Server::new();
    let (_, created) = server.post(MAPS, &map("m", "1"));
    let target = format!("{MAPS}/m");
    for wrong in [json!({"uid": "x"}), json!({"resourceVersion": "1"})] {
        let (code, status) = server.delete(&target, Some(&json!({"preconditions": wrong})));
        assert_eq!((code, status["reason"].as_str()), (409, Some("Conflict")));
    }
    let right = json!({"preconditions": {"uid": created["metadata"]["uid"]}});
    let (code, status) = server.delete(&target, Some(&right));
    assert_eq!((code, status["status"].as_str()), (200, Some("Success")));
    assert_eq!(status["details"]["uid"], created["metadata"]["uid"]);
}

#[test]
fn a_status_write_leaves_the_spec_and_a_spec_write_leaves_the_status() {
    let mut server = Server::new();
    server.post(PODS, &pod("a"));
    let target = format!("{PODS}/a");
    let both = json!({"metadata": {"labels": {"x": "1"}}, "spec": {"containers": [{"name": "main", "image": "i:2"}]},
        "status": {"phase": "Running"}});
    let (code, object) = server.patch("strategic-merge", &format!("{target}/status"), &both);
    assert_eq!(code, 200, "{object}");
    assert_eq!(object["status"]["phase"], "Running");
    assert_eq!(object["spec"]["containers"][0]["image"], "nginx:1");
    assert_eq!(object["metadata"]["labels"], json!({"app": "web", "x": "1"}));
    assert_eq!(object["metadata"]["generation"], 1);
    let other =
        json!({"spec": {"containers": [{"name": "main", "image": "i:3"}]}, "status": {"phase": "Failed"}});
    let (code, object) = server.patch("strategic-merge", &target, &other);
    assert_eq!(code, 200, "{object}");
    assert_eq!(object["status"]["phase"], "Running");
    assert_eq!(object["spec"]["containers"][0]["image"], "i:3");
    assert_eq!(object["metadata"]["generation"], 2);
    let frozen = json!({"spec": {"nodeSelector": {"a": "b"}}});
    assert_eq!(server.patch("merge", &target, &frozen).0, 422);
}

#[test]
fn generated_names_have_five_characters_and_equal_seeds_give_equal_answers() {
    let object = json!({"metadata": {"generateName": "web-"}, "spec": pod("x")["spec"]});
    let mut names = Vec::new();
    for _ in 0..2 {
        let mut server = Server::new();
        let (code, created) = server.post(PODS, &object);
        assert_eq!(code, 201);
        names.push(created);
    }
    assert_eq!(names[0], names[1]);
    assert_eq!(
        names[0]["metadata"]["name"].as_str().unwrap().len(),
        "web-".len() + 5
    );
}

#[test]
fn deletecollection_deletes_what_its_selector_shows() {
    let mut server = Server::new();
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let mut object = map(name, "1");
        object["metadata"]["labels"] = json!({"l": label});
        server.post(MAPS, &object);
    }
    let (code, list) = server.delete(&format!("{MAPS}?labelSelector=l%3Dx"), None);
    assert_eq!((code, list["items"].as_array().unwrap().len()), (200, 2));
    assert_eq!(server.get(MAPS).1["items"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_absent_is_refused() {
    let mut server = Server::new();
    for target in [
        "/apis/none/v1/things",
        "/api/v1/things",
        "/nothing",
        "/api/v1/namespaces/default/nodes",
    ] {
        assert_eq!(server.get(target).0, 404, "{target}");
    }
    assert_eq!(server.post("/api/v1/pods", &pod("a")).0, 405);
    assert_eq!(server.post("/api/v1/namespaces/none/pods", &pod("a")).0, 404);
    let apply = Request::new(Method::Patch, &format!("{PODS}/a"), Some(&pod("a")));
    assert_eq!(
        server.send(&apply.content_type("application/apply-patch+cbor")).0,
        415
    );
    server.post(PODS, &pod("a"));
    for sub in ["exec", "portforward"] {
        assert_eq!(server.get(&format!("{PODS}/a/{sub}")).0, 405, "{sub}");
    }
}

#[test]
fn dependents_follow_their_owner_unless_orphaned() {
    let mut server = Server::new();
    for (policy, survives) in [("Background", false), ("Foreground", false), ("Orphan", true)] {
        let (_, owner) = server.post(MAPS, &map("owner", "1"));
        let mut dependent = map("dependent", "1");
        dependent["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
            "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true}]);
        server.post(MAPS, &dependent);
        server.delete(
            &format!("{MAPS}/owner"),
            Some(&json!({"propagationPolicy": policy})),
        );
        server.api.tick(server.now);
        assert_eq!(server.get(&format!("{MAPS}/owner")).0, 404, "{policy}");
        let (code, left) = server.get(&format!("{MAPS}/dependent"));
        assert_eq!(code == 200, survives, "{policy}");
        assert!(left["metadata"].get("ownerReferences").is_none(), "{policy}");
        server.delete(&format!("{MAPS}/dependent"), None);
    }
}

#[test]
fn a_namespace_is_deleted_with_its_content_and_takes_nothing_new() {
    let mut server = Server::new();
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "n"}}));
    server.api.tick(server.now);
    let maps = "/api/v1/namespaces/n/configmaps";
    assert_eq!(server.get("/api/v1/namespaces/n/serviceaccounts/default").0, 200);
    server.post(maps, &map("m", "1"));
    let (code, object) = server.delete("/api/v1/namespaces/n", None);
    assert_eq!((code, &object["status"]["phase"]), (200, &json!("Terminating")));
    assert_eq!(server.post(maps, &map("x", "1")).0, 403);
    server.api.tick(server.now);
    assert_eq!(server.get("/api/v1/namespaces/n").0, 404);
    assert_eq!(server.get(maps).1["items"], json!([]));
    assert!(!server.api.tick(server.now));
}

#[test]
fn custom_resources_are_held_to_patterns_and_formats() {
    let mut server = Server::new();
    let definition = |pattern: &str| {
        json!({"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
                "properties": {"spec": {"type": "object", "properties": {
                    "color": {"type": "string", "pattern": pattern},
                    "when": {"type": "string", "format": "date-time"}}}}}}}]}})
    };
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, status) = server.post(path, &definition("("));
    assert_eq!(code, 422);
    assert_eq!(
        status["details"]["causes"][0]["field"],
        "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[color].pattern"
    );
    assert_eq!(server.post(path, &definition("^(red|blue)$")).0, 201);
    let things = "/apis/example.com/v1/namespaces/default/things";
    let thing =
        |color: &str, when: &str| json!({"metadata": {"name": "a"}, "spec": {"color": color, "when": when}});
    let (code, status) = server.post(things, &thing("green", "yesterday"));
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "Thing.example.com \"a\" is invalid: [spec.color: Invalid value: \"green\": spec.color in body should match \
         '^(red|blue)$', spec.when: Invalid value: \"yesterday\": spec.when in body must be of type date-time: \
         \"yesterday\"]"
    );
    assert_eq!(server.post(things, &thing("red", "2026-01-01T00:00:00Z")).0, 201);
}

#[test]
fn a_refused_service_takes_no_address() {
    let mut server = Server::new();
    let services = "/api/v1/namespaces/default/services";
    let service = |name: &str| json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    let (code, first) = server.post(services, &service("a"));
    assert_eq!(code, 201, "{first}");
    assert_eq!(server.post(services, &service("a")).0, 409);
    assert_eq!(server.post(services, &service("Not a name")).0, 422);
    let second = server.post(services, &service("b")).1;
    let last = |service: &Value| -> u8 {
        let address = service["spec"]["clusterIP"].as_str().unwrap();
        address.rsplit('.').next().unwrap().parse().unwrap()
    };
    assert_eq!(last(&second), last(&first) + 1);
}

#[test]
fn times_beyond_the_calendar_last_until_its_end() {
    let mut server = Server::new();
    for (name, own, asked, period) in [
        ("own", i64::MAX, "", i64::MAX),
        ("asked", 30, "?gracePeriodSeconds=9223372036854775807", i64::MAX),
        ("negative", 30, "?gracePeriodSeconds=-9223372036854775808", 1),
    ] {
        let mut pod = pod(name);
        pod["spec"]["nodeName"] = "n1".into();
        pod["spec"]["terminationGracePeriodSeconds"] = own.into();
        let (code, created) = server.post(PODS, &pod);
        assert_eq!(code, 201, "{created}");
        let (code, marked) = server.delete(&format!("{PODS}/{name}{asked}"), None);
        assert_eq!(code, 200, "{marked}");
        assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], period, "{name}");
        let shorter = json!({"gracePeriodSeconds": 0});
        assert_eq!(server.delete(&format!("{PODS}/{name}"), Some(&shorter)).0, 200);
        assert_eq!(server.get(&format!("{PODS}/{name}")).0, 404, "{name}");
    }
    let id = server.watch(&format!("{PODS}?watch=true&timeoutSeconds=9223372036854775807"));
    server.pass(1_000_000);
    assert_eq!(server.events(id), [], "it goes on");
}

#[test]
fn numbers_that_are_none_are_refused_in_the_words_of_a_server() {
    let mut server = Server::new();
    server.post(PODS, &pod("a"));
    let get = |target: &str| Request::new(Method::Get, target, None);
    let delete = |target: &str| Request::new(Method::Delete, target, None);
    for (request, value, why) in [
        (get(&format!("{PODS}?limit=x")), "x", "invalid syntax"),
        (get(&format!("{PODS}?timeoutSeconds=1s")), "1s", "invalid syntax"),
        (
            get(&format!("{PODS}?watch=true&timeoutSeconds=9223372036854775808")),
            "9223372036854775808",
            "value out of range",
        ),
        (
            get(&format!("{PODS}/a/log?tailLines=all")),
            "all",
            "invalid syntax",
        ),
        (
            delete(&format!("{PODS}/a?gracePeriodSeconds=soon")),
            "soon",
            "invalid syntax",
        ),
        (delete(&format!("{PODS}?limit=0x1")), "0x1", "invalid syntax"),
    ] {
        let (code, status) = server.send(&request);
        assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")), "{status}");
        let message = format!("strconv.ParseInt: parsing {value:?}: {why}");
        assert_eq!(status["message"], message);
    }
    assert_eq!(server.get(&format!("{PODS}/a")).0, 200, "it is still there");
}

#[test]
fn a_runtime_class_has_a_handler_that_stays() {
    const CLASSES: &str = "/apis/node.k8s.io/v1/runtimeclasses";
    let mut server = Server::new();
    let class =
        json!({"metadata": {"name": "a"}, "handler": "runc", "overhead": {"podFixed": {"cpu": "0.01"}}});
    let (code, created) = server.post(CLASSES, &class);
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["overhead"]["podFixed"]["cpu"], "10m");
    assert_eq!(
        server
            .post(CLASSES, &json!({"metadata": {"name": "b"}, "handler": "No!"}))
            .0,
        422
    );
    let (code, refused) = server.patch("merge", &format!("{CLASSES}/a"), &json!({"handler": "other"}));
    assert_eq!(code, 422, "{refused}");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("field is immutable")
    );
}
