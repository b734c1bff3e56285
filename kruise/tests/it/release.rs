//! Releases of Helm on a playground: one of OpenKruise's chart is upgraded with ours, and ours is uninstalled.
//!
//! The chart of OpenKruise is made of the objects that it renders, with definitions that have only `v1alpha1` of
//! CloneSets.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::chart::{IMAGE_VALUES, Rendering, published};
use crate::process::{Playground, Scratch};

const SYSTEM: &str = "/api/v1/namespaces/kruise-system";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const AGENTS: &str = "/api/v1/namespaces/kruise-daemon-config";
const DAEMON: &str = "/apis/apps/v1/namespaces/kruise-system/daemonsets/kruise-daemon";

/// A playground serves no ValidatingAdmissionPolicies, which the chart has for servers of its version.
const WITHOUT_POLICIES: &str = "--set=daemon.ownNodePolicy=false,manager.priorityClassPolicy=false";

/// A playground with a folder for charts.
struct Lab {
    playground: Playground,
    scratch: Scratch,
}

impl Lab {
    fn new(test: &str) -> Self {
        let scratch = Scratch::new(test);
        let kubeconfig = scratch.file("admin.kubeconfig");
        let playground = Playground::start_until_written(&scratch, kubeconfig, &["--bare", "--fast"]);
        Self { playground, scratch }
    }

    fn helm(&self, arguments: &[&str]) -> Output {
        let helm = std::env::var("HELM").unwrap_or_else(|_| "helm".into());
        let has_values = matches!(arguments.first(), Some(&("install" | "upgrade")));
        Command::new(helm)
            .args(arguments)
            .args(
                has_values
                    .then_some([IMAGE_VALUES, WITHOUT_POLICIES])
                    .into_iter()
                    .flatten(),
            )
            .env("KUBECONFIG", &self.playground.kubeconfig)
            .output()
            .expect("helm is installed, or HELM names it")
    }

    fn must(&self, arguments: &[&str]) {
        let output = self.helm(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
    }

    /// Writes our chart and returns its folder.
    fn ours(&self) -> String {
        let dir = self.scratch.file("ours").display().to_string();
        assert!(self.scratch.output(&["chart", "--dir", &dir]).status.success());
        dir
    }

    /// Writes a chart of these objects and returns its folder.
    fn theirs(&self, objects: &[Value]) -> String {
        let dir = self.scratch.file("theirs");
        std::fs::create_dir_all(dir.join("templates")).unwrap();
        std::fs::write(
            dir.join("Chart.yaml"),
            "apiVersion: v1\nname: kruise\nversion: 1.9.0\n",
        )
        .unwrap();
        let documents = objects.iter().map(|object| format!("---\n{object}\n"));
        std::fs::write(dir.join("templates/all.yaml"), documents.collect::<String>()).unwrap();
        dir.display().to_string()
    }

    fn patch(&self, path: &str, patch: &Value) {
        let merge = "application/merge-patch+json";
        let (code, answer) = self.playground.request("PATCH", path, merge, &patch.to_string());
        assert_eq!(code, 200, "{answer}");
    }

    /// Creates a secret in the namespace of node agents.
    fn add_secret_of_others(&self) {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "others"}});
        let path = format!("{AGENTS}/secrets");
        let (code, answer) = self
            .playground
            .request("POST", &path, "application/json", &secret.to_string());
        assert_eq!(code, 201, "{answer}");
    }

    /// The namespace of node agents, with the secret of others, which Helm does not delete.
    fn kept(&self) -> Value {
        let namespace = self.playground.get(AGENTS);
        assert_eq!(namespace["status"]["phase"], "Active");
        let policy = &namespace["metadata"]["annotations"]["helm.sh/resource-policy"];
        assert_eq!(*policy, "keep");
        let secret = self.playground.get(&format!("{AGENTS}/secrets/others"));
        assert_eq!(secret["metadata"]["name"], "others");
        namespace["metadata"]["uid"].clone()
    }

    fn definitions(&self) -> Vec<Value> {
        let list = self.playground.get(DEFINITIONS);
        list["items"].as_array().unwrap().clone()
    }
}

/// The objects of a release of OpenKruise, with its definitions; CloneSets have one version, and none is converted.
fn release(rendering: &Rendering) -> Vec<Value> {
    let hook = "/metadata/annotations/helm.sh~1hook";
    let mut objects: Vec<Value> = rendering
        .objects
        .iter()
        .filter(|object| object.pointer(hook).is_none())
        .cloned()
        .collect();
    for mut definition in kruise_kinds::definitions("kruise-system") {
        let name = definition["metadata"]["name"].as_str().unwrap();
        if !rendering.definitions.iter().any(|known| known == name) {
            continue;
        }
        if name.starts_with("clonesets.") {
            let versions = definition["spec"]["versions"].as_array_mut().unwrap();
            versions.retain(|version| version["name"] == "v1alpha1");
            versions[0]["storage"] = json!(true);
        }
        definition["spec"]["conversion"] = json!({"strategy": "None"});
        objects.push(definition);
    }
    objects
}

fn values() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/chart/upstream-values.yaml")
}

#[test]
#[ignore = "needs helm: HELM=/path/to/helm cargo test -p kruise --test it release -- --ignored"]
fn a_release_of_openkruise_is_upgraded_with_its_values_and_keeps_secret_and_definitions() {
    for version in ["1.8.3", "1.9.0-alpha.3"] {
        let lab = Lab::new(&format!("upgrade-{version}"));
        let mut objects = release(&published(version)["default"]);
        lab.must(&["install", "kruise", &lab.theirs(&objects)]);
        // The manager of OpenKruise fills the Secret, and the next upgrade of its chart has the data in the release.
        let data = json!({"data": {"ca-cert.pem": "Y2E="}});
        lab.patch(&format!("{SYSTEM}/secrets/kruise-webhook-certs"), &data);
        for object in &mut objects {
            if object["kind"] == "Secret" {
                object["data"] = data["data"].clone();
            }
        }
        lab.must(&["upgrade", "kruise", &lab.theirs(&objects)]);

        lab.add_secret_of_others();
        let agents = lab.playground.get(AGENTS)["metadata"]["uid"].clone();
        let daemon = lab.playground.get(DAEMON);
        let before = lab.definitions();
        let values = values().display().to_string();
        for _ in 0..2 {
            lab.must(&["upgrade", "kruise", &lab.ours(), "--values", &values]);
            let secret = lab
                .playground
                .get(&format!("{SYSTEM}/secrets/kruise-webhook-certs"));
            assert_eq!(secret["data"], data["data"]);
            assert_eq!(lab.kept(), agents);
        }
        let after = lab.playground.get(DAEMON);
        for part in ["/metadata/uid", "/spec/selector", "/spec/updateStrategy"] {
            assert_eq!(after.pointer(part), daemon.pointer(part), "{part}");
        }
        let agent = &after["spec"]["template"]["spec"]["containers"];
        assert_eq!(agent.as_array().unwrap().len(), 1, "{agent}");
        assert_eq!(agent[0]["image"], "registry.example.com/kruise:dev");
        assert_eq!(agent[0]["command"], json!(["/kruise-daemon"]));
        let uid = |definition: &Value| definition["metadata"]["uid"].clone();
        let now = lab.definitions();
        for definition in &before {
            let same = now.iter().find(|other| uid(other) == uid(definition)).unwrap();
            assert_eq!(same["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
        }
        assert_eq!(now.len(), kruise_kinds::kinds().len());
        let deployment = "/apis/apps/v1/namespaces/kruise-system/deployments/kruise-controller-manager";
        let pod = lab.playground.get(deployment)["spec"]["template"]["spec"].clone();
        assert_eq!(pod["containers"][0]["image"], "registry.example.com/kruise:dev");
        assert_eq!(
            pod["affinity"],
            Value::Null,
            "what the old chart had and ours has not is gone"
        );
    }
}

#[test]
#[ignore = "needs helm: HELM=/path/to/helm cargo test -p kruise --test it release -- --ignored"]
fn definitions_of_a_release_are_not_deleted_by_the_value_that_leaves_them_out() {
    let lab = Lab::new("unmanaged");
    let objects = release(&published("1.9.0-alpha.3")["default"]);
    lab.must(&["install", "kruise", &lab.theirs(&objects)]);
    let ours = lab.ours();
    let without = ["upgrade", "kruise", &ours, "--set=crds.managed=false"];
    let output = lab.helm(&without);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        error.contains("kubectl annotate crd") && error.contains("helm.sh/resource-policy=keep"),
        "{error}"
    );
    lab.must(&["upgrade", "kruise", &ours]);
    lab.must(&without);
    assert_eq!(lab.definitions().len(), kruise_kinds::kinds().len());
}

#[test]
#[ignore = "needs helm: HELM=/path/to/helm cargo test -p kruise --test it release -- --ignored"]
fn the_namespace_of_copied_secrets_outlives_its_gate_and_its_release() {
    let lab = Lab::new("copies");
    let ours = lab.ours();
    lab.must(&["install", "kruise", &ours]);
    lab.add_secret_of_others();
    let namespace = lab.kept();
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/kruise-daemon-config/roles";
    let granted = || lab.playground.get(roles)["items"].as_array().unwrap().len();
    // Managers write the copies, and agents read them, both with the gate `ImagePullJobGate` only.
    assert_eq!(granted(), 2);
    lab.must(&["upgrade", "kruise", &ours, "--set=featureGates="]);
    assert_eq!((lab.kept(), granted()), (namespace.clone(), 0));
    lab.must(&[
        "upgrade",
        "kruise",
        &ours,
        "--set=featureGates=KruiseDaemon=false",
    ]);
    assert_eq!((lab.kept(), granted()), (namespace.clone(), 0));
    lab.must(&["upgrade", "kruise", &ours, "--reset-values"]);
    assert_eq!((lab.kept(), granted()), (namespace.clone(), 2));
    lab.must(&["uninstall", "kruise", "--no-hooks"]);
    assert_eq!(lab.kept(), namespace);
}

#[test]
#[ignore = "needs helm: HELM=/path/to/helm cargo test -p kruise --test it release -- --ignored"]
fn a_namespace_of_copied_secrets_that_others_created_stays_as_it_is() {
    let lab = Lab::new("copies-of-others");
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kruise-daemon-config"}});
    let (code, answer) = lab.playground.request(
        "POST",
        "/api/v1/namespaces",
        "application/json",
        &namespace.to_string(),
    );
    assert_eq!(code, 201, "{answer}");
    let before = lab.playground.get(AGENTS);
    let ours = lab.ours();
    lab.must(&["install", "kruise", &ours]);
    lab.must(&["upgrade", "kruise", &ours]);
    lab.must(&["uninstall", "kruise", "--no-hooks"]);
    assert_eq!(lab.playground.get(AGENTS), before);
}

#[test]
#[ignore = "needs helm: HELM=/path/to/helm cargo test -p kruise --test it release -- --ignored"]
fn a_new_release_has_no_keys_in_its_record_and_leaves_definitions_that_can_be_deleted() {
    let lab = Lab::new("fresh");
    let ours = lab.ours();
    lab.must(&["install", "kruise", &ours]);
    let secret = format!("{SYSTEM}/secrets/kruise-webhook-certs");
    lab.patch(&secret, &json!({"data": {"key.pem": "a2V5"}}));
    lab.must(&["upgrade", "kruise", &ours]);
    assert_eq!(lab.playground.get(&secret)["data"]["key.pem"], "a2V5");
    let manifest = lab.helm(&["get", "manifest", "kruise"]);
    let manifest = String::from_utf8(manifest.stdout).unwrap();
    assert!(manifest.contains("kruise-webhook-certs") && !manifest.contains("a2V5"));

    let kubeconfig = format!("--kubeconfig={}", lab.playground.kubeconfig.display());
    let checked = lab.scratch.output(&["uninstall", &kubeconfig]);
    assert!(checked.status.success(), "{checked:?}");
    lab.must(&["uninstall", "kruise", "--no-hooks"]);
    let left = lab.definitions();
    assert_eq!(left.len(), kruise_kinds::kinds().len());
    for definition in left {
        assert_eq!(definition["spec"]["conversion"]["strategy"], "None");
    }
}
