//! SidecarSets that OpenKruise ran are taken over at the moment its leader lets go: no pod, revision or set is written,
//! and an edit afterwards reaches the pods in place.

use kruise_e2e::audit::{Entry, MANAGER};
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, audit_log, crash_manager, scenario_alone, text};
use crate::stored::{Left, Stored, anew, restored, side_by_side};
use crate::takeover::{stand_by, take_over};

/// The set of the fixtures.
const SET: &str = "logs";
const NAMESPACE: &str = "sidecar-takeover";
/// A set that is for no pod: once it has a status, the controller is at work.
const PROBE: &str = "sidecar-takeover-probe";

const LEFT: [Left; 7] = [
    ("1.4", "rest"),
    ("1.8.4", "rest"),
    ("1.9.0", "rest"),
    ("main", "rest"),
    ("1.8.4", "mid"),
    ("1.9.0", "mid"),
    ("main", "mid"),
];

/// What one version left. Sets are in no namespace: each has a name and a label of its own, the namespace.
struct Fixture<'s> {
    scenario: &'s Scenario,
    /// Of the set, and value of the label of its pods.
    name: &'s str,
}

/// Everything that is in no namespace of the scenario is deleted however it ends.
struct Clean<'a>(&'a Scenario);

impl Drop for Clean<'_> {
    fn drop(&mut self) {
        let of_scenario = format!("takeover-of={NAMESPACE}");
        let delete = ["delete", "sidecarsets", "--wait=false", "-l", &of_scenario];
        let _left = self.0.kubectl.run(&delete);
    }
}

impl<'s> Fixture<'s> {
    fn of(scenario: &'s Scenario) -> Self {
        let name = scenario.kubectl.namespace().unwrap();
        Self { scenario, name }
    }

    /// An object of the fixture, with the name and the label of this one.
    fn renamed(&self, object: &Value) -> Value {
        let mut new = anew(object);
        for label in ["/metadata/labels/inject", "/spec/selector/matchLabels/inject"] {
            if let Some(label) = new.pointer_mut(label) {
                *label = json!(self.name);
            }
        }
        for pointer in [
            "/metadata/name",
            "/metadata/labels/kruise.io~1sidecarset-name",
            "/metadata/ownerReferences/0/name",
            "/status/latestRevision",
        ] {
            if let Some(text) = new.pointer_mut(pointer) {
                self.rename(text);
            }
        }
        let annotations = new.pointer_mut("/metadata/annotations");
        for text in annotations.and_then(Value::as_object_mut).into_iter().flatten() {
            self.rename(text.1);
        }
        let conditions = new.pointer_mut("/status/conditions");
        for condition in conditions.and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(text) = condition.get_mut("message") {
                self.rename(text);
            }
        }
        new
    }

    /// The name of the set is all of a text, its beginning, or a string in its JSON.
    fn rename(&self, text: &mut Value) {
        let Some(old) = text.as_str() else { return };
        *text = json!(match old.strip_prefix(SET) {
            Some("") => self.name.to_owned(),
            Some(rest) if rest.starts_with('-') => format!("{}{rest}", self.name),
            _ => old.replace(&format!("\"{SET}\""), &format!("\"{}\"", self.name)),
        });
    }

    /// Pods first: where there is no set yet, nothing is injected into them anew.
    fn restore(&self, version: &str, phase: &'static str) -> Stored {
        let kubectl = &self.scenario.kubectl;
        let mut stored = Stored::of(kubectl, version, phase);
        for pod in stored.items("pods") {
            if pod["metadata"]["annotations"]["kruise.io/sidecarset-injected-list"] != SET {
                continue;
            }
            let mut new = self.renamed(&pod);
            new["metadata"].as_object_mut().unwrap().remove("ownerReferences");
            stored.place(&mut new);
            let created = kubectl.create(&new).unwrap();
            assert_eq!(created["metadata"]["annotations"], new["metadata"]["annotations"]);
            stored.put_status("pods", &created, &new["status"]);
        }
        let sets = stored.items("sidecarsets");
        let [set] = &sets[..] else { panic!("one set") };
        let mut new = self.renamed(set);
        new["metadata"]["labels"] = json!({"takeover-of": NAMESPACE});
        let created = kubectl.create(&new).unwrap();
        for hash in [
            "kruise.io/sidecarset-hash",
            "kruise.io/sidecarset-hash-without-image",
        ] {
            let hash = |set: &Value| set["metadata"]["annotations"][hash].clone();
            assert_eq!(hash(&created), hash(set));
        }
        let mut status = new["status"].clone();
        status["observedGeneration"] = created["metadata"]["generation"].clone();
        stored.put_status("sidecarsets", &created, &status);
        let system = kubectl.in_namespace("kruise-system");
        for revision in stored.items("controllerrevisions") {
            if revision["metadata"]["labels"]["kruise.io/sidecarset-name"] == SET {
                let mut new = self.renamed(&revision);
                new["metadata"]["ownerReferences"][0]["uid"] = created["metadata"]["uid"].clone();
                system.create(&new).unwrap();
            }
        }
        stored
    }

    /// Writes of what was restored.
    fn writes(&self, requests: &[Entry]) -> Vec<String> {
        let of_revisions = format!("{}-", self.name);
        let restored = requests.iter().filter(|entry| {
            entry.is_write()
                && match entry.resource.split('/').next() {
                    Some("pods") => entry.namespace == self.name,
                    Some("sidecarsets") => entry.name == self.name,
                    Some("controllerrevisions") => entry.name.starts_with(&of_revisions),
                    _ => false,
                }
        });
        restored
            .map(|entry| format!("{} {} {} {}", entry.verb, entry.resource, entry.name, entry.code))
            .collect()
    }

    fn pods(&self) -> Vec<Value> {
        let selector = format!("inject={}", self.name);
        self.scenario.kubectl.list("pods", &selector).unwrap()
    }

    /// A member of the metadata of all pods, sorted.
    fn of_pods(&self, member: &str) -> Vec<String> {
        let pods = self.pods();
        let pointer = format!("/metadata/{member}");
        let mut all: Vec<String> = pods.iter().map(|pod| text(pod, &pointer)).collect();
        all.sort();
        all
    }

    /// An edit of the set reaches both pods, in place.
    fn follows_an_edit(&self) {
        let kubectl = &self.scenario.kubectl;
        let before = self.of_pods("uid");
        let mut containers = kubectl.get("sidecarsets", self.name).unwrap()["spec"]["containers"].clone();
        containers[0]["image"] = json!("busybox:1.37");
        let edit = json!({"spec": {"containers": containers, "updateStrategy": {"partition": 0}}});
        kubectl.patch("sidecarsets", self.name, &edit).unwrap();
        wait::until_true("both pods follow the edit", LIMIT, || {
            for pod in self.pods() {
                follow(kubectl, &pod)?;
            }
            let set = kubectl.get("sidecarsets", self.name)?;
            Ok(
                set["status"]["observedGeneration"] == set["metadata"]["generation"]
                    && set["status"]["updatedReadyPods"] == 2,
            )
        })
        .unwrap();
        assert_eq!(self.of_pods("uid"), before, "in place");
        for pod in self.pods() {
            assert_eq!(text(&pod, "/spec/containers/0/image"), "busybox:1.37");
        }
    }
}

fn probe(scenario: &Scenario) {
    let container = json!({"name": "probe", "image": "probe:1"});
    let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": PROBE, "labels": {"takeover-of": NAMESPACE}},
        "spec": {"selector": {"matchLabels": {"sidecar-takeover": "nobody"}}, "containers": [container]}});
    scenario.kubectl.apply(&set).unwrap();
    wait::until_true("the controller of SidecarSets is at work", LIMIT, || {
        let set = scenario.kubectl.get("sidecarsets", PROBE)?;
        Ok(set["status"]["observedGeneration"] == set["metadata"]["generation"])
    })
    .unwrap();
}

/// What a kubelet reports once the containers run what the pod specifies: the nodes of these pods have none.
fn follow(kubectl: &Kubectl, pod: &Value) -> anyhow::Result<()> {
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
    kubectl.run(&[&["patch", "pod", name.as_str()][..], &status].concat())?;
    Ok(())
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn sidecars_at_rest_and_in_upgrades_are_taken_over_without_a_write_and_follow_an_edit() {
    let scenario = scenario_alone(NAMESPACE);
    let _clean = Clean(&scenario);
    stand_by(&scenario);
    let left = restored(&scenario, &LEFT, |beside, (version, phase)| {
        Fixture::of(beside).restore(version, phase)
    });
    let fixtures: Vec<Fixture<'_>> = left.iter().map(|(beside, _)| Fixture::of(beside)).collect();
    let versions = || side_by_side(&fixtures, |fixture| fixture.of_pods("resourceVersion"));
    let restored = versions();
    assert!(restored.iter().all(|pods| pods.len() == 2), "{restored:?}");
    let mut log = audit_log();
    take_over(&scenario);
    probe(&scenario);
    let requests = log.read_new(MANAGER).unwrap();
    for ((fixture, restored), now) in fixtures.iter().zip(restored).zip(versions()) {
        let mut done = fixture.writes(&requests);
        if now != restored {
            // Their nodes are silent, and have been for so long that the cluster noticed: counts of ready pods follow.
            done.retain(|write| !write.starts_with("patch sidecarsets/status"));
        }
        assert_eq!(done, [""; 0], "{}", fixture.name);
    }
    crash_manager(scenario.kubectl.kubeconfig());
    side_by_side(&fixtures, Fixture::follows_an_edit);
}
