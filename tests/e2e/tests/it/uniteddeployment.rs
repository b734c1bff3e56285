//! UnitedDeployments above CloneSets, StatefulSets and Deployments.

use std::collections::BTreeMap;
use std::time::Duration;

use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, explained, is_ready, scenario};

const SUBSET: &str = "apps.kruise.io/subset-name";
/// How long a UnitedDeployment is watched at rest.
const REST: Duration = Duration::from_secs(3);

fn united(name: &str, member: &str, replicas: u32, subsets: &[&str]) -> Value {
    let pods = json!({"metadata": {"labels": {"of": name}}, "spec": {"terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "example/api:1"}]}});
    let mut spec = json!({"selector": {"matchLabels": {"of": name}}, "template": pods});
    if member == "statefulSetTemplate" {
        spec["podManagementPolicy"] = json!("Parallel");
    }
    let subsets: Vec<Value> = subsets.iter().map(|subset| json!({"name": subset})).collect();
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "UnitedDeployment", "metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"of": name}},
        "template": {member: {"metadata": {"labels": {"of": name}}, "spec": spec}}, "topology": {"subsets": subsets}}})
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text, not {value}"))
}

/// How many Ready pods of each subset have which image, such as `a: 2 example/api:1`.
fn images(scenario: &Scenario, name: &str) -> anyhow::Result<Vec<String>> {
    let pods = scenario.kubectl.list("pods", &format!("of={name}"))?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for pod in pods {
        if pod["metadata"]["deletionTimestamp"].is_null() && is_ready(&pod) {
            let subset = text(&pod["metadata"]["labels"][SUBSET]);
            let image = text(&pod["spec"]["containers"][0]["image"]);
            *counts.entry(format!("{subset} {image}")).or_default() += 1;
        }
    }
    Ok(counts
        .into_iter()
        .map(|(of, count)| format!("{count} {of}"))
        .collect())
}

fn until_images(scenario: &Scenario, name: &str, wanted: &[&str]) {
    let mut seen = Vec::new();
    let reached = wait::until_true("pods of these images", LIMIT, || {
        seen = images(scenario, name)?;
        seen.sort();
        let mut wanted: Vec<String> = wanted.iter().map(|line| (*line).to_owned()).collect();
        wanted.sort();
        Ok(seen == wanted)
    });
    assert!(reached.is_ok(), "{reached:?}: {seen:?}");
}

fn until_status(scenario: &Scenario, name: &str, wanted: &Value) -> Value {
    let mut status = Value::Null;
    let reached = wait::until_true("the status", LIMIT, || {
        status = scenario.kubectl.get("uniteddeployments", name)?["status"].clone();
        let members = wanted.as_object().unwrap();
        Ok(members.iter().all(|(member, value)| status[member] == *value))
    });
    assert!(reached.is_ok(), "{reached:?}: {status}");
    status
}

fn patch(scenario: &Scenario, name: &str, spec: &Value) {
    scenario
        .kubectl
        .patch("uniteddeployments", name, &json!({"spec": spec}))
        .unwrap();
}

/// Versions of the UnitedDeployment and of its workloads.
fn versions(scenario: &Scenario, resource: &str, name: &str) -> Vec<String> {
    let mut all = scenario.kubectl.list(resource, &format!("of={name}")).unwrap();
    all.push(scenario.kubectl.get("uniteddeployments", name).unwrap());
    all.iter()
        .map(|object| text(&object["metadata"]["resourceVersion"]).to_owned())
        .collect()
}

/// One for each kind of workload, without pods: its workloads are created, changed and deleted.
pub(crate) fn live(kubectl: &Kubectl) {
    for (member, resource) in [
        ("cloneSetTemplate", "clonesets"),
        ("statefulSetTemplate", "statefulsets.apps"),
        ("deploymentTemplate", "deployments"),
    ] {
        kubectl.create(&united("united", member, 0, &["a", "b"])).unwrap();
        let until = |what: &str, holds: &dyn Fn(&[Value]) -> bool| {
            wait::until_true(what, LIMIT, || Ok(holds(&kubectl.list(resource, "of=united")?))).unwrap();
        };
        until("each subset has a workload", &|workloads| workloads.len() == 2);
        let pods = json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}});
        let change = |spec: &Value| {
            kubectl
                .patch("uniteddeployments", "united", &json!({"spec": spec}))
                .unwrap();
        };
        change(&json!({"template": {member: pods}}));
        until("they have the new template", &|workloads| {
            let grace = "/spec/template/spec/terminationGracePeriodSeconds";
            workloads
                .iter()
                .all(|workload| workload.pointer(grace) == Some(&json!(1)))
        });
        change(&json!({"topology": {"subsets": [{"name": "a"}]}}));
        until("the workload of the subset that left is deleted", &|workloads| {
            workloads.len() == 1
        });
        kubectl.run(&["delete", "uniteddeployments", "united"]).unwrap();
        until("its workloads go with it", &|workloads| workloads.is_empty());
    }
}

/// Twelve pods in four subsets, updated while two subsets hold some of theirs back, and then whole.
fn rolled_out(group: &str, member: &str, resource: &str) {
    let scenario = scenario(group);
    let subsets = ["a", "b", "c", "d"];
    scenario
        .kubectl
        .create(&united("api", member, 12, &subsets))
        .unwrap();
    let first: Vec<String> = subsets
        .iter()
        .map(|subset| format!("3 {subset} example/api:1"))
        .collect();
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    until_images(&scenario, "api", &first);
    let before = until_status(
        &scenario,
        "api",
        &json!({"replicas": 12, "readyReplicas": 12, "updatedReadyReplicas": 12}),
    );
    for workload in scenario.kubectl.list(resource, "of=api").unwrap() {
        let (name, subset) = (
            text(&workload["metadata"]["name"]),
            text(&workload["metadata"]["labels"][SUBSET]),
        );
        assert!(name.starts_with(&format!("api-{subset}-")), "{name}");
        assert_eq!(workload["metadata"]["ownerReferences"][0]["name"], "api");
    }

    let template = json!({member: {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "example/api:2"}]}}}}});
    let partitions = json!({"manualUpdate": {"partitions": {"a": 2, "b": 3}}});
    patch(
        &scenario,
        "api",
        &json!({"template": template, "updateStrategy": partitions}),
    );
    let held = [
        "2 a example/api:1",
        "1 a example/api:2",
        "3 b example/api:1",
        "3 c example/api:2",
        "3 d example/api:2",
    ];
    until_images(&scenario, "api", &held);
    let held = until_status(
        &scenario,
        "api",
        &json!({"updatedReplicas": 7, "updatedReadyReplicas": 7, "readyReplicas": 12}),
    );
    assert_eq!(held["currentRevision"], before["currentRevision"]);
    assert_ne!(held["updatedRevision"], before["updatedRevision"]);
    let why = explained(&scenario, &["ud/api", "--namespace", group]);
    assert!(
        why.contains("is to have 3, of which 2 stay at older revisions"),
        "{why}"
    );
    assert!(why.contains("Nothing would be written now."), "{why}");
    wait::observe_for(REST);
    let at_rest = versions(&scenario, resource, "api");
    wait::observe_for(REST);
    assert_eq!(
        versions(&scenario, resource, "api"),
        at_rest,
        "nothing is written while the rollout is held"
    );

    patch(
        &scenario,
        "api",
        &json!({"updateStrategy": {"manualUpdate": {"partitions": null}}}),
    );
    let last: Vec<String> = subsets
        .iter()
        .map(|subset| format!("3 {subset} example/api:2"))
        .collect();
    let last: Vec<&str> = last.iter().map(String::as_str).collect();
    until_images(&scenario, "api", &last);
    until_status(
        &scenario,
        "api",
        &json!({"currentRevision": held["updatedRevision"], "updatedReadyReplicas": 12}),
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn four_subsets_of_clonesets_are_rolled_out_partition_by_partition() {
    rolled_out("united-clonesets", "cloneSetTemplate", "clonesets");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn four_subsets_of_statefulsets_are_rolled_out_partition_by_partition() {
    rolled_out("united-statefulsets", "statefulSetTemplate", "statefulsets.apps");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn deployments_follow_the_topology_and_what_is_of_others_stays() {
    let scenario = scenario("united-deployments");
    let kubectl = &scenario.kubectl;
    let pods = json!({"metadata": {"labels": {"of": "theirs"}}, "spec": {"containers": [{"name": "main", "image": "example/theirs:1"}]}});
    // The label of a subset, but not the selector.
    let theirs = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "theirs", "labels": {"of": "theirs", SUBSET: "a"}},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"of": "theirs"}}, "template": pods}});
    let theirs = kubectl.create(&theirs).unwrap();
    kubectl
        .create(&united("api", "deploymentTemplate", 4, &["a", "b"]))
        .unwrap();
    until_images(&scenario, "api", &["2 a example/api:1", "2 b example/api:1"]);

    // Replicas that somebody sets, and a workload that somebody deletes.
    let of_subset = |subset: &str| {
        let found = kubectl.list("deployments", &format!("of=api,{SUBSET}={subset}"))?;
        let name = found
            .first()
            .map(|found| text(&found["metadata"]["name"]).to_owned());
        anyhow::Ok(name.unwrap_or_default())
    };
    let (a, b) = (of_subset("a").unwrap(), of_subset("b").unwrap());
    kubectl
        .patch("deployment", &b, &json!({"spec": {"replicas": 3}}))
        .unwrap();
    kubectl.run(&["delete", "deployment", &a]).unwrap();
    wait::until_true("both are as they were", LIMIT, || {
        let name = of_subset("a")?;
        let replicas = kubectl.get("deployment", &b)?["spec"]["replicas"].clone();
        Ok(!name.is_empty() && name != a && replicas == 2)
    })
    .unwrap();
    until_images(&scenario, "api", &["2 a example/api:1", "2 b example/api:1"]);

    kubectl
        .run(&["scale", "uniteddeployment", "api", "--replicas=6"])
        .unwrap();
    until_images(&scenario, "api", &["3 a example/api:1", "3 b example/api:1"]);
    patch(
        &scenario,
        "api",
        &json!({"topology": {"subsets": [{"name": "b"}, {"name": "c"}]}}),
    );
    until_images(&scenario, "api", &["3 b example/api:1", "3 c example/api:1"]);
    let left = kubectl.list("deployments", "of=theirs").unwrap();
    assert_eq!(left[0]["spec"], theirs["spec"]);
    assert_eq!(left[0]["metadata"]["labels"], theirs["metadata"]["labels"]);
    assert!(left[0]["metadata"].get("ownerReferences").is_none());
}
