//! A ResourceDistribution: its copies in namespaces, and what they cost.

use std::path::Path;
use std::time::Duration;

use kruise_e2e::audit::{Entry, MANAGER};
use kruise_e2e::kubectl::{Kubectl, documents};
use kruise_e2e::manager::pid_file;
use kruise_e2e::process;
use kruise_e2e::wait::{self, Patience};
use serde_json::{Value, json};

use crate::cluster::{
    Flagged, LIMIT, Scenario, audit_log, explained, scenario_alone, scenario_gated, variable,
};

const FLAGS: [&str; 1] = ["--feature-gates=ResourceDistributionGate=true"];
/// Label of the namespaces of a test.
const GROUP: &str = "distribution-e2e";
/// Writes of a hundred copies.
const WRITES: usize = 105;
/// Size of what is copied.
const SIZE_KIB: usize = 64;
/// So many copies and more must not be kept in memory: their metadata takes less than a quarter of what they take.
const MEASURED: usize = 1000;

/// Namespaces that the tests create, and delete at their end.
struct Namespaces<'s> {
    kubectl: &'s Kubectl,
    group: &'s str,
    names: Vec<String>,
}

impl<'s> Namespaces<'s> {
    fn new(scenario: &'s Scenario, group: &'s str, count: usize) -> Self {
        let kubectl = &scenario.kubectl;
        let names: Vec<String> = (0..count).map(|number| format!("{group}-{number:03}")).collect();
        let mut items = Vec::new();
        for name in &names {
            let labels = json!({(GROUP): group});
            items.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}));
        }
        kubectl
            .run_with_input(&["create", "-f", "-"], &documents(&items))
            .unwrap();
        Self {
            kubectl,
            group,
            names,
        }
    }

    fn within(&self, index: usize) -> Kubectl {
        self.kubectl.in_namespace(&self.names[index])
    }

    fn selector(&self) -> Value {
        json!({"namespaceSelector": {"matchLabels": {(GROUP): self.group}}})
    }
}

impl Drop for Namespaces<'_> {
    fn drop(&mut self) {
        let selector = format!("{GROUP}={}", self.group);
        let _left = self
            .kubectl
            .run(&["delete", "namespaces", "--wait=false", "-l", &selector]);
    }
}

fn distribution(name: &str, data: &Value, targets: &Value) -> Value {
    let resource =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution", "metadata": {"name": name},
        "spec": {"resource": resource, "targets": targets}})
}

fn until_counts(kubectl: &Kubectl, name: &str, limit: Patience, desired: usize, succeeded: usize) {
    wait::until_true("the counts are reported", limit, || {
        let status = kubectl.get("resourcedistributions", name)?["status"].clone();
        let count = |member: &str| status[member].as_u64().unwrap_or(0) as usize;
        Ok((count("desired"), count("succeeded")) == (desired, succeeded)
            && status["conditions"].as_array().map_or(0, Vec::len) == 6)
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn copies_follow_namespaces_and_edits_and_foreign_objects_stay() {
    let scenario = scenario_gated("distribution");
    let kubectl = &scenario.kubectl;
    let namespaces = Namespaces::new(&scenario, "distribution", 4);
    let foreign = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull-e2e"}, "stringData": {"k": "mine"}});
    let foreign = namespaces.within(3).create(&foreign).unwrap();
    kubectl
        .create(&distribution(
            "pull-e2e",
            &json!({"k": "v"}),
            &namespaces.selector(),
        ))
        .unwrap();
    until_counts(kubectl, "pull-e2e", LIMIT, 4, 3);
    let why = explained(&scenario, &["distributor/pull-e2e", "distribution-003"]);
    assert!(
        why.contains("has an object of that name that is not ours"),
        "{why}"
    );
    assert_eq!(namespaces.within(3).get("secret", "pull-e2e").unwrap(), foreign);

    // An edit is reverted, and a copy that was deleted created again.
    let own = json!({"data": {"k": "eA==", "more": "eA=="}, "metadata": {"labels": {"mine": "1"}}});
    namespaces.within(0).patch("secret", "pull-e2e", &own).unwrap();
    namespaces
        .within(1)
        .run(&["delete", "secret", "pull-e2e"])
        .unwrap();
    wait::until_true("both are as they were", LIMIT, || {
        let data =
            |index: usize| anyhow::Ok(namespaces.within(index).get("secret", "pull-e2e")?["data"].clone());
        let wanted = json!({"k": "dg=="});
        Ok(data(0).is_ok_and(|data| data == wanted) && data(1).is_ok_and(|data| data == wanted))
    })
    .unwrap();
    let copy = namespaces.within(0).get("secret", "pull-e2e").unwrap();
    assert_eq!(copy["metadata"]["labels"]["mine"], "1");

    // A namespace that is selected no more, and the end of the conflict.
    kubectl
        .run(&[
            "label",
            "namespace",
            "distribution-002",
            &format!("{GROUP}=none"),
            "--overwrite",
        ])
        .unwrap();
    wait::until_true("its copy is gone", wait::QUIET, || {
        Ok(namespaces.within(2).get("secret", "pull-e2e").is_err())
    })
    .unwrap();
    kubectl
        .run(&[
            "label",
            "namespace",
            "distribution-002",
            &format!("{GROUP}=distribution"),
            "--overwrite",
        ])
        .unwrap();
    namespaces
        .within(3)
        .run(&["delete", "secret", "pull-e2e"])
        .unwrap();
    // What was refused is tried again with ever longer pauses.
    until_counts(kubectl, "pull-e2e", wait::QUIET, 4, 4);

    // The garbage collector deletes the copies.
    kubectl
        .run(&["delete", "resourcedistribution", "pull-e2e"])
        .unwrap();
    wait::until_true("all copies are gone", wait::QUIET, || {
        Ok((0..4).all(|index| namespaces.within(index).get("secret", "pull-e2e").is_err()))
    })
    .unwrap();
}

/// Namespaces and Secrets; `KRUISE_E2E_COPIES=200x20` sets other numbers.
fn sizes() -> (usize, usize) {
    let given = std::env::var("KRUISE_E2E_COPIES").unwrap_or_else(|_| "50x5".to_owned());
    let (namespaces, secrets) = given.split_once('x').unwrap();
    (namespaces.parse().unwrap(), secrets.parse().unwrap())
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_copy_costs_one_write_and_whoever_takes_over_writes_nothing() {
    let (group, (namespaces, secrets)) = ("distribution-cost", sizes());
    let scenario = scenario_alone(group);
    let kubectl = &scenario.kubectl;
    let flagged = Flagged::shared(kubectl.kubeconfig(), &FLAGS);
    let namespaces = Namespaces::new(&scenario, group, namespaces);
    let copies = namespaces.names.len() * secrets;
    let limit = LIMIT + Duration::from_secs(copies as u64 / 10);
    let names: Vec<String> = (0..secrets).map(|number| format!("{group}-{number}")).collect();
    let peak = || {
        let file = pid_file(Path::new(&variable("KRUISE_E2E_DIR")));
        process::peak_memory_kib(process::read_pid_file(&file).unwrap().unwrap()).unwrap()
    };
    let data = "0123456789abcdef".repeat(SIZE_KIB * 64);
    let before = peak();
    let mut log = audit_log();
    for name in &names {
        let distribution = distribution(name, &json!({"k": data}), &namespaces.selector());
        kubectl.create(&distribution).unwrap();
    }
    let until_all = || {
        for name in &names {
            until_counts(
                kubectl,
                name,
                limit,
                namespaces.names.len(),
                namespaces.names.len(),
            );
        }
    };
    until_all();
    wait::observe_for(Duration::from_secs(2));
    let is_of_copies =
        |request: &&Entry| request.user_agent.contains("resourcedistribution") && request.is_write();
    let requests = log.read_new(MANAGER).unwrap();
    let written = requests.iter().filter(is_of_copies).count();
    let grown = peak().saturating_sub(before);
    println!("{copies} copies of {SIZE_KIB} KiB: {written} writes, {grown} KiB of memory at most");
    assert!(
        written >= copies && written * 100 <= copies * WRITES,
        "{written} writes of {copies} copies"
    );
    // Of few copies, what is on its way to the server counts more than what is kept.
    let is_measured = copies >= MEASURED;
    assert!(
        !is_measured || grown * 4 <= (copies * SIZE_KIB) as u64,
        "{grown} KiB of {copies} copies"
    );
    // Whoever takes over reads the copies and writes nothing.
    drop(flagged);
    let _flagged = Flagged::shared(kubectl.kubeconfig(), &FLAGS);
    let _earlier = log.read_new(MANAGER).unwrap();
    wait::observe_for(Duration::from_secs(5));
    let requests = log.read_new(MANAGER).unwrap();
    let written: Vec<&Entry> = requests.iter().filter(is_of_copies).collect();
    assert!(written.is_empty(), "{written:?}");
    for name in &names {
        kubectl.run(&["delete", "resourcedistribution", name]).unwrap();
    }
}
