//! Pods that were created without sidecars while no webhook answered: they are reported, and recreated where their
//! set asks for it, a few at a time.

use std::collections::BTreeMap;

use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, Stopped, explained, scenario_alone, text};
use crate::sidecarset::Set;

const CONFIGURATION: &str = "kruise-mutating-webhook-configuration";
const RECREATE: &str = "apps.kruise.io/sidecarset-recreate-uninjected";
const PODS: usize = 3;

/// The webhooks of pods are not insisted upon, until the scenario ends.
struct Lenient<'a>(&'a Kubectl);

impl<'a> Lenient<'a> {
    fn new(kubectl: &'a Kubectl) -> Self {
        let lenient = Self(kubectl);
        lenient.insist("Ignore").unwrap();
        lenient
    }

    fn insist(&self, policy: &str) -> anyhow::Result<()> {
        let found = self.0.get("mutatingwebhookconfigurations", CONFIGURATION)?;
        let entries = found["webhooks"].as_array().cloned().unwrap_or_default();
        let of_pods = entries.iter().enumerate();
        let of_pods = of_pods.filter(|(_, entry)| text(entry, "/name").starts_with("mpod"));
        let patch: Vec<Value> = of_pods
            .map(|(index, _)| json!({"op": "replace", "path": format!("/webhooks/{index}/failurePolicy"), "value": policy}))
            .collect();
        let patch = Value::from(patch).to_string();
        self.0.run(&[
            "patch",
            "mutatingwebhookconfigurations",
            CONFIGURATION,
            "--type=json",
            "-p",
            &patch,
        ])?;
        Ok(())
    }
}

impl Drop for Lenient<'_> {
    fn drop(&mut self) {
        // The manager may write the configuration at the same moment.
        let insisted = wait::until("webhooks are insisted upon again", wait::QUIET, || {
            self.insist("Fail").map(Some)
        });
        if let Err(error) = insisted {
            eprintln!("{error:#}");
        }
    }
}

fn labels() -> Value {
    json!({"app": "web"})
}

fn deployment() -> Value {
    let spec = json!({"containers": [{"name": "main", "image": "nginx:1"}]});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": PODS, "selector": {"matchLabels": labels()},
            "template": {"metadata": {"labels": labels()}, "spec": spec}}})
}

fn serves(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    pod["metadata"]["deletionTimestamp"].is_null()
        && conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

fn is_injected(pod: &Value) -> bool {
    let containers = pod["spec"]["containers"].as_array().unwrap();
    containers
        .iter()
        .any(|one| text(one, "/name").ends_with("-agent"))
}

fn is_reported(scenario: &Scenario, set: &str) -> anyhow::Result<bool> {
    let events = scenario.kubectl.in_namespace("default").list("events", "")?;
    Ok(events.iter().any(|event| {
        event["reason"] == "UninjectedPods"
            && event["involvedObject"]["name"] == set
            && text(event, "/message").starts_with(&format!("{} pod(s)", PODS + 1))
    }))
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_created_while_no_webhook_answered_are_reported_and_recreated_one_at_a_time() {
    let scenario = scenario_alone("sidecar-repair");
    let kubectl = &scenario.kubectl;
    let name = "sidecar-repair";
    let set = Set::new(&scenario, name, &json!({}));
    let stopped = Stopped::shared(kubectl.kubeconfig());
    let lenient = Lenient::new(kubectl);
    let alone = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone", "labels": {"app": "web", "alone": "yes"}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}});
    // The API server ignores the webhook only a moment after that is written; a refused pod is not stored.
    wait::until("a pod is taken without its webhook", wait::QUIET, || {
        kubectl.create(&alone).map(Some)
    })
    .unwrap();
    kubectl.apply(&deployment()).unwrap();
    wait::until_true("pods serve without sidecars", wait::QUIET, || {
        let pods = kubectl.list("pods", "app=web")?;
        assert!(!pods.iter().any(is_injected), "a webhook answered");
        Ok(pods.iter().filter(|pod| serves(pod)).count() == PODS + 1)
    })
    .unwrap();
    drop(stopped);
    drop(lenient);

    wait::until_true("an event counts them", wait::QUIET, || {
        is_reported(&scenario, name)
    })
    .unwrap();
    let text_of_all = explained(&scenario, &[&format!("sidecarset/{name}")]);
    assert_eq!(
        text_of_all.matches("is without the sidecars").count(),
        PODS + 1,
        "{text_of_all}"
    );
    let of_alone = explained(&scenario, &[&format!("sidecarset/{name}"), "alone"]);
    assert!(of_alone.contains("nothing would make it again"), "{of_alone}");
    let before = scenario.uids();

    let watch = Watch::start(kubectl, "pods", "app=web,alone!=yes").unwrap();
    watch.until_shown(PODS, LIMIT).unwrap();
    kubectl
        .run(&["annotate", "sidecarset", name, &format!("{RECREATE}=true")])
        .unwrap();
    set.until_status(&json!({"matchedPods": PODS, "updatedReadyPods": PODS}));
    let mut pods: BTreeMap<String, Value> = BTreeMap::new();
    let (mut least, mut begun) = (PODS, false);
    for event in watch.stop().unwrap() {
        let pod = event["object"].clone();
        let name = text(&pod, "/metadata/name");
        if event["type"] == "DELETED" {
            pods.remove(&name);
        } else {
            pods.insert(name, pod);
        }
        // The first events are those of the pods that there are.
        begun |= pods.len() >= PODS;
        if begun {
            least = least.min(pods.values().filter(|pod| serves(pod)).count());
        }
    }
    assert!(least >= PODS - 1, "only {least} served at once");
    let after = scenario.pods();
    assert_eq!(after.len(), PODS + 1);
    let (with, without): (Vec<&Value>, Vec<&Value>) = after.iter().partition(|pod| is_injected(pod));
    assert!(
        with.iter()
            .all(|pod| !before.contains(&text(pod, "/metadata/uid"))),
        "made again"
    );
    let stayed: Vec<String> = without.iter().map(|pod| text(pod, "/metadata/name")).collect();
    assert_eq!(stayed, ["alone"]);
    assert!(before.contains(&text(without[0], "/metadata/uid")));
}
