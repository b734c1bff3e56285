//! Injected sidecars that are upgraded: what happens to processes, sandboxes and requests.

use std::time::Duration;

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::runtime::{version, version_at};
use super::{OnNodes, TOOL, WEB, identity, on_nodes, server_and_neighbour, status_of, web_of};
use crate::cluster::{LIMIT, text};
use crate::sidecarset::Set;

/// A sidecar that serves beside the pod's own container.
fn agent() -> Value {
    json!({"containers": [{"name": "agent", "image": WEB, "env": [{"name": "PORT", "value": "8080"}]}]})
}

/// The one pod of a CloneSet, which has the sidecars of the set and serves.
fn pod_of(on: &OnNodes, set: &Set) -> Value {
    on.scenario
        .kubectl
        .apply(&web_of(1, &server_and_neighbour(WEB)))
        .unwrap();
    on.until_updated(1);
    set.until_status(&json!({"matchedPods": 1, "updatedReadyPods": 1}));
    on.pod()
}

/// Waits until a server of a pod serves this version: it listens a moment after its container has started.
fn until_serves(pod: &Value, port: u16, wanted: &str) {
    wait::until_true(&format!("version {wanted} at port {port}"), LIMIT, || {
        Ok(version_at(pod, port).as_deref() == Some(wanted))
    })
    .unwrap();
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn a_cold_upgrade_keeps_sandbox_address_and_main_container() {
    let on = on_nodes("nodes-cold");
    let set = Set::new(&on.scenario, "nodes-cold", &agent());
    let before = pod_of(&on, &set);
    let running = on.runtime.processes(&before);
    until_serves(&before, 8080, "1");

    set.change("image", &json!("lab.test/web:2"));
    set.until_status(&json!({"matchedPods": 1, "updatedPods": 1, "updatedReadyPods": 1}));
    let (after, now) = (on.pod(), on.runtime.processes(&on.pod()));
    assert_eq!(identity(&after), identity(&before));
    assert_eq!(now.sandboxes, running.sandboxes);
    for kept in ["main", "neighbour"] {
        assert_eq!(now.containers[kept], running.containers[kept]);
    }
    assert_ne!(now.containers["agent"].id, running.containers["agent"].id);
    until_serves(&after, 8080, "2");
    until_serves(&after, 80, "1");
    let restarts = ["agent", "main"].map(|name| status_of(&after, name)["restartCount"].clone());
    assert_eq!(restarts, [json!(1), json!(0)]);
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn an_image_by_digest_is_pulled_and_known_to_be_there() {
    let on = on_nodes("nodes-digest");
    let set = Set::new(&on.scenario, "nodes-digest", &agent());
    let before = pod_of(&on, &set);
    let first = text(status_of(&before, "agent"), "/imageID");
    assert!(first.starts_with("lab.test/web@sha256:"), "{first}");
    set.change("image", &json!("lab.test/web:2"));
    set.until_status(&json!({"matchedPods": 1, "updatedPods": 1, "updatedReadyPods": 1}));
    until_serves(&on.pod(), 8080, "2");

    // Back, by what the node itself calls the first image.
    set.change("image", &json!(first));
    set.until_status(&json!({"matchedPods": 1, "updatedPods": 1, "updatedReadyPods": 1}));
    let after = on.pod();
    assert_eq!(identity(&after), identity(&before));
    until_serves(&after, 8080, "1");
    assert_eq!(text(status_of(&after, "agent"), "/imageID"), first);
    // The manager knows it: the next upgrade, which one pod at a time may make, is not held.
    set.change("image", &json!("lab.test/web:3"));
    set.until_status(&json!({"matchedPods": 1, "updatedPods": 1, "updatedReadyPods": 1}));
    until_serves(&on.pod(), 8080, "3");
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn an_image_that_is_nowhere_holds_one_pod_and_the_next_one_mends_both() {
    let on = on_nodes("nodes-stuck");
    let set = Set::new(&on.scenario, "nodes-stuck", &agent());
    on.scenario
        .kubectl
        .apply(&web_of(2, &server_and_neighbour(WEB)))
        .unwrap();
    on.until_updated(2);
    set.until_status(&json!({"matchedPods": 2, "updatedReadyPods": 2}));
    let before = on.scenario.uids();

    set.change("image", &json!("lab.test/web:none"));
    wait::until_true("a kubelet tries to pull", LIMIT, || {
        Ok(on.scenario.pods().iter().any(|pod| {
            let reason = &status_of(pod, "agent")["state"]["waiting"]["reason"];
            reason == "ErrImagePull" || reason == "ImagePullBackOff"
        }))
    })
    .unwrap();
    set.until_status(&json!({"matchedPods": 2, "updatedPods": 1, "readyPods": 1, "updatedReadyPods": 0}));
    // Time enough for the manager to go on, if it would.
    wait::observe_for(Duration::from_secs(5));
    let (held, serving): (Vec<Value>, Vec<Value>) = on
        .scenario
        .pods()
        .into_iter()
        .partition(|pod| pod["spec"]["containers"][0]["image"] == "lab.test/web:none");
    assert_eq!((held.len(), serving.len()), (1, 1));
    assert_eq!(status_of(&serving[0], "agent")["restartCount"], 0);
    until_serves(&serving[0], 8080, "1");
    // The others go on.
    until_serves(&held[0], 80, "1");

    set.change("image", &json!("lab.test/web:2"));
    set.until_status(&json!({"matchedPods": 2, "updatedPods": 2, "updatedReadyPods": 2}));
    for pod in on.scenario.pods() {
        until_serves(&pod, 8080, "2");
    }
    assert_eq!(on.scenario.uids(), before);
}

/// The status of the only init container.
fn init_status(pod: &Value) -> Value {
    pod["status"]["initContainerStatuses"][0].clone()
}

fn at(status: &Value) -> jiff::Timestamp {
    text(status, "/state/running/startedAt").parse().unwrap()
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn a_native_sidecar_runs_before_the_main_container_and_changes_with_a_new_pod_only() {
    let on = on_nodes("nodes-native");
    let native = |image: &str| {
        let port = json!({"name": "PORT", "value": "8080"});
        json!([{"name": "proxy", "image": image, "restartPolicy": "Always", "env": [port],
            "startupProbe": {"httpGet": {"path": "/version", "port": 8080}, "periodSeconds": 1, "failureThreshold": 180}}])
    };
    let spec =
        json!({"initContainers": native(WEB), "containers": [], "updateStrategy": {"type": "NotUpdate"}});
    let set = Set::new(&on.scenario, "nodes-native", &spec);
    let before = pod_of(&on, &set);
    until_serves(&before, 8080, "1");
    let (sidecar, main) = (init_status(&before), status_of(&before, "main").clone());
    assert_eq!(
        (&sidecar["name"], &sidecar["ready"]),
        (&json!("proxy"), &json!(true))
    );
    assert!(at(&sidecar) <= at(&main), "{sidecar} {main}");

    set.patch(&json!({"initContainers": native("lab.test/web:2")}));
    set.until_status(&json!({"matchedPods": 1, "updatedPods": 0}));
    let after = on.pod();
    assert_eq!(identity(&after), identity(&before));
    assert_eq!(init_status(&after)["containerID"], sidecar["containerID"]);
    let name = text(&after, "/metadata/name");
    on.scenario.kubectl.run(&["delete", "pod", &name]).unwrap();
    set.until_status(&json!({"matchedPods": 1, "updatedReadyPods": 1}));
    until_serves(&on.pod(), 8080, "2");
}

/// A sidecar of a pair: idles on request, else serves at the free port, publishes which, and only then is ready.
const TWIN: &str = r#"
if test "$SIDECARSET_VERSION" = 0; then touch /tmp/ready; exec /bin/pause; fi
if httpd -p 8001 -h /www; then port=8001; elif httpd -p 8002 -h /www; then port=8002; else exit 1; fi
until wget -q -O /dev/null http://127.0.0.1:$port/version; do sleep 1; done
echo $port > /mesh/next && busybox mv /mesh/next /mesh/port && touch /tmp/ready
while true; do sleep 3600; done
"#;

/// Sends requests to the port that was published last. A request without an answer is lost, unless another port was
/// published meanwhile. Serves the number of requests, the number of lost ones, and the last answer.
const CLIENT: &str = r#"
asked=0 lost=0 answer=none
httpd -p 80 -h /tmp
while true; do
  port=$(cat /mesh/port)
  if test -n "$port"; then
    asked=$((asked + 1))
    if wget -q -O /tmp/answer http://127.0.0.1:$port/version; then answer=$(cat /tmp/answer)
    elif test "$port" = "$(cat /mesh/port)"; then lost=$((lost + 1)); fi
    echo "$asked $lost $answer" > /tmp/next && busybox mv /tmp/next /tmp/version
  fi
  sleep 0.1
done
"#;

/// What the client serves.
#[derive(Debug)]
struct Report {
    asked: u32,
    lost: u32,
    answer: String,
}

fn report(pod: &Value) -> Option<Report> {
    let line = version(pod)?;
    let mut words = line.split(' ');
    Some(Report {
        asked: words.next()?.parse().ok()?,
        lost: words.next()?.parse().ok()?,
        answer: words.next()?.to_owned(),
    })
}

/// Waits until the client has sent at least so many requests and got this last answer.
fn until_reported(on: &OnNodes, asked: u32, answer: &str) -> Report {
    wait::until(&format!("{asked} requests, answer {answer}"), LIMIT, || {
        Ok(report(&on.pod()).filter(|report| report.asked >= asked && report.answer == answer))
    })
    .unwrap()
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn a_hot_upgrade_loses_no_request() {
    let on = on_nodes("nodes-hot");
    let set = Set::new(
        &on.scenario,
        "nodes-hot",
        &json!({"containers": [{
            "name": "mesh", "image": WEB, "command": ["sh", "-c", TWIN],
            "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": TOOL},
            "shareVolumePolicy": {"type": "enabled"},
            "readinessProbe": {"exec": {"command": ["test", "-f", "/tmp/ready"]},
                "periodSeconds": 1, "timeoutSeconds": 30},
        }]}),
    );
    let client = json!([{"name": "main", "image": TOOL, "command": ["sh", "-c", CLIENT],
        "volumeMounts": [{"name": "mesh", "mountPath": "/mesh"}]}]);
    let mut web = web_of(1, &client);
    web["spec"]["template"]["spec"]["volumes"] = json!([{"name": "mesh", "emptyDir": {}}]);
    on.scenario.kubectl.apply(&web).unwrap();
    on.until_updated(1);
    set.until_status(&json!({"matchedPods": 1, "updatedReadyPods": 1}));
    let (before, running) = (on.pod(), on.runtime.processes(&on.pod()));
    let mut asked = until_reported(&on, 30, "1").asked;

    set.change("image", &json!("lab.test/web:none"));
    wait::until_true("a kubelet tries to pull", LIMIT, || {
        let pod = on.pod();
        let reason = &status_of(&pod, "mesh-2")["state"]["waiting"]["reason"];
        Ok(reason == "ErrImagePull" || reason == "ImagePullBackOff")
    })
    .unwrap();
    asked = until_reported(&on, asked + 30, "1").asked;
    let stuck = on.runtime.processes(&on.pod());
    assert_eq!(stuck.containers["mesh-1"], running.containers["mesh-1"]);

    for (image, answer, idle) in [
        ("lab.test/web:2", "2", "mesh-1"),
        ("lab.test/web:3", "3", "mesh-2"),
    ] {
        set.change("image", &json!(image));
        set.until_status(&json!({"matchedPods": 1, "updatedReadyPods": 1}));
        asked = until_reported(&on, asked + 30, answer).asked;
        wait::until_true("the other one idles", LIMIT, || {
            Ok(status_of(&on.pod(), idle)["image"] == TOOL)
        })
        .unwrap();
    }
    let now = on.runtime.processes(&on.pod());
    assert_eq!(identity(&on.pod()), identity(&before));
    assert_eq!(now.sandboxes, running.sandboxes);
    assert_eq!(now.containers["main"], running.containers["main"]);
    let report = report(&on.pod()).unwrap();
    println!("{report:?}");
    assert!(report.asked > 100, "{report:?}");
    assert_eq!(report.lost, 0, "{report:?}");
}
