//! SidecarSets are injected into new pods, into those they are for, and no other pod depends on us.
//!
//! SidecarSets have no namespace: each here selects by a label and by the name of the scenario's namespace, and
//! goes when its scenario ends.

use std::process::Command;

use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, Stopped, scenario, scenario_alone, text, until_narrow, variable, web};

/// A SidecarSet, deleted however the scenario ends.
struct Injected<'a> {
    scenario: &'a Scenario,
    name: String,
}

impl<'a> Injected<'a> {
    /// Injects into pods `sidecars: NAME` of the scenario's namespace, once it is seen to.
    fn new(scenario: &'a Scenario, name: &str, spec: Value) -> Self {
        let set = Self::unseen(scenario, name, spec);
        set.until_probe_has(Some(&format!("{name}-agent")));
        set
    }

    /// As [`Injected::new`], not waited for. The spec is completed by selectors and a container `NAME-agent`.
    fn unseen(scenario: &'a Scenario, name: &str, spec: Value) -> Self {
        let namespace = scenario.kubectl.namespace().unwrap();
        let mut full = json!({
            "selector": {"matchLabels": {"sidecars": name}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "updateStrategy": {"type": "NotUpdate"},
            "containers": [{"name": format!("{name}-agent"), "image": "agent:1"}],
        });
        full.as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let injected = Self {
            scenario,
            name: name.to_owned(),
        };
        let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
            "metadata": {"name": name}, "spec": full});
        scenario.kubectl.apply(&set).unwrap();
        injected
    }

    /// A pod that the set selects.
    fn pod(&self, name: &str) -> Value {
        pod(name, &self.name)
    }

    /// Waits until a pod that the set selects would get this container, or none.
    fn until_probe_has(&self, container: Option<&str>) {
        until_probe_has(&self.scenario.kubectl, &self.pod("probe"), container);
    }

    fn patch(&self, spec: &Value) {
        let patch = json!({"spec": spec});
        self.scenario
            .kubectl
            .patch("sidecarsets", &self.name, &patch)
            .unwrap();
    }
}

impl Drop for Injected<'_> {
    fn drop(&mut self) {
        // It may be gone, and the scenario may have failed already.
        let _ = self.scenario.kubectl.run(&[
            "delete",
            "sidecarset",
            &self.name,
            "--ignore-not-found",
            "--wait=false",
        ]);
    }
}

fn until_probe_has(kubectl: &Kubectl, pod: &Value, container: Option<&str>) {
    wait::until_true(&format!("a pod would get {container:?}"), LIMIT, || {
        let made = probed(kubectl, pod)?;
        let names = names(&made, "containers");
        Ok(match container {
            Some(container) => names.iter().any(|name| name == container),
            None => names == ["main"],
        })
    })
    .unwrap();
}

/// The pod as the server would store it.
fn probed(kubectl: &Kubectl, pod: &Value) -> anyhow::Result<Value> {
    let dry_run = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    Ok(serde_json::from_str(
        &kubectl.run_with_input(&dry_run, &pod.to_string())?,
    )?)
}

fn pod(name: &str, sidecars: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name, "sidecars": sidecars}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
    })
}

fn deployment(name: &str, sidecars: &str, replicas: u32) -> Value {
    let template = pod(name, sidecars);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": template["metadata"]["labels"]}, "spec": template["spec"]}},
    })
}

fn names(pod: &Value, list: &str) -> Vec<String> {
    let items = pod["spec"][list].as_array();
    let items = items.map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|one| text(one, "/name")).collect()
}

fn container<'a>(pod: &'a Value, name: &str) -> &'a Value {
    let lists = ["containers", "initContainers"].map(|list| pod["spec"][list].as_array());
    let mut all = lists.into_iter().flatten().flatten();
    all.find(|one| one["name"] == name).unwrap()
}

fn until_deployed(scenario: &Scenario, name: &str, replicas: u32) {
    wait::until_true(&format!("{name} has {replicas} updated pods"), LIMIT, || {
        let found = scenario.kubectl.get("deployments", name)?;
        let status = &found["status"];
        let count = |field: &str| status[field].as_u64().unwrap_or(0);
        let all = ["replicas", "updatedReplicas", "availableReplicas"];
        Ok(status["observedGeneration"] == found["metadata"]["generation"]
            && all.iter().all(|field| count(field) == u64::from(replicas)))
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_of_deployments_and_clonesets_get_the_sidecars_of_their_sidecarset() {
    let scenario = scenario("injection-full");
    let _set = Injected::new(
        &scenario,
        "injection-full",
        json!({
            "containers": [
                {"name": "injection-full-agent", "image": "agent:1", "podInjectPolicy": "AfterAppContainer",
                 "shareVolumePolicy": {"type": "enabled"}, "volumeMounts": [{"name": "spool", "mountPath": "/spool"}],
                 "transferEnv": [{"sourceContainerName": "main", "envNames": ["REGION", "NONE"]}]},
                {"name": "first", "image": "first:1"},
            ],
            "initContainers": [
                {"name": "warm", "image": "warm:1"},
                {"name": "mesh", "image": "mesh:1", "restartPolicy": "Always"},
            ],
            "volumes": [{"name": "spool", "emptyDir": {}}, {"name": "unused", "emptyDir": {}}],
            "imagePullSecrets": [{"name": "pull"}],
        }),
    );
    let dress = |object: &mut Value| {
        let template = object.pointer_mut("/spec/template").unwrap();
        template["metadata"]["labels"]["sidecars"] = json!("injection-full");
        let main = &mut template["spec"]["containers"][0];
        main["env"] = json!([{"name": "REGION", "value": "north"}]);
        main["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
        template["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    };
    let mut plain = deployment("plain", "injection-full", 1);
    dress(&mut plain);
    scenario.kubectl.apply(&plain).unwrap();
    let mut set = web(1);
    dress(&mut set);
    scenario.kubectl.apply(&set).unwrap();
    until_deployed(&scenario, "plain", 1);
    scenario.until_status(&json!({"readyReplicas": 1}));
    for app in ["plain", "web"] {
        let pod = scenario.pods_of(app).remove(0);
        assert_eq!(
            names(&pod, "containers"),
            ["first", "main", "injection-full-agent"]
        );
        assert_eq!(names(&pod, "initContainers"), ["mesh", "warm"]);
        assert_eq!(container(&pod, "mesh")["restartPolicy"], "Always");
        let agent = container(&pod, "injection-full-agent");
        let variables: Vec<String> = agent["env"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| text(one, "/name"))
            .collect();
        assert_eq!(variables, ["IS_INJECTED", "REGION"]);
        let mounted: Vec<String> = agent["volumeMounts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| text(one, "/name"))
            .collect();
        assert!(
            mounted.starts_with(&["spool".to_owned(), "data".to_owned()]),
            "{mounted:?}"
        );
        let volumes = names(&pod, "volumes");
        assert!(volumes.contains(&"spool".to_owned()) && !volumes.contains(&"unused".to_owned()));
        assert_eq!(pod["spec"]["imagePullSecrets"], json!([{"name": "pull"}]));
        let annotations = &pod["metadata"]["annotations"];
        assert_eq!(
            annotations["kruise.io/sidecarset-injected-list"],
            "injection-full"
        );
        let record = annotations["kruise.io/sidecarset-hash"].as_str().unwrap();
        let record: Value = serde_json::from_str(record).unwrap();
        assert_eq!(
            record["injection-full"]["sidecarList"],
            json!(["first", "injection-full-agent", "mesh"])
        );
    }

    // A CloneSet still updates its own container in place beside the sidecars.
    let uids = scenario.uids();
    let image =
        json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:2"}]);
    scenario
        .kubectl
        .run(&[
            "patch",
            "clonesets",
            "web",
            "--type=json",
            "-p",
            &image.to_string(),
        ])
        .unwrap();
    scenario.until_status(&json!({"readyReplicas": 1, "updatedReadyReplicas": 1}));
    assert_eq!(scenario.uids(), uids);
    let pod = scenario.pods().remove(0);
    assert_eq!(container(&pod, "main")["image"], "nginx:2");
    assert_eq!(container(&pod, "first")["image"], "first:1");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_set_is_injected_where_its_selectors_say_and_while_it_is_not_paused() {
    let scenario = scenario("injection-where");
    let kubectl = &scenario.kubectl;
    kubectl
        .run(&["label", "namespace", "injection-where", "injection-of-e2e=where"])
        .unwrap();
    let set = Injected::new(
        &scenario,
        "injection-where",
        json!({"namespaceSelector": {"matchLabels": {"injection-of-e2e": "where"}}}),
    );
    let other = kubectl.in_namespace("injection-where-not");
    other
        .run(&["create", "namespace", "injection-where-not"])
        .unwrap();
    // The namespace is new: a manager that has not seen it yet has to read it.
    let made = other.create(&set.pod("elsewhere")).unwrap();
    assert_eq!(names(&made, "containers"), ["main"]);
    assert_eq!(
        names(&kubectl.create(&set.pod("here")).unwrap(), "containers").len(),
        2
    );
    let unlabelled = kubectl.create(&pod("unlabelled", "other")).unwrap();
    assert_eq!(names(&unlabelled, "containers"), ["main"]);

    set.patch(&json!({"injectionStrategy": {"paused": true}}));
    set.until_probe_has(None);
    set.patch(&json!({"injectionStrategy": {"paused": false}}));
    set.until_probe_has(Some("injection-where-agent"));
    kubectl
        .run(&["label", "namespace", "injection-where", "injection-of-e2e-"])
        .unwrap();
    set.until_probe_has(None);
    other
        .run(&["delete", "namespace", "injection-where-not", "--wait=false"])
        .unwrap();
}

/// A revision of a SidecarSet, deleted however the scenario ends.
struct Stored(Kubectl, &'static str);

impl Drop for Stored {
    fn drop(&mut self) {
        let _ = self
            .0
            .run(&["delete", "controllerrevision", self.1, "--ignore-not-found"]);
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_revision_that_a_set_names_is_injected() {
    let scenario = scenario("injection-revision");
    let name = "injection-revision";
    let system = scenario.kubectl.in_namespace("kruise-system");
    let data = json!({"spec": {"$patch": "replace", "imagePullSecrets": null, "initContainers": null,
        "patchPodMetadata": null, "volumes": null,
        "containers": [{"name": "injection-revision-agent", "image": "agent:0"}]}});
    let revision = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": data,
        "metadata": {"name": "injection-revision-old",
            "labels": {"kruise.io/sidecarset-name": name, "apps.kruise.io/sidecarset-custom-version": "v0"}}});
    let _revision = Stored(system.clone(), "injection-revision-old");
    system.create(&revision).unwrap();
    let set = Injected::new(&scenario, name, json!({}));
    let image = |pod: &str| {
        let made = scenario.kubectl.create(&set.pod(pod)).unwrap();
        text(container(&made, "injection-revision-agent"), "/image")
    };
    assert_eq!(image("today"), "agent:1");
    let until = |wanted: &str| {
        wait::until_true("the change is seen", LIMIT, || {
            let made = probed(&scenario.kubectl, &set.pod("probe"))?;
            Ok(container(&made, "injection-revision-agent")["image"] == wanted)
        })
        .unwrap();
    };
    set.patch(&json!({"injectionStrategy": {"revision": {"revisionName": "injection-revision-old"}}}));
    until("agent:0");
    assert_eq!(image("by-name"), "agent:0");
    set.patch(&json!({"injectionStrategy": {"revision": null}}));
    until("agent:1");
    set.patch(&json!({"injectionStrategy": {"revision": {"customVersion": "v0"}}}));
    until("agent:0");
    assert_eq!(image("by-version"), "agent:0");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn kruise_inject_prints_what_the_webhook_does() {
    let scenario = scenario("injection-printed");
    let set = Injected::new(&scenario, "injection-printed", json!({}));
    let mut pod = set.pod("printed");
    pod["metadata"]["namespace"] = json!("injection-printed");
    let file = std::path::Path::new(&variable("KRUISE_E2E_DIR")).join("injection-printed.json");
    std::fs::write(&file, pod.to_string()).unwrap();
    let printed = Command::new(variable("KRUISE_E2E_BIN"))
        .args(["inject", "--filename"])
        .arg(&file)
        .arg("--kubeconfig")
        .arg(scenario.kubectl.kubeconfig())
        .output()
        .unwrap();
    let _ = std::fs::remove_file(&file);
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(
        printed.contains("# sidecarsets/injection-printed: injected\n"),
        "{printed}"
    );
    let made = scenario.kubectl.create(&pod).unwrap();
    let record = |key: &str| format!("\"{key}\":\"{}\"", recorded(&made, key));
    for key in ["hash", "sidecarSetName"] {
        assert!(
            printed.replace('\\', "").contains(&record(key)),
            "{key}: {printed}"
        );
    }
}

/// A member of what is recorded of the only set.
fn recorded(pod: &Value, key: &str) -> String {
    let record = text(pod, "/metadata/annotations/kruise.io~1sidecarset-hash");
    let record: Value = serde_json::from_str(&record).unwrap();
    text(
        record.as_object().unwrap().values().next().unwrap(),
        &format!("/{key}"),
    )
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn while_no_manager_answers_only_pods_that_need_sidecars_wait() {
    let scenario = scenario_alone("injection-outage");
    let kubectl = &scenario.kubectl;
    let set = Injected::new(&scenario, "injection-outage", json!({}));
    let configuration = kubectl
        .get(
            "mutatingwebhookconfigurations",
            "kruise-mutating-webhook-configuration",
        )
        .unwrap();
    let entries = configuration["webhooks"].as_array().unwrap();
    let entry = entries
        .iter()
        .find(|entry| entry["name"] == "mpod-sidecars.kb.io")
        .unwrap();
    assert_eq!(entry["failurePolicy"], "Fail");
    kubectl.apply(&deployment("plain", "none", 2)).unwrap();
    until_deployed(&scenario, "plain", 2);

    until_narrow(kubectl);
    let stopped = Stopped::shared(kubectl.kubeconfig());
    kubectl
        .run(&["set", "image", "deployment/plain", "main=nginx:2"])
        .unwrap();
    until_deployed(&scenario, "plain", 2);
    kubectl
        .run(&["scale", "deployment/plain", "--replicas=3"])
        .unwrap();
    until_deployed(&scenario, "plain", 3);
    kubectl.run(&["delete", "deployment", "plain"]).unwrap();
    wait::until_true("its pods are gone", wait::QUIET, || {
        Ok(kubectl.list("pods", "app=plain")?.is_empty())
    })
    .unwrap();
    let refusal = kubectl
        .refused(&["create", "-f", "-"], &set.pod("needs").to_string())
        .unwrap();
    assert!(refusal.contains("mpod-sidecars.kb.io"), "{refusal}");
    kubectl
        .apply(&deployment("waiting", "injection-outage", 1))
        .unwrap();
    drop(stopped);

    until_deployed(&scenario, "waiting", 1);
    let made = scenario.pods_of("waiting").remove(0);
    assert_eq!(names(&made, "containers"), ["injection-outage-agent", "main"]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn sets_that_are_in_each_others_way_or_refer_to_nothing_are_refused() {
    let scenario = scenario("injection-rules");
    // Its pods come to us, so the manager knows it.
    let _stored = Injected::new(&scenario, "injection-rules", json!({}));
    let set = |spec: Value, annotations: Value| {
        let mut full = json!({"selector": {"matchLabels": {"sidecars": "injection-rules"}},
            "updateStrategy": {"type": "NotUpdate"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "injection-rules"}},
            "containers": [{"name": "own", "image": "own:1"}]});
        full.as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "spec": full,
            "metadata": {"name": "injection-rules-second", "annotations": annotations}})
    };
    let canary = |base: &str| json!({"apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": base});
    let patched = json!({"patchPodMetadata": [{"annotations": {"injection-rules": "1"}}]});
    let revision = json!({"injectionStrategy": {"revision": {"revisionName": "injection-rules-none"}}});
    let same_name = json!({"containers": [{"name": "injection-rules-agent", "image": "own:1"}]});
    for (set, field) in [
        (set(same_name, json!({})), "spec.containers[0].name"),
        (set(patched, json!({})), "spec.patchPodMetadata[0]"),
        (set(revision, json!({})), "spec.injectionStrategy.revision"),
        (set(json!({}), canary("injection-rules-none")), "sidecarset-base"),
    ] {
        let refusal = scenario
            .kubectl
            .refused(&["create", "-f", "-"], &set.to_string())
            .unwrap();
        assert!(refusal.contains(field), "{field}: {refusal}");
    }
    let dry_run = ["create", "--dry-run=server", "-f", "-"];
    for set in [
        set(json!({}), json!({})),
        set(json!({}), canary("injection-rules")),
    ] {
        scenario
            .kubectl
            .run_with_input(&dry_run, &set.to_string())
            .unwrap();
    }
}
