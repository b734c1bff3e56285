//! The definitions of our kinds on a cluster.

use std::process::Command;

use kruise_e2e::kubectl::Kubectl;
use serde_json::json;

use crate::cluster::{Scenario, bring_back_manager, scenario_alone, variable};

const DEFINITION: &str = "clonesets.apps.kruise.io";

/// `kruise crds` with these arguments: its exit status and its output.
fn crds(more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(variable("KRUISE_E2E_BIN"));
    let output = command.arg("crds").args(more).output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.code(), said.concat())
}

fn check(scenario: &Scenario) -> (Option<i32>, String) {
    let kubeconfig = scenario.kubectl.kubeconfig().display().to_string();
    crds(&["--check", "--kubeconfig", &kubeconfig])
}

/// Takes our definitions when it is dropped, however the scenario ends.
struct Ours<'a>(&'a Kubectl);

impl Drop for Ours<'_> {
    fn drop(&mut self) {
        let (_, ours) = crds(&[]);
        if let Err(error) = self.0.run_with_input(&["apply", "-f", "-"], &ours) {
            eprintln!("our definitions do not come back: {error:#}");
        }
        // Outside of a cluster the manager puts its URL where the Service is now.
        bring_back_manager(self.0.kubeconfig());
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_check_of_definitions_reports_differences_and_what_to_do() {
    let scenario = scenario_alone("check");
    let (code, said) = check(&scenario);
    assert_eq!(code, Some(0), "what is installed is alike: {said}");

    let properties = "/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties";
    let edit = json!([
        {"op": "replace", "path": "/spec/names/shortNames", "value": ["cs"]},
        {"op": "remove", "path": format!("{properties}/minReadySeconds")},
    ]);
    let ours = Ours(&scenario.kubectl);
    let patch = ["patch", "crd", DEFINITION, "--type=json", "--patch"];
    scenario
        .kubectl
        .run(&[&patch[..], &[&edit.to_string()]].concat())
        .unwrap();
    let (code, said) = check(&scenario);
    assert_eq!(code, Some(1), "{said}");
    for text in [
        "clonesets.apps.kruise.io: 2 differences",
        "spec.names.shortNames: the cluster has [\"cs\"], ours has [\"clone\"]",
        "v1beta1 spec.minReadySeconds: the cluster does not know this field and drops it",
        "take ours: kruise crds | kubectl apply -f -",
    ] {
        assert!(said.contains(text), "{text:?} is not in {said}");
    }

    drop(ours);
    let (code, said) = check(&scenario);
    assert_eq!(code, Some(0), "what it says to do helps: {said}");
}
