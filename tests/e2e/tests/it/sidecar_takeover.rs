//! SidecarSets that OpenKruise ran are taken over at the moment its leader lets go: no pod, revision or set is written,
//! and an edit afterwards reaches the pods in place.

use kruise_e2e::audit::{Entry, MANAGER};
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, audit_log, crash_manager, scenario_alone, text};
use crate::stored::{Stored, anew};
use crate::takeover::{stand_by, take_over};

/// The set of the fixtures.
const SET: &str = "logs";
/// A set that is for no pod: once it has a status, the controller is at work.
const PROBE: &str = "sidecar-takeover-probe";

/// Everything is deleted however the scenario ends: the set of the next one has the same name, and would count these pods, whose
/// nodes may be nobody's.
struct Clean<'a>(&'a Scenario);

impl Drop for Clean<'_> {
    fn drop(&mut self) {
        let _ = self.0.kubectl.run(&[
            "delete",
            "pods",
            "-l",
            "inject=yes",
            "--force",
            "--grace-period=0",
        ]);
        let _ = self
            .0
            .kubectl
            .run(&["delete", "sidecarsets", SET, PROBE, "--ignore-not-found"]);
        let of_set = format!("kruise.io/sidecarset-name={SET}");
        let _ = self.0.kubectl.in_namespace("kruise-system").run(&[
            "delete",
            "controllerrevisions",
            "-l",
            &of_set,
            "--ignore-not-found",
        ]);
    }
}

/// Pods first: where there is no set yet, nothing is injected into them anew.
fn restore(scenario: &Scenario, version: &str, phase: &'static str) {
    let mut stored = Stored::of(&scenario.kubectl, version, phase);
    for pod in stored.items("pods") {
        if pod["metadata"]["annotations"]["kruise.io/sidecarset-injected-list"] != SET {
            continue;
        }
        let mut new = anew(&pod);
        new["metadata"].as_object_mut().unwrap().remove("ownerReferences");
        stored.place(&mut new);
        let created = scenario.kubectl.create(&new).unwrap();
        assert_eq!(created["metadata"]["annotations"], pod["metadata"]["annotations"]);
        stored.put_status("pods", &created, &pod["status"]);
    }
    let sets = stored.items("sidecarsets");
    let [set] = &sets[..] else { panic!("one set") };
    let created = scenario.kubectl.create(&anew(set)).unwrap();
    for hash in [
        "kruise.io/sidecarset-hash",
        "kruise.io/sidecarset-hash-without-image",
    ] {
        assert_eq!(
            created["metadata"]["annotations"][hash],
            set["metadata"]["annotations"][hash]
        );
    }
    let mut status = set["status"].clone();
    status["observedGeneration"] = created["metadata"]["generation"].clone();
    stored.put_status("sidecarsets", &created, &status);
    let system = scenario.kubectl.in_namespace("kruise-system");
    for revision in stored.items("controllerrevisions") {
        if revision["metadata"]["labels"]["kruise.io/sidecarset-name"] == SET {
            let mut new = anew(&revision);
            new["metadata"]["ownerReferences"][0]["uid"] = created["metadata"]["uid"].clone();
            system.create(&new).unwrap();
        }
    }
}

fn probe(scenario: &Scenario) {
    let container = json!({"name": "probe", "image": "probe:1"});
    let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": PROBE},
        "spec": {"selector": {"matchLabels": {"sidecar-takeover": "nobody"}}, "containers": [container]}});
    scenario.kubectl.apply(&set).unwrap();
    wait::until_true("the controller of SidecarSets is at work", LIMIT, || {
        let set = scenario.kubectl.get("sidecarsets", PROBE)?;
        Ok(set["status"]["observedGeneration"] == set["metadata"]["generation"])
    })
    .unwrap();
}

/// Writes of what was restored.
fn writes(requests: &[Entry], namespace: &str) -> Vec<String> {
    let restored = requests.iter().filter(|entry| {
        entry.is_write()
            && match entry.resource.split('/').next() {
                Some("pods") => entry.namespace == namespace && !entry.name.starts_with("web-"),
                Some("sidecarsets") => entry.name == SET,
                Some("controllerrevisions") => entry.name.starts_with(&format!("{SET}-")),
                _ => false,
            }
    });
    restored
        .map(|entry| format!("{} {} {} {}", entry.verb, entry.resource, entry.name, entry.code))
        .collect()
}

fn pods(scenario: &Scenario) -> Vec<Value> {
    scenario.kubectl.list("pods", "inject=yes").unwrap()
}

fn uids(scenario: &Scenario) -> Vec<String> {
    let mut uids: Vec<String> = pods(scenario)
        .iter()
        .map(|pod| text(pod, "/metadata/uid"))
        .collect();
    uids.sort();
    uids
}

fn versions(scenario: &Scenario) -> Vec<String> {
    let mut versions: Vec<String> = pods(scenario)
        .iter()
        .map(|pod| text(pod, "/metadata/resourceVersion"))
        .collect();
    versions.sort();
    versions
}

/// What a kubelet reports once the containers run what the pod specifies: the nodes of these pods have none.
fn follow(scenario: &Scenario, pod: &Value) -> anyhow::Result<()> {
    let mut statuses = pod["status"]["containerStatuses"].clone();
    for status in statuses.as_array_mut().unwrap() {
        let containers = pod["spec"]["containers"].as_array().unwrap();
        let wanted = containers.iter().find(|one| one["name"] == status["name"]);
        let image = wanted.unwrap()["image"].clone();
        if status["image"] != image {
            status["imageID"] = json!(format!("fake://{}", image.as_str().unwrap()));
            status["image"] = image;
        }
    }
    let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    if statuses == pod["status"]["containerStatuses"] && conditions.iter().any(is_ready) {
        return Ok(());
    }
    let ready = json!({"type": "Ready", "status": "True"});
    let patch = json!({"status": {"containerStatuses": statuses, "conditions": [ready]}}).to_string();
    let name = text(pod, "/metadata/name");
    let status = ["--subresource=status", "--type=strategic", "-p", &patch];
    scenario
        .kubectl
        .run(&[&["patch", "pod", name.as_str()][..], &status].concat())?;
    Ok(())
}

fn taken_over_and_upgraded(version: &str, phase: &'static str) {
    let namespace = format!("sidecar-takeover-{}-{phase}", version.replace('.', "-"));
    let scenario = scenario_alone(&namespace);
    let _clean = Clean(&scenario);
    stand_by(&scenario);
    restore(&scenario, version, phase);
    let everywhere = ["get", "pods", "-A", "-l", "inject=yes", "-o", "name"];
    assert_eq!(scenario.kubectl.run(&everywhere).unwrap().lines().count(), 2);
    let before = uids(&scenario);
    let restored = versions(&scenario);
    let mut log = audit_log();
    take_over(&scenario);
    probe(&scenario);
    let mut done = writes(&log.read_new(MANAGER).unwrap(), &namespace);
    if versions(&scenario) != restored {
        // Their nodes are silent, and have been for so long that the cluster noticed: counts of ready pods follow.
        done.retain(|write| !write.starts_with("patch sidecarsets/status"));
    }
    assert_eq!(done, [""; 0]);
    crash_manager(scenario.kubectl.kubeconfig());
    let mut containers = scenario.kubectl.get("sidecarsets", SET).unwrap()["spec"]["containers"].clone();
    containers[0]["image"] = json!("busybox:1.37");
    let edit = json!({"spec": {"containers": containers, "updateStrategy": {"partition": 0}}});
    scenario.kubectl.patch("sidecarsets", SET, &edit).unwrap();
    wait::until_true("both pods follow the edit", LIMIT, || {
        for pod in pods(&scenario) {
            follow(&scenario, &pod)?;
        }
        let set = scenario.kubectl.get("sidecarsets", SET)?;
        Ok(
            set["status"]["observedGeneration"] == set["metadata"]["generation"]
                && set["status"]["updatedReadyPods"] == 2,
        )
    })
    .unwrap();
    assert_eq!(uids(&scenario), before, "in place");
    for pod in pods(&scenario) {
        assert_eq!(text(&pod, "/spec/containers/0/image"), "busybox:1.37");
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn sidecars_of_1_4_at_rest_are_taken_over_without_a_write_and_follow_an_edit() {
    taken_over_and_upgraded("1.4", "rest");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn sidecars_of_1_8_4_at_rest_are_taken_over_without_a_write_and_follow_an_edit() {
    taken_over_and_upgraded("1.8.4", "rest");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn sidecars_of_1_9_0_at_rest_are_taken_over_without_a_write_and_follow_an_edit() {
    taken_over_and_upgraded("1.9.0", "rest");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn sidecars_of_main_at_rest_are_taken_over_without_a_write_and_follow_an_edit() {
    taken_over_and_upgraded("main", "rest");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn an_upgrade_of_sidecars_of_1_8_4_is_taken_over_without_a_write_and_follows_an_edit() {
    taken_over_and_upgraded("1.8.4", "mid");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn an_upgrade_of_sidecars_of_1_9_0_is_taken_over_without_a_write_and_follows_an_edit() {
    taken_over_and_upgraded("1.9.0", "mid");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn an_upgrade_of_sidecars_of_main_is_taken_over_without_a_write_and_follows_an_edit() {
    taken_over_and_upgraded("main", "mid");
}
