//! Injected sidecars are upgraded in place, a few at a time, and pods report where that is not possible.
//!
//! SidecarSets have no namespace: each here selects by a label and by the name of the scenario's namespace, and
//! goes when its scenario ends.

use std::collections::BTreeMap;

use kruise_e2e::audit::{Entry, MANAGER};
use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, explained, scenario, text};

/// A SidecarSet, deleted however the scenario ends.
pub(crate) struct Set<'a> {
    scenario: &'a Scenario,
    name: String,
}

impl<'a> Set<'a> {
    /// Injects a container into pods `app: web` of the scenario's namespace; returns once new pods would get it.
    pub(crate) fn new(scenario: &'a Scenario, name: &str, spec: &Value) -> Self {
        let namespace = scenario.kubectl.namespace().unwrap();
        let mut full = json!({
            "selector": {"matchLabels": {"app": "web"}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "containers": [{"name": format!("{name}-agent"), "image": "agent:1"}],
        });
        full.as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let set = Self {
            scenario,
            name: name.to_owned(),
        };
        let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
            "metadata": {"name": name}, "spec": full});
        scenario.kubectl.apply(&object).unwrap();
        wait::until_true(&format!("{name} is injected"), LIMIT, || {
            let probe = json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "probe", "labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}});
            let dry_run = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
            let made: Value =
                serde_json::from_str(&scenario.kubectl.run_with_input(&dry_run, &probe.to_string())?)?;
            let list = text(&made, "/metadata/annotations/kruise.io~1sidecarset-injected-list");
            Ok(list.split(',').any(|injected| injected == name))
        })
        .unwrap();
        set.until_status(&json!({"matchedPods": 0}));
        set
    }

    fn get(&self) -> Value {
        self.scenario.kubectl.get("sidecarsets", &self.name).unwrap()
    }

    /// Changes the specification.
    pub(crate) fn patch(&self, spec: &Value) {
        let patch = json!({"spec": spec});
        self.scenario
            .kubectl
            .patch("sidecarsets", &self.name, &patch)
            .unwrap();
    }

    /// Changes the first container.
    pub(crate) fn change(&self, member: &str, value: &Value) {
        let mut containers = self.get()["spec"]["containers"].clone();
        containers[0][member] = value.clone();
        self.patch(&json!({"containers": containers}));
    }

    pub(crate) fn until_status(&self, fields: &Value) {
        wait::until_true(&format!("status of {} has {fields}", self.name), LIMIT, || {
            let set = self.scenario.kubectl.get("sidecarsets", &self.name)?;
            let current = set["status"]["observedGeneration"] == set["metadata"]["generation"];
            let wanted = fields.as_object().unwrap();
            // A count that is absent is zero.
            let has = |(key, value): (&String, &Value)| {
                set["status"][key] == *value || (*value == 0 && set["status"][key].is_null())
            };
            Ok(current && wanted.iter().all(has))
        })
        .unwrap();
    }
}

impl Drop for Set<'_> {
    fn drop(&mut self) {
        // It may be gone, and the scenario may have failed already.
        let delete = [
            "delete",
            "sidecarset",
            &self.name,
            "--ignore-not-found",
            "--wait=false",
        ];
        let _ = self.scenario.kubectl.run(&delete);
    }
}

fn deploy(scenario: &Scenario, replicas: u64) {
    let labels = json!({"app": "web"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}},
    });
    scenario.kubectl.apply(&deployment).unwrap();
}

/// Image of a container, by pod.
fn images(scenario: &Scenario, container: &str) -> Vec<String> {
    let pods = scenario.pods();
    let mut images: Vec<String> = pods.iter().map(|pod| image(pod, container)).collect();
    images.sort();
    images
}

fn image(pod: &Value, container: &str) -> String {
    let all = pod["spec"]["containers"].as_array().unwrap();
    all.iter()
        .find(|one| one["name"] == container)
        .map(|one| text(one, "/image"))
        .unwrap_or_default()
}

/// Does the container run its new image, in a pod that is ready?
fn has_arrived(pod: &Value, container: &str) -> bool {
    let wanted = image(pod, container);
    let statuses = pod["status"]["containerStatuses"].as_array();
    let runs = statuses
        .into_iter()
        .flatten()
        .any(|status| status["name"] == container && status["image"] == wanted && status["ready"] == true);
    let conditions = pod["status"]["conditions"].as_array();
    let ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    runs && ready
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn an_image_reaches_all_pods_and_never_more_are_on_their_way_than_may_be() {
    let scenario = scenario("sidecarset-upgrade");
    let agent = "sidecarset-upgrade-agent";
    let set = Set::new(
        &scenario,
        "sidecarset-upgrade",
        &json!({"updateStrategy": {"maxUnavailable": 2}}),
    );
    deploy(&scenario, 6);
    set.until_status(&json!({"matchedPods": 6, "updatedPods": 6, "readyPods": 6}));
    let uids = scenario.uids();
    let watch = Watch::start(&scenario.kubectl, "pods", "app=web").unwrap();
    watch.until_shown(6, LIMIT).unwrap();
    set.change("image", &json!("agent:2"));
    set.until_status(&json!({"matchedPods": 6, "updatedPods": 6, "readyPods": 6, "updatedReadyPods": 6}));
    assert_eq!(images(&scenario, agent), ["agent:2"; 6]);
    assert_eq!(scenario.uids(), uids, "in place");
    let mut pods: BTreeMap<String, Value> = BTreeMap::new();
    let mut most = 0;
    for event in watch.stop().unwrap() {
        let pod = event["object"].clone();
        pods.insert(text(&pod, "/metadata/name"), pod);
        let under_way = pods
            .values()
            .filter(|pod| image(pod, agent) == "agent:2" && !has_arrived(pod, agent))
            .count();
        most = most.max(under_way);
    }
    assert!(most <= 2, "{most} pods were on their way at once");
    let revision = text(&set.get(), "/status/latestRevision");
    let stored = scenario
        .kubectl
        .in_namespace("kruise-system")
        .get("controllerrevisions", &revision)
        .unwrap();
    assert_eq!(stored["revision"], 2);
    for pod in scenario.pods() {
        let records = text(&pod, "/metadata/annotations/kruise.io~1sidecarset-hash");
        let records: Value = serde_json::from_str(&records).unwrap();
        assert_eq!(
            records["sidecarset-upgrade"]["controllerRevision"],
            json!(revision)
        );
        let found = condition(&pod);
        assert_eq!(
            found,
            ("True".to_owned(), r#"{"sidecarset-upgrade":true}"#.to_owned())
        );
    }
}

/// Status and message of the condition that sets write.
fn condition(pod: &Value) -> (String, String) {
    let conditions = pod["status"]["conditions"].as_array();
    let found = conditions
        .into_iter()
        .flatten()
        .find(|one| one["type"] == "SidecarSetUpgradable");
    found
        .map(|one| (text(one, "/status"), text(one, "/message")))
        .unwrap_or_default()
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_partition_holds_pods_and_explain_reports_it() {
    let scenario = scenario("sidecarset-partition");
    let name = "sidecarset-partition";
    let set = Set::new(
        &scenario,
        name,
        &json!({"updateStrategy": {"partition": "50%", "maxUnavailable": "100%"}}),
    );
    deploy(&scenario, 4);
    set.until_status(&json!({"matchedPods": 4, "readyPods": 4}));
    set.change("image", &json!("agent:2"));
    set.until_status(&json!({"updatedReadyPods": 2, "readyPods": 4}));
    // A pod that has just been made waits for a few seconds before anything else holds it.
    wait::until_true("both are held by the partition", LIMIT, || {
        let output = explained(&scenario, &["sidecarset/sidecarset-partition"]);
        assert!(
            output.contains("4 pods have its sidecars, 2 of them are up to date"),
            "{output}"
        );
        Ok(output.matches("the partition holds it").count() == 2)
    })
    .unwrap();
    let agent = format!("{name}-agent");
    let held = scenario
        .pods()
        .into_iter()
        .find(|pod| image(pod, &agent) == "agent:1")
        .unwrap();
    let output = explained(
        &scenario,
        &["sidecarset/sidecarset-partition", &text(&held, "/metadata/name")],
    );
    assert_eq!(output.matches("pods/").count(), 1, "{output}");
    set.patch(&json!({"updateStrategy": {"partition": 0}}));
    set.until_status(&json!({"updatedReadyPods": 4}));
    // Back again: an earlier revision is the newest once more.
    set.change("image", &json!("agent:1"));
    set.until_status(&json!({"updatedReadyPods": 4}));
    let revision = text(&set.get(), "/status/latestRevision");
    let stored = scenario
        .kubectl
        .in_namespace("kruise-system")
        .get("controllerrevisions", &revision)
        .unwrap();
    assert_eq!(stored["revision"], 3);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_change_beyond_images_is_reported_and_waits_for_new_pods() {
    let scenario = scenario("sidecarset-stranded");
    let set = Set::new(&scenario, "sidecarset-stranded", &json!({}));
    deploy(&scenario, 2);
    set.until_status(&json!({"matchedPods": 2, "readyPods": 2}));
    set.change("env", &json!([{"name": "LEVEL", "value": "debug"}]));
    set.until_status(&json!({"matchedPods": 2, "updatedPods": 0}));
    wait::until_true("both pods report it", LIMIT, || {
        let expected = ("False".to_owned(), r#"{"sidecarset-stranded":false}"#.to_owned());
        Ok(scenario.pods().iter().all(|pod| condition(pod) == expected))
    })
    .unwrap();
    wait::until_true("an event counts them", LIMIT, || {
        let events = scenario.kubectl.in_namespace("default").list("events", "")?;
        Ok(events.iter().any(|event| {
            event["reason"] == "NotUpgradablePods"
                && event["involvedObject"]["name"] == "sidecarset-stranded"
                && text(event, "/message").contains("detected 2 not upgradable pod(s)")
        }))
    })
    .unwrap();
    scenario
        .kubectl
        .run(&["delete", "pods", "-l", "app=web", "--wait=false"])
        .unwrap();
    set.until_status(&json!({"matchedPods": 2, "updatedReadyPods": 2}));
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_hot_upgrade_starts_the_idle_twin_and_then_idles_the_other() {
    let scenario = scenario("sidecarset-hot");
    let mesh = json!({"containers": [{"name": "mesh", "image": "mesh:1",
        "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "mesh:empty"}}]});
    let set = Set::new(&scenario, "sidecarset-hot", &mesh);
    deploy(&scenario, 2);
    set.until_status(&json!({"matchedPods": 2, "readyPods": 2}));
    for (wanted, first, second) in [
        ("mesh:2", "mesh:empty", "mesh:2"),
        ("mesh:3", "mesh:3", "mesh:empty"),
    ] {
        set.change("image", &json!(wanted));
        set.until_status(&json!({"updatedReadyPods": 2}));
        assert_eq!(images(&scenario, "mesh-1"), [first; 2]);
        assert_eq!(images(&scenario, "mesh-2"), [second; 2]);
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn two_sets_upgrade_the_same_pods_and_neither_forgets_the_other() {
    let scenario = scenario("sidecarset-two");
    let strategy = json!({"updateStrategy": {"maxUnavailable": "50%"}});
    let one = Set::new(&scenario, "sidecarset-one", &strategy);
    let two = Set::new(&scenario, "sidecarset-two", &strategy);
    deploy(&scenario, 4);
    for set in [&one, &two] {
        set.until_status(&json!({"matchedPods": 4, "readyPods": 4}));
    }
    let mut log = scenario.audit_log();
    for set in [&one, &two] {
        set.change("image", &json!("agent:2"));
    }
    for set in [&one, &two] {
        set.until_status(&json!({"updatedReadyPods": 4}));
    }
    let requests = log.read_new(MANAGER).unwrap();
    let of_pods = requests.iter().filter(|entry| entry.resource.starts_with("pods"));
    let (refused, written): (Vec<&Entry>, Vec<&Entry>) = of_pods.partition(|entry| entry.code == 409);
    println!(
        "{} requests for 4 pods of two sets, and {} refused",
        written.len(),
        refused.len()
    );
    assert!(written.len() <= 16, "two for each pod and set: {written:#?}");
    for pod in scenario.pods() {
        assert_eq!(image(&pod, "sidecarset-one-agent"), "agent:2");
        assert_eq!(image(&pod, "sidecarset-two-agent"), "agent:2");
        let expected = r#"{"sidecarset-one":true,"sidecarset-two":true}"#;
        assert_eq!(condition(&pod), ("True".to_owned(), expected.to_owned()));
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_set_that_is_deleted_leaves_its_pods_as_they_are() {
    let scenario = scenario("sidecarset-deleted");
    let set = Set::new(&scenario, "sidecarset-deleted", &json!({}));
    deploy(&scenario, 2);
    set.until_status(&json!({"matchedPods": 2, "readyPods": 2}));
    let before = scenario.uids();
    scenario
        .kubectl
        .run(&["delete", "sidecarset", "sidecarset-deleted"])
        .unwrap();
    let system = scenario.kubectl.in_namespace("kruise-system");
    wait::until_true("its revisions are gone", wait::QUIET, || {
        Ok(system
            .list(
                "controllerrevisions",
                "kruise.io/sidecarset-name=sidecarset-deleted",
            )?
            .is_empty())
    })
    .unwrap();
    assert_eq!(scenario.uids(), before);
    assert_eq!(images(&scenario, "sidecarset-deleted-agent"), ["agent:1"; 2]);
}
