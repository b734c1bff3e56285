//! The definition of every published chart: `v1alpha1` alone. A manager started there works in that version.

use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, container, crash_manager, scenario_alone, text, web};

const DEFINITION: &str = "clonesets.apps.kruise.io";

/// The definition before, which comes back however the scenario ends.
struct Replaced {
    kubectl: Kubectl,
    before: Value,
}

impl Replaced {
    /// A definition cannot drop the version that is stored, so the old one takes the place of the new.
    fn with_v1alpha1(kubectl: &Kubectl) -> Self {
        let found = kubectl.get("crd", DEFINITION).unwrap();
        let mut before = found.clone();
        before.as_object_mut().unwrap().remove("status");
        before["metadata"] = json!({"name": DEFINITION});
        let mut old = before.clone();
        let versions = old["spec"]["versions"].as_array_mut().unwrap();
        versions.retain(|version| version["name"] == "v1alpha1");
        versions[0]["storage"] = json!(true);
        old["spec"]["conversion"] = json!({"strategy": "None"});
        let replaced = Self {
            kubectl: kubectl.clone(),
            before,
        };
        replaced.put(&old);
        replaced
    }

    fn put(&self, definition: &Value) {
        self.kubectl.run(&["delete", "crd", DEFINITION]).unwrap();
        self.kubectl.create(definition).unwrap();
        let served = definition["spec"]["versions"].as_array().unwrap();
        wait::until_true("discovery shows this definition", LIMIT, || {
            Ok(["v1alpha1", "v1beta1"].iter().all(|version| {
                let path = format!("/apis/apps.kruise.io/{version}");
                let list = self.kubectl.run(&["get", "--raw", &path]);
                let shown = list.is_ok_and(|list| list.contains("\"clonesets\""));
                shown == served.iter().any(|served| served["name"] == *version)
            }))
        })
        .unwrap();
        // Makes kubectl forget which versions it saw before.
        self.kubectl.run(&["api-resources"]).unwrap();
        crash_manager(self.kubectl.kubeconfig());
    }
}

impl Drop for Replaced {
    fn drop(&mut self) {
        self.put(&self.before);
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn where_only_v1alpha1_is_served_sets_roll_out_and_owner_references_name_it() {
    let scenario = scenario_alone("old-crd");
    let _replaced = Replaced::with_v1alpha1(&scenario.kubectl);

    scenario.kubectl.apply(&web(4)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 4, "updatedReadyReplicas": 4}));
    let set = scenario.kubectl.get("clonesets", "web").unwrap();
    assert_eq!(text(&set, "/apiVersion"), "apps.kruise.io/v1alpha1");
    let before = scenario.uids();
    scenario.patch(&container("nginx:2", "b"));
    scenario.until_status(&json!({"updatedReadyReplicas": 4}));
    assert_eq!(scenario.uids(), before, "updated in place");
    scenario.patch(&container("nginx:2", "c"));
    scenario.until_status(&json!({"updatedReadyReplicas": 4, "replicas": 4}));
    assert!(
        scenario.uids().iter().all(|uid| !before.contains(uid)),
        "recreated"
    );

    let revisions = scenario.kubectl.list("controllerrevisions", "").unwrap();
    assert!(revisions.len() >= 3, "{revisions:?}");
    for owned in scenario.pods().iter().chain(&revisions) {
        let owner = &owned["metadata"]["ownerReferences"][0];
        assert_eq!(owner["apiVersion"], "apps.kruise.io/v1alpha1");
        assert_eq!(owner["uid"], set["metadata"]["uid"]);
    }
    scenario.kubectl.run(&["delete", "clonesets", "web"]).unwrap();
    wait::until_true("the pods are collected", wait::QUIET, || {
        Ok(scenario.pods().is_empty())
    })
    .unwrap();
}
