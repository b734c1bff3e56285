//! Updates in place that take their time: grace periods, and containers that change one after the other.

use kruise_e2e::audit::{Entry, MANAGER};
use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, container, is_ready, scenario, scenario_gated, text, web};

const GRACE: &str = "/metadata/annotations/apps.kruise.io~1inplace-update-grace";

/// A set of one pod whose updates wait this long out of service.
fn patient(seconds: u32) -> Value {
    let mut set = web(1);
    set["spec"]["updateStrategy"]["inPlaceUpdateStrategy"] = json!({"gracePeriodSeconds": seconds});
    set
}

fn image(pod: &Value) -> String {
    text(pod, "/spec/containers/0/image")
}

/// Waits until the one pod is so.
fn until_pod(scenario: &Scenario, what: &str, test: impl Fn(&Value) -> bool) -> Value {
    wait::until(what, LIMIT, || {
        let pods = scenario.pods();
        Ok(pods.into_iter().next().filter(&test))
    })
    .unwrap()
}

/// Accepted writes to pods. A refused one is repeated.
fn writes(entries: &[Entry]) -> Vec<String> {
    let of_pods = entries
        .iter()
        .filter(|entry| entry.resource.starts_with("pods") && entry.code < 300 && entry.is_write());
    of_pods
        .map(|entry| format!("{} {}", entry.verb, entry.resource))
        .collect()
}

/// The table of what a pod costs has this line.
fn assert_documented(line: &str) {
    assert!(
        include_str!("../../../../docs/lifecycle.md").contains(line),
        "{line}"
    );
}

/// The first state of a watched pod for which a test holds.
fn first(events: &[Value], test: impl Fn(&Value) -> bool) -> &Value {
    let mut pods = events.iter().map(|event| &event["object"]);
    pods.find(|pod| test(pod))
        .unwrap_or_else(|| panic!("this state was not seen"))
}

/// All events of a watch, once it has shown the pod's last state: it may lag behind.
fn ended(watch: Watch, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
    wait::until_true("the watch shows the end", LIMIT, || {
        let last = watch.shown().pop();
        Ok(last.is_some_and(|event| is_last(&event["object"])))
    })
    .unwrap();
    watch.stop().unwrap()
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_grace_period_holds_the_image_back_and_costs_one_request_more() {
    let scenario = scenario("grace");
    scenario.kubectl.apply(&patient(4)).unwrap();
    scenario.until_status(&json!({"availableReplicas": 1}));
    let uid = scenario.uids();
    let mut log = scenario.audit_log();
    let watch = Watch::start(&scenario.kubectl, "pods", "app=web").unwrap();
    watch.until_shown(1, LIMIT).unwrap();
    scenario.patch(&container("nginx:2", "b"));
    scenario
        .until_status(&json!({"updatedReplicas": 1, "availableReplicas": 1, "updatedAvailableReplicas": 1}));
    let events = ended(watch, |pod| image(pod) == "nginx:2" && is_ready(pod));
    let held = first(&events, |pod| pod.pointer(GRACE).is_some());
    assert_eq!((image(held).as_str(), is_ready(held)), ("nginx:1", false));
    let of_update = "/metadata/labels/controller-revision-hash";
    let changed = first(&events, |pod| image(pod) == "nginx:2");
    assert_eq!(text(held, of_update), text(changed, of_update));
    assert!(changed.pointer(GRACE).is_none() && !is_ready(changed));
    let state: Value = serde_json::from_str(&text(
        changed,
        "/metadata/annotations/apps.kruise.io~1inplace-update-state",
    ))
    .unwrap();
    // Both stamps are the manager's, so no two clocks are compared.
    let stamp = |text: &Value| {
        text.as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap()
            .as_second()
    };
    let ran = stamp(&state["containerBatchesRecord"][0]["timestamp"]) - stamp(&state["updateTimestamp"]);
    assert!(
        ran >= 4,
        "the image changed {ran} s after the pod had left service"
    );
    assert_eq!(scenario.uids(), uid);
    let requests = writes(&log.read_new(MANAGER).unwrap());
    assert_documented(
        "| in-place update with `gracePeriodSeconds` | 4 | readiness off; grace; images; readiness on |",
    );
    assert_eq!(
        requests,
        [
            "patch pods/status",
            "patch pods",
            "patch pods",
            "patch pods/status"
        ],
        "readiness off; grace; images; readiness on"
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_rollback_inside_the_grace_period_brings_the_pod_back_as_it_was() {
    let scenario = scenario("grace-rollback");
    // Longer than the test may take.
    scenario.kubectl.apply(&patient(3600)).unwrap();
    scenario.until_status(&json!({"availableReplicas": 1}));
    let before = scenario.pods().remove(0);
    scenario.patch(&container("nginx:2", "b"));
    until_pod(&scenario, "in its grace period", |pod| {
        pod.pointer(GRACE).is_some() && !is_ready(pod)
    });
    scenario.patch(&container("nginx:1", "b"));
    let after = until_pod(&scenario, "back in service", |pod| {
        pod.pointer(GRACE).is_none() && is_ready(pod)
    });
    scenario.until_status(&json!({"availableReplicas": 1, "updatedAvailableReplicas": 1}));
    for same in [
        "/metadata/uid",
        "/metadata/labels/controller-revision-hash",
        "/spec",
        "/status/containerStatuses",
    ] {
        assert_eq!(before.pointer(same), after.pointer(same), "{same}");
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn containers_change_in_the_order_of_their_priorities() {
    let scenario = scenario("priorities");
    let mut log = scenario.audit_log();
    let barriered = |name: &str, image: &str, priority: u32| {
        let key = json!({"name": "barrier", "key": format!("p_{priority}"), "optional": true});
        json!({"name": name, "image": image,
               "env": [{"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {"configMapKeyRef": key}}]})
    };
    let containers = |version: u32| {
        json!([
            barriered("last", &format!("last:{version}"), 1),
            barriered("first", &format!("first:{version}"), 9)
        ])
    };
    let mut set = web(1);
    set["spec"]["template"]["spec"]["containers"] = containers(1);
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"availableReplicas": 1}));
    let uid = scenario.uids();
    let watch = Watch::start(&scenario.kubectl, "pods", "app=web").unwrap();
    watch.until_shown(1, LIMIT).unwrap();
    drop(log.read_new(MANAGER).unwrap());
    scenario.patch(&json!({"spec": {"template": {"spec": {"containers": containers(2)}}}}));
    scenario.until_status(&json!({"updatedAvailableReplicas": 1, "availableReplicas": 1}));
    let images = |pod: &Value| [0, 1].map(|index| text(pod, &format!("/spec/containers/{index}/image")));
    let events = ended(watch, |pod| images(pod) == ["last:2", "first:2"] && is_ready(pod));
    let half = first(&events, |pod| images(pod) == ["last:1", "first:2"]);
    assert!(!is_ready(half));
    for event in &events {
        let pod = &event["object"];
        let statuses = pod["status"]["containerStatuses"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let arrived = statuses.iter().any(|status| {
            status["name"] == "first" && status["image"] == "first:2" && status["ready"] == true
        });
        assert!(
            images(pod)[0] == "last:1" || arrived,
            "the last does not change before the first has arrived"
        );
    }
    assert_eq!(images(&scenario.pods()[0]), ["last:2", "first:2"]);
    assert_eq!(scenario.uids(), uid);
    assert_documented(
        "| in-place update of containers with two priorities | 4 | readiness off; first; last; readiness on |",
    );
    assert_eq!(
        writes(&log.read_new(MANAGER).unwrap()),
        [
            "patch pods/status",
            "patch pods",
            "patch pods",
            "patch pods/status"
        ]
    );
}

/// Makes the container of a set read a variable from an annotation, which has this value.
pub(crate) fn reading(set: &mut Value, value: &str) {
    let template = &mut set["spec"]["template"];
    template["metadata"]["annotations"] = json!({"config": value});
    let source = json!({"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.annotations['config']"}});
    template["spec"]["containers"][0]["env"] = json!([{"name": "CFG", "valueFrom": source}]);
}

/// What an agent reports of a container in which `CFG` is `web`: the published hash.
pub(crate) const ENVIRONMENT_OF_WEB: u64 = 498_188_604;

/// A patch of what an agent of the node reports about the one container of a pod.
pub(crate) fn report(pod: &Value, environment: u64) -> Value {
    let report = json!({"containers": [{
        "name": "main",
        "containerID": pod.pointer("/status/containerStatuses/0/containerID"),
        "restartCount": 1,
        "hashes": {"plainHash": 0, "extractedEnvFromMetadataHash": environment},
    }]});
    json!({"metadata": {"annotations": {"apps.kruise.io/runtime-containers-meta": report.to_string()}}})
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_variable_that_reads_metadata_waits_for_the_nodes_report_and_costs_no_more_than_an_image() {
    let scenario = scenario("environment");
    let mut set = web(1);
    reading(&mut set, "old");
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"availableReplicas": 1}));
    let uid = scenario.uids();
    let mut log = scenario.audit_log();
    reading(&mut set, "web");
    scenario.kubectl.apply(&set).unwrap();
    let waits = until_pod(&scenario, "changed and out of service", |pod| {
        text(pod, "/metadata/annotations/config") == "web" && !is_ready(pod)
    });
    scenario.until_status(&json!({"updatedReplicas": 1, "updatedReadyReplicas": 0, "availableReplicas": 0}));
    let name = text(&waits, "/metadata/name");
    // An agent that reports another environment has not restarted the container.
    let old = report(&waits, 86_995_377);
    scenario.kubectl.patch("pods", &name, &old).unwrap();
    wait::observe_for(std::time::Duration::from_secs(3));
    assert!(!is_ready(&scenario.pods()[0]));
    let new = report(&waits, ENVIRONMENT_OF_WEB);
    scenario.kubectl.patch("pods", &name, &new).unwrap();
    scenario.until_status(&json!({"updatedReadyReplicas": 1, "availableReplicas": 1}));
    assert_eq!(scenario.uids(), uid);
    assert_documented(
        "| in-place update of a variable that reads metadata | 3 | readiness off; change; readiness on once the node reports it |",
    );
    assert_eq!(
        writes(&log.read_new(MANAGER).unwrap()),
        ["patch pods/status", "patch pods", "patch pods/status"]
    );
}

/// A `web` of one pod whose containers request so much of a processor.
fn of_cpu(request: &str, limit: &str) -> Value {
    let resources = json!({"requests": {"cpu": request, "memory": "64Mi"}, "limits": {"cpu": limit}});
    json!([{"name": "main", "image": "nginx:1", "resources": resources}])
}

/// The server records the manager as the owner of the resources in `managedFields`, which the test of an
/// interrupted update relies on. The embedded API keeps those of the `resize` endpoint.
fn assert_known_as_ours(scenario: &Scenario, pod: &Value) {
    let name = text(pod, "/metadata/name");
    let shown = scenario
        .kubectl
        .run(&["get", "pod", &name, "-o", "json", "--show-managed-fields"])
        .unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let entries = shown["metadata"]["managedFields"].as_array().unwrap();
    let ours = |entry: &&Value| entry["manager"] == MANAGER && entry["subresource"] == "resize";
    let ours = entries.iter().find(ours).unwrap_or_else(|| panic!("{entries:?}"));
    let resources = &ours["fieldsV1"]["f:spec"]["f:containers"]["k:{\"name\":\"main\"}"]["f:resources"];
    for amount in ["/f:requests/f:cpu", "/f:limits/f:cpu"] {
        assert!(resources.pointer(amount).is_some(), "{amount} of {resources}");
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn cpu_changes_on_a_pod_that_stays_in_service() {
    let scenario = scenario_gated("more-cpu");
    let mut set = web(1);
    set["spec"]["template"]["spec"]["containers"] = of_cpu("100m", "500m");
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"availableReplicas": 1, "updatedAvailableReplicas": 1}));
    let before = scenario.pods().remove(0);
    let mut log = scenario.audit_log();
    let watch = Watch::start(&scenario.kubectl, "pods", "app=web").unwrap();
    watch.until_shown(1, LIMIT).unwrap();

    scenario.patch(&json!({"spec": {"template": {"spec": {"containers": of_cpu("150m", "1")}}}}));
    let resources = |pod: &Value, list: &str| pod[list].clone();
    let asked = |pod: &Value| resources(&pod["spec"]["containers"][0], "resources");
    let given = |pod: &Value| resources(&pod["status"]["containerStatuses"][0], "resources");
    let state = |pod: &Value| text(pod, "/metadata/labels/lifecycle.apps.kruise.io~1state");
    let label = |pod: &Value| text(pod, "/metadata/labels/controller-revision-hash");
    let has_arrived = |pod: &Value| {
        label(pod) != label(&before) && state(pod) == "Normal" && given(pod)["limits"]["cpu"] == "1"
    };
    let events = ended(watch, has_arrived);
    scenario.until_status(&json!({"availableReplicas": 1, "updatedAvailableReplicas": 1}));
    for pod in events.iter().map(|event| &event["object"]) {
        assert!(is_ready(pod), "it stays in service: {}", pod["status"]);
        let moved = label(pod) != label(&before);
        assert!(
            !moved || asked(pod)["limits"]["cpu"] == "1",
            "the containers are resized before the pod is written"
        );
        let arrived = moved && state(pod) == "Normal";
        assert!(
            !arrived || given(pod) == asked(pod),
            "it arrives once its containers have it"
        );
    }
    let after = scenario.pods().remove(0);
    for same in [
        "/metadata/uid",
        "/status/containerStatuses/0/containerID",
        "/status/containerStatuses/0/restartCount",
        "/status/podIP",
    ] {
        assert_eq!(before.pointer(same), after.pointer(same), "{same}");
    }
    assert_known_as_ours(&scenario, &after);
    assert_eq!(
        asked(&after)["requests"],
        json!({"cpu": "150m", "memory": "64Mi"})
    );
    assert_documented(
        "| in-place update of resources that restarts nothing | 3 | resize; change; `Normal` once the resources are there |",
    );
    let requests = writes(&log.read_new(MANAGER).unwrap());
    assert_eq!(requests, ["patch pods/resize", "patch pods", "patch pods"]);

    // Another class of service is another pod.
    let same = json!({"cpu": "1", "memory": "64Mi"});
    let guaranteed =
        json!([{"name": "main", "image": "nginx:1", "resources": {"requests": same, "limits": same}}]);
    scenario.patch(&json!({"spec": {"template": {"spec": {"containers": guaranteed}}}}));
    scenario.until_status(&json!({"replicas": 1, "availableReplicas": 1, "updatedAvailableReplicas": 1}));
    let recreated = scenario.pods().remove(0);
    assert_ne!(recreated["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(recreated["status"]["qosClass"], "Guaranteed");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn resources_of_an_update_that_broke_off_are_given_back_and_those_of_others_stay() {
    let scenario = scenario_gated("broken-off");
    let mut set = web(2);
    set["spec"]["template"]["spec"]["containers"] = of_cpu("100m", "500m");
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"availableReplicas": 2, "updatedAvailableReplicas": 2}));
    let before = scenario.pods();
    let turn = |paused: bool, containers: Value| {
        let template = json!({"spec": {"containers": containers}});
        scenario.patch(&json!({"spec": {"updateStrategy": {"paused": paused}, "template": template}}));
    };
    turn(true, of_cpu("150m", "1"));
    scenario.until_status(&json!({"availableReplicas": 2, "updatedReplicas": 0}));
    // What a manager leaves behind that requests the resources of another template, dies, and the template is
    // reverted; and what an autoscaler does.
    let resize = |pod: &Value, manager: &str| {
        let resources = json!({"requests": {"cpu": "150m"}, "limits": {"cpu": "1"}});
        let patch = json!({"spec": {"containers": [{"name": "main", "resources": resources}]}}).to_string();
        let name = text(pod, "/metadata/name");
        let manager = format!("--field-manager={manager}");
        let args = [
            "patch",
            "pod",
            &name,
            "--subresource=resize",
            &manager,
            "-p",
            &patch,
        ];
        scenario.kubectl.run(&args).unwrap();
    };
    resize(&before[1], "autoscaler");
    resize(&before[0], MANAGER);
    turn(false, of_cpu("100m", "500m"));
    let resources = "/spec/containers/0/resources";
    let pod = |index: usize| {
        let name = text(&before[index], "/metadata/name");
        scenario.kubectl.get("pod", &name)
    };
    wait::until_true("the first pod has what its revision says", LIMIT, || {
        Ok(pod(0)?.pointer(resources) == before[0].pointer(resources))
    })
    .unwrap();
    scenario.until_status(&json!({"availableReplicas": 2, "updatedAvailableReplicas": 2}));
    let other = pod(1).unwrap();
    assert_eq!(text(&other, &format!("{resources}/limits/cpu")), "1");
    let label = "/metadata/labels/controller-revision-hash";
    for (index, was) in before.iter().enumerate() {
        let now = pod(index).unwrap();
        for same in ["/metadata/uid", "/status/containerStatuses/0/restartCount", label] {
            assert_eq!(now.pointer(same), was.pointer(same), "{same}");
        }
    }
}
