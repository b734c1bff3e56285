//! The way in and the way back: stored objects are rewritten, until a version can be taken out of the definition.

use std::process::Command;

use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{
    LIMIT, Scenario, bring_back_manager, crash_manager, scenario_alone, text, variable, web,
};

const DEFINITION: &str = "clonesets.apps.kruise.io";

/// `kruise migrate` with CloneSets: its output.
fn migrate(scenario: &Scenario, what: &str, more: &[&str]) -> String {
    let output = Command::new(variable("KRUISE_E2E_BIN"))
        .args(["migrate", what, DEFINITION, "--rate=500", "--kubeconfig"])
        .arg(scenario.kubectl.kubeconfig())
        .args(more)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said + &String::from_utf8_lossy(&output.stdout)
}

/// The definition before, which comes back however the scenario ends.
struct Restored<'a>(&'a Kubectl, Value);

impl<'a> Restored<'a> {
    fn of(kubectl: &'a Kubectl) -> Self {
        let mut before = kubectl.get("crd", DEFINITION).unwrap();
        before.as_object_mut().unwrap().remove("status");
        before["metadata"] = json!({"name": DEFINITION});
        Self(kubectl, before)
    }

    /// Puts a definition in place, and waits until the server serves its versions.
    fn put(&self, definition: &Value) -> anyhow::Result<()> {
        let mut definition = definition.clone();
        let now = self.0.get("crd", DEFINITION)?;
        definition["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
        self.0
            .run_with_input(&["replace", "-f", "-"], &definition.to_string())?;
        let versions = definition["spec"]["versions"].as_array().unwrap();
        wait::until_true("discovery shows this definition", LIMIT, || {
            let list = self.0.run(&["get", "--raw", "/apis/apps.kruise.io/v1beta1"]);
            Ok(list.is_ok_and(|list| list.contains("\"clonesets\"")) == (versions.len() > 1))
        })?;
        wait::until_true("its objects are served", LIMIT, || {
            let names = versions.iter().filter_map(|version| version["name"].as_str());
            let resources = names.map(|version| format!("clonesets.{version}.apps.kruise.io"));
            for resource in resources {
                self.0.list(&resource, "")?;
            }
            Ok(true)
        })?;
        // Makes kubectl forget which versions it saw before.
        self.0.run(&["api-resources"]).map(drop)
    }

    /// The definition with its older version alone, which no other is converted to.
    fn with_v1alpha1_alone(&self) -> Value {
        let mut old = self.1.clone();
        let versions = old["spec"]["versions"].as_array_mut().unwrap();
        versions.retain(|version| version["name"] == "v1alpha1");
        versions[0]["storage"] = json!(true);
        old["spec"]["conversion"] = json!({"strategy": "None"});
        old
    }
}

impl Drop for Restored<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.put(&self.1) {
            eprintln!("the definition does not come back: {error:#}");
        }
        bring_back_manager(self.0.kubeconfig());
    }
}

fn stored_versions(scenario: &Scenario) -> Value {
    let definition = scenario.kubectl.get("crd", DEFINITION).unwrap();
    definition["status"]["storedVersions"].clone()
}

/// What users wrote, and how often the specification changed, by name.
fn sets(scenario: &Scenario) -> Vec<(String, Value, Value)> {
    let sets = scenario
        .kubectl
        .list("clonesets.v1alpha1.apps.kruise.io", "")
        .unwrap();
    let facts = |set: &Value| {
        (
            text(set, "/metadata/name"),
            set["spec"].clone(),
            set["metadata"]["generation"].clone(),
        )
    };
    sets.iter().map(facts).collect()
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn stored_objects_are_rewritten_until_a_version_can_be_taken_away_and_back_again() {
    let scenario = scenario_alone("storage");
    let restored = Restored::of(&scenario.kubectl);
    scenario.kubectl.apply(&web(2)).unwrap();
    for name in ["one", "two", "three"] {
        let mut set = web(0);
        set["metadata"]["name"] = json!(name);
        scenario.kubectl.apply(&set).unwrap();
    }
    scenario.until_status(&json!({"readyReplicas": 2, "updatedReadyReplicas": 2}));
    let (before, pods) = (sets(&scenario), scenario.uids());

    let said = migrate(&scenario, "storage", &["--to=v1alpha1"]);
    assert!(said.contains("all are stored as v1alpha1"), "{said}");
    assert_eq!(stored_versions(&scenario), json!(["v1alpha1"]));
    // A server that has only this version can read every object: none is stored in another.
    let said = migrate(&scenario, "owners", &["--to=v1alpha1"]);
    for resource in ["pods", "controllerrevisions"] {
        assert!(
            said.contains(&format!("\n{resource}: ")) || said.starts_with(resource),
            "{said}"
        );
    }
    restored.put(&restored.with_v1alpha1_alone()).unwrap();
    assert_eq!(sets(&scenario), before);
    restored.put(&restored.1).unwrap();

    let said = migrate(&scenario, "storage", &[]);
    assert!(said.contains("all are stored as v1beta1"), "{said}");
    assert_eq!(stored_versions(&scenario), json!(["v1beta1"]));
    let said = migrate(&scenario, "storage", &[]);
    assert!(said.contains("all objects are stored as v1beta1"), "{said}");
    assert_eq!(sets(&scenario), before);
    crash_manager(scenario.kubectl.kubeconfig());
    scenario.patch(&json!({"spec": {"replicas": 3}}));
    scenario.until_status(&json!({"readyReplicas": 3}));
    assert!(
        pods.iter().all(|uid| scenario.uids().contains(uid)),
        "a pod was replaced"
    );
}
