//! Lifecycle hooks: what holds a pod, what that does to its service, and what it costs.

use kruise_e2e::audit::{Counts, Entry, MANAGER};
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, container, scenario, text, web};

/// What holds pods here: a label and a finalizer of this name.
const HOLD: &str = "shop.example/drain";

/// A CloneSet whose hook marks pods; its pods have what the hook requires.
fn hooked(replicas: u32, hook: &str) -> Value {
    let mut set = web(replicas);
    set["spec"]["lifecycle"] = json!({hook: {"labelsHandler": {HOLD: "yes"}, "markPodNotReady": true}});
    set["spec"]["template"]["metadata"]["labels"][HOLD] = json!("yes");
    set["spec"]["updateStrategy"]["maxUnavailable"] = json!("100%");
    set
}

fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = pod["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)
}

fn is_true(pod: &Value, kind: &str) -> bool {
    condition(pod, kind).is_some_and(|condition| condition["status"] == "True")
}

fn state(pod: &Value) -> String {
    text(pod, "/metadata/labels/lifecycle.apps.kruise.io~1state")
}

/// Who holds the pod out of service, as `writer/key`.
fn holders(pod: &Value) -> Vec<String> {
    let message = condition(pod, "KruisePodReady").map(|condition| text(condition, "/message"));
    let holds: Vec<Value> = serde_json::from_str(&message.unwrap_or_default()).unwrap_or_default();
    holds
        .iter()
        .map(|hold| format!("{}/{}", text(hold, "/userAgent"), text(hold, "/key")))
        .collect()
}

/// Waits until every pod is so.
fn until_pods(scenario: &Scenario, what: &str, test: impl Fn(&Value) -> bool) -> Vec<Value> {
    wait::until(what, LIMIT, || {
        let pods = scenario.pods();
        Ok((!pods.is_empty() && pods.iter().all(&test)).then_some(pods))
    })
    .unwrap()
}

/// Puts the holding label on all pods, or takes it off.
fn label(scenario: &Scenario, on: bool) {
    let change = if on {
        format!("{HOLD}=yes")
    } else {
        format!("{HOLD}-")
    };
    let args = ["label", "pods", "-l", "app=web", "--overwrite", &change];
    scenario.kubectl.run(&args).unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_finalizer_holds_a_pod_before_its_deletion_and_takes_it_out_of_service_meanwhile() {
    let scenario = scenario("hook-finalizer");
    let mut set = web(2);
    set["spec"]["lifecycle"] = json!({"preDelete": {"finalizersHandler": [HOLD], "markPodNotReady": true}});
    set["spec"]["template"]["metadata"]["finalizers"] = json!([HOLD]);
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"availableReplicas": 2}));
    let chosen = scenario.pods().remove(0);
    let name = text(&chosen, "/metadata/name");
    let asked = json!({"metadata": {"labels": {"apps.kruise.io/specified-delete": "true"}}});
    scenario.kubectl.patch("pods", &name, &asked).unwrap();
    let drained = |pod: &Value| {
        state(pod) == "PreparingDelete" && !is_true(pod, "Ready") && !is_true(pod, "KruisePodReady")
    };
    wait::until_true("the pod is held and out of service", LIMIT, || {
        Ok(drained(&scenario.kubectl.get("pods", &name)?))
    })
    .unwrap();
    scenario.until_status(&json!({"replicas": 2, "availableReplicas": 1}));
    let held = scenario.kubectl.get("pods", &name).unwrap();
    assert_eq!(holders(&held), ["Lifecycle/preDeleteHook"]);
    assert!(
        held.pointer("/metadata/deletionTimestamp").is_none(),
        "it is not deleted while held"
    );
    let kept = text(&scenario.pods()[1], "/metadata/uid");

    scenario
        .kubectl
        .patch("pods", &name, &json!({"metadata": {"finalizers": null}}))
        .unwrap();
    wait::until_true("another pod is in its place", LIMIT, || {
        let uids = scenario.uids();
        Ok(uids.len() == 2 && uids.contains(&kept) && !uids.contains(&text(&held, "/metadata/uid")))
    })
    .unwrap();
    scenario.until_status(&json!({"replicas": 2, "availableReplicas": 2}));
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_marking_hook_completes_and_the_pod_becomes_available_again() {
    let scenario = scenario("hook-round");
    let mut set = hooked(1, "inPlaceUpdate");
    set["spec"]["lifecycle"]["inPlaceUpdate"]["finalizersHandler"] = json!([HOLD]);
    set["spec"]["template"]["metadata"]["finalizers"] = json!([HOLD]);
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"availableReplicas": 1}));
    let uid = scenario.uids();
    let free = |image: &str| {
        until_pods(&scenario, "held before the update", |pod| {
            state(pod) == "PreparingUpdate"
        });
        let held = until_pods(&scenario, "out of service", |pod| !is_true(pod, "Ready"));
        assert_eq!(holders(&held[0]), ["Lifecycle/preUpdateHook"]);
        assert_ne!(
            text(&held[0], "/spec/containers/0/image"),
            image,
            "nothing changes while it is held"
        );
        let name = text(&held[0], "/metadata/name");
        let off = json!({"metadata": {"finalizers": null, "labels": {HOLD: null}}});
        scenario.kubectl.patch("pods", &name, &off).unwrap();
        // Updated and in service again, though not counted: the hook is not back yet.
        let updated = until_pods(&scenario, "updated", |pod| {
            state(pod) == "Updated" && is_true(pod, "Ready")
        });
        assert_eq!(text(&updated[0], "/spec/containers/0/image"), image);
        scenario.until_status(&json!({"availableReplicas": 0, "readyReplicas": 1}));
    };
    scenario.patch(&container("nginx:2", "b"));
    free("nginx:2");
    // A second change runs the hook again: label and finalizer are back, written by the manager.
    scenario.patch(&container("nginx:3", "b"));
    let again = until_pods(&scenario, "held again", |pod| state(pod) == "PreparingUpdate");
    assert_eq!(again[0].pointer("/metadata/finalizers"), Some(&json!([HOLD])));
    assert_eq!(again[0]["metadata"]["labels"][HOLD], "yes");
    free("nginx:3");
    let name = text(&scenario.pods()[0], "/metadata/name");
    let on = json!({"metadata": {"finalizers": [HOLD], "labels": {HOLD: "yes"}}});
    scenario.kubectl.patch("pods", &name, &on).unwrap();
    let back = until_pods(&scenario, "normal again", |pod| {
        state(pod) == "Normal" && is_true(pod, "Ready")
    });
    assert!(holders(&back[0]).is_empty());
    scenario.until_status(&json!({"availableReplicas": 1, "updatedReplicas": 1}));
    assert_eq!(scenario.uids(), uid);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_set_that_forgets_its_hook_gives_its_pods_back() {
    let scenario = scenario("hook-forgotten");
    scenario.kubectl.apply(&hooked(3, "inPlaceUpdate")).unwrap();
    scenario.until_status(&json!({"availableReplicas": 3}));
    let uids = scenario.uids();
    scenario.patch(&container("nginx:2", "b"));
    until_pods(&scenario, "held and out of service", |pod| {
        state(pod) == "PreparingUpdate" && !is_true(pod, "Ready")
    });
    // The update is taken back together with the hook that would have to let it go.
    let mut back = container("nginx:1", "b");
    back["spec"]["lifecycle"] = Value::Null;
    scenario.patch(&back);
    let pods = until_pods(&scenario, "back in service", |pod| {
        state(pod) == "Normal" && is_true(pod, "Ready") && is_true(pod, "KruisePodReady")
    });
    scenario.until_status(&json!({"availableReplicas": 3, "updatedReplicas": 3}));
    assert_eq!(scenario.uids(), uids);
    for pod in pods {
        assert_eq!(
            pod.pointer("/status/containerStatuses/0/restartCount"),
            Some(&json!(0))
        );
        assert!(holders(&pod).is_empty());
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_pod_stays_not_ready_until_both_writers_remove_their_keys() {
    let scenario = scenario("hook-two");
    scenario.kubectl.apply(&hooked(1, "inPlaceUpdate")).unwrap();
    scenario.until_status(&json!({"availableReplicas": 1}));
    scenario.patch(&container("nginx:2", "b"));
    until_pods(&scenario, "held", |pod| {
        holders(pod) == ["Lifecycle/preUpdateHook"]
    });
    let name = text(&scenario.pods()[0], "/metadata/name");
    let write = |holds: &Value, status: &str| {
        let condition = json!({"type": "KruisePodReady", "status": status, "message": holds.to_string()});
        let patch = json!({"status": {"conditions": [condition]}}).to_string();
        let args = [
            "patch",
            "pods",
            &name,
            "--subresource=status",
            "--type=strategic",
            "-p",
            &patch,
        ];
        scenario.kubectl.run(&args).unwrap();
    };
    let other = json!({"userAgent": "ContainerRecreateRequest", "key": "shop/restart"});
    let own = json!({"userAgent": "Lifecycle", "key": "preUpdateHook"});
    write(&json!([other, own]), "False");
    label(&scenario, false);
    let updated = until_pods(&scenario, "updated", |pod| state(pod) == "Updated");
    assert_eq!(text(&updated[0], "/spec/containers/0/image"), "nginx:2");
    assert!(is_true(&updated[0], "InPlaceUpdateReady"));
    let only = until_pods(&scenario, "one writer is left", |pod| {
        holders(pod) == ["ContainerRecreateRequest/shop/restart"]
    });
    assert!(!is_true(&only[0], "KruisePodReady") && !is_true(&only[0], "Ready"));
    label(&scenario, true);
    until_pods(&scenario, "the hook is back", |pod| state(pod) == "Normal");
    assert!(
        !is_true(&scenario.pods()[0], "Ready"),
        "the other writer still holds it"
    );
    scenario.until_status(&json!({"availableReplicas": 0}));
    write(&json!([]), "True");
    scenario.until_status(&json!({"availableReplicas": 1}));
}

/// What a row of the table in the documentation costs.
fn stated(row: &str) -> u64 {
    let table = include_str!("../../../../docs/lifecycle.md").lines();
    let mut cells = table.filter_map(|line| line.trim_matches('|').split_once(" | "));
    let found = cells.find(|(name, _)| name.trim() == row);
    let (_, rest) = found.unwrap_or_else(|| panic!("no row {row}"));
    rest.split('|').next().unwrap().trim().parse().unwrap()
}

/// Accepted requests for pods. A refused one is repeated, and costs what the neighbours' writes make it cost.
fn accepted(entries: &[Entry]) -> u64 {
    let of_pods: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.resource.starts_with("pods"))
        .collect();
    println!("{}", Counts::of(of_pods.iter().copied()));
    of_pods.iter().filter(|entry| entry.code < 300).count() as u64
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn each_hook_costs_the_requests_that_the_documentation_states() {
    let scenario = scenario("hook-costs");
    let pods = 4;
    let mut log = scenario.audit_log();
    let mut cost = |row: &str| {
        let counted = accepted(&log.read_new(MANAGER).unwrap());
        assert_eq!(counted, stated(row) * pods, "{row}");
    };
    let mut set = hooked(4, "inPlaceUpdate");
    let hook = set["spec"]["lifecycle"]["inPlaceUpdate"].clone();
    set["spec"]["lifecycle"]["preDelete"] = hook;
    set["spec"]["lifecycle"]["preNormal"] = json!({"labelsHandler": {"shop.example/warm": "yes"}});
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": pods, "availableReplicas": 0}));
    let warm = ["label", "pods", "-l", "app=web", "shop.example/warm=yes"];
    scenario.kubectl.run(&warm).unwrap();
    scenario.until_status(&json!({"availableReplicas": pods}));
    cost("creation with `preNormal`");
    scenario.patch(&container("nginx:2", "b"));
    until_pods(&scenario, "held", |pod| state(pod) == "PreparingUpdate");
    label(&scenario, false);
    until_pods(&scenario, "updated", |pod| state(pod) == "Updated");
    label(&scenario, true);
    scenario.until_status(&json!({"availableReplicas": pods, "updatedReplicas": pods}));
    cost("in-place update with `inPlaceUpdate`");
    scenario.patch(&json!({"spec": {"replicas": 0}}));
    until_pods(&scenario, "held", |pod| state(pod) == "PreparingDelete");
    label(&scenario, false);
    scenario.until_status(&json!({"replicas": 0}));
    cost("deletion with `preDelete`");
}
