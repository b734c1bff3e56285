//! Claims: each pod has its own; what becomes of them when pods go.

use std::time::Duration;

use kruise_e2e::audit::{Class, Counts, MANAGER};
use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, scenario, scenario_gated, text, web};

/// A finalizer that keeps a deleted pod.
const HOLD: &str = "example.com/hold";
const INSTANCE: &str = "/metadata/labels/apps.kruise.io~1cloneset-instance-id";

/// A CloneSet `web` whose pods mount a claim each.
pub(crate) fn with_claims(replicas: u32) -> Value {
    let mut set = web(replicas);
    set["spec"]["template"]["spec"]["containers"][0] = container("nginx:1");
    set["spec"]["volumeClaimTemplates"] = templates("1Gi");
    set
}

fn container(image: &str) -> Value {
    json!({"name": "main", "image": image, "volumeMounts": [{"name": "data", "mountPath": "/data"}]})
}

fn templates(size: &str) -> Value {
    json!([{
        "metadata": {"name": "data", "labels": {"kind": "data"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "host-path",
                 "resources": {"requests": {"storage": size}}},
    }])
}

/// As [`with_claims`], with claims that go with their pods.
fn without_reuse(replicas: u32) -> Value {
    let mut set = with_claims(replicas);
    set["spec"]["scaleStrategy"] = json!({"disablePVCReuse": true});
    set
}

/// Makes the class that claims name, from which the lab's controller manager makes volumes.
pub(crate) fn storage_class(scenario: &Scenario) {
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "host-path"},
        "provisioner": "kubernetes.io/host-path", "volumeBindingMode": "Immediate",
    });
    scenario.kubectl.apply(&class).unwrap();
}

/// The set with its pods ready.
fn begin(scenario: &Scenario, set: &Value) {
    storage_class(scenario);
    scenario.kubectl.apply(set).unwrap();
    scenario.until_status(&json!({"readyReplicas": set["spec"]["replicas"]}));
}

fn running(namespace: &str, set: &Value) -> Scenario {
    let scenario = scenario(namespace);
    begin(&scenario, set);
    scenario
}

/// All claims, by name.
fn claims(scenario: &Scenario) -> Vec<Value> {
    let mut claims = scenario
        .kubectl
        .list("persistentvolumeclaims", "app=web")
        .unwrap();
    claims.sort_by_key(name);
    claims
}

fn name(object: &Value) -> String {
    text(object, "/metadata/name")
}

fn uid(object: &Value) -> String {
    text(object, "/metadata/uid")
}

/// UIDs of all claims, sorted.
fn claim_uids(scenario: &Scenario) -> Vec<String> {
    let mut uids: Vec<String> = claims(scenario).iter().map(uid).collect();
    uids.sort();
    uids
}

/// The claim that a pod mounts.
fn mounted(pod: &Value) -> String {
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    let data = volumes.iter().find(|volume| volume["name"] == "data").unwrap();
    text(data, "/persistentVolumeClaim/claimName")
}

/// Lets a pod stay once it is deleted, until [`release`].
pub(crate) fn hold(scenario: &Scenario, pod: &str) {
    let hold = json!({"metadata": {"finalizers": [HOLD]}});
    scenario.kubectl.patch("pods", pod, &hold).unwrap();
}

/// Deletes a pod, which stays until [`release`].
pub(crate) fn delete_and_hold(scenario: &Scenario, pod: &str) {
    hold(scenario, pod);
    scenario
        .kubectl
        .run(&["delete", "pod", pod, "--wait=false"])
        .unwrap();
}

pub(crate) fn release(scenario: &Scenario, pod: &str) {
    let release = json!({"metadata": {"finalizers": null}});
    scenario.kubectl.patch("pods", pod, &release).unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn each_pod_has_its_own_claim_that_is_deleted_when_the_cloneset_deletes_the_pod() {
    let scenario = running("claims", &with_claims(3));
    let set = scenario.kubectl.get("clonesets", "web").unwrap();
    let all = claims(&scenario);
    assert_eq!(all.len(), 3);
    for pod in scenario.pods() {
        let id = text(&pod, INSTANCE);
        let claim = all.iter().find(|claim| name(claim) == mounted(&pod)).unwrap();
        assert_eq!(mounted(&pod), format!("data-web-{id}"));
        assert_eq!(text(claim, INSTANCE), id);
        assert_eq!(claim["metadata"]["labels"]["kind"], "data");
        assert_eq!(claim["status"]["phase"], "Bound");
        let owner = &claim["metadata"]["ownerReferences"][0];
        assert_eq!(
            (&owner["uid"], &owner["controller"]),
            (&set["metadata"]["uid"], &json!(true))
        );
    }
    scenario.patch(&json!({"spec": {"replicas": 1}}));
    scenario.until_status(&json!({"replicas": 1}));
    wait::until_true("the claims of the pods that went are gone", wait::QUIET, || {
        Ok(claims(&scenario).len() == 1)
    })
    .unwrap();
    assert_eq!(mounted(&scenario.pods()[0]), name(&claims(&scenario)[0]));
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_deleted_pod_comes_back_with_its_name_and_its_claim() {
    let scenario = running("claims-reused", &with_claims(3));
    let before = claim_uids(&scenario);
    let pod = scenario.pods()[0].clone();
    scenario
        .kubectl
        .run(&["delete", "pod", &name(&pod), "--wait=false"])
        .unwrap();
    wait::until_true("another pod has the name", LIMIT, || {
        let pods = scenario.pods();
        let new = pods.iter().find(|new| name(new) == name(&pod));
        Ok(new.is_some_and(|new| uid(new) != uid(&pod) && mounted(new) == mounted(&pod)))
    })
    .unwrap();
    scenario.until_status(&json!({"readyReplicas": 3, "replicas": 3}));
    assert_eq!(claim_uids(&scenario), before);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_place_of_a_deleted_pod_waits_for_it_where_claims_are_reused() {
    let scenario = running("claims-waiting", &with_claims(3));
    let before = claim_uids(&scenario);
    let pod = name(&scenario.pods()[0]);
    let pods = Watch::start(&scenario.kubectl, "pods", "").unwrap();
    delete_and_hold(&scenario, &pod);
    scenario.until_status(&json!({"replicas": 2}));
    wait::observe_for(Duration::from_secs(3));
    let known: Vec<Value> = pods.stop().unwrap();
    let added = known.iter().filter(|event| event["type"] == "ADDED").count();
    assert_eq!(added, 3, "those that were there, and none in its place");
    release(&scenario, &pod);
    scenario.until_status(&json!({"readyReplicas": 3, "replicas": 3}));
    assert!(scenario.pods().iter().any(|new| name(new) == pod));
    assert_eq!(claim_uids(&scenario), before);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn without_reuse_the_claim_is_deleted_with_its_pod_and_the_new_pod_has_another() {
    let scenario = running("claims-not-reused", &without_reuse(3));
    let pod = scenario.pods()[0].clone();
    delete_and_hold(&scenario, &name(&pod));
    scenario.until_status(&json!({"readyReplicas": 3, "replicas": 3}));
    assert!(scenario.pods().iter().all(|new| mounted(new) != mounted(&pod)));
    wait::until_true("the claim is its pod's", LIMIT, || {
        let claim = scenario.kubectl.get("persistentvolumeclaims", &mounted(&pod))?;
        let owners = claim["metadata"]["ownerReferences"].as_array().unwrap();
        Ok(owners.len() == 1 && owners[0]["kind"] == "Pod" && owners[0]["uid"] == pod["metadata"]["uid"])
    })
    .unwrap();
    release(&scenario, &name(&pod));
    wait::until_true("the claim is gone", wait::QUIET, || {
        let names: Vec<String> = claims(&scenario).iter().map(name).collect();
        Ok(names.len() == 3 && !names.contains(&mounted(&pod)))
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn orphaned_pods_and_their_claims_stay_and_have_no_owner() {
    for (namespace, set) in [
        ("claims-orphaned", with_claims(2)),
        ("claims-orphaned-not-reused", without_reuse(2)),
    ] {
        let scenario = running(namespace, &set);
        let (pods, before) = (scenario.uids(), claim_uids(&scenario));
        let delete = ["delete", "clonesets", "web", "--cascade=orphan", "--wait=false"];
        scenario.kubectl.run(&delete).unwrap();
        wait::until_true("the set is gone", wait::QUIET, || {
            Ok(scenario.kubectl.list("clonesets", "")?.is_empty())
        })
        .unwrap();
        wait::observe_for(Duration::from_secs(2));
        assert_eq!((scenario.uids(), claim_uids(&scenario)), (pods, before));
        for pod in scenario.pods() {
            assert!(pod.pointer("/metadata/ownerReferences").is_none(), "{pod}");
        }
        for claim in claims(&scenario) {
            let metadata = &claim["metadata"];
            assert!(metadata["deletionTimestamp"].is_null(), "{claim}");
            assert!(metadata["ownerReferences"].is_null(), "{claim}");
        }
    }
}

/// Other claim templates, and once they are known another image.
fn change(scenario: &Scenario, size: &str, image: &str) {
    scenario.patch(&json!({"spec": {"volumeClaimTemplates": templates(size)}}));
    scenario.until_status(&json!({"readyReplicas": 2, "updatedReadyReplicas": 2}));
    assert_eq!(scenario.kubectl.list("controllerrevisions", "").unwrap().len(), 1);
    let template = json!({"spec": {"containers": [container(image)]}});
    scenario.patch(&json!({"spec": {"template": template}}));
    scenario.until_status(&json!({"updatedReadyReplicas": 2, "replicas": 2}));
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn other_claim_templates_alone_change_nothing_and_a_later_image_keeps_the_claims() {
    let scenario = running("claims-changed", &with_claims(2));
    let (pods, before) = (scenario.uids(), claim_uids(&scenario));
    change(&scenario, "2Gi", "nginx:2");
    assert_eq!((scenario.uids(), claim_uids(&scenario)), (pods, before));
    // The next pod has what is written now.
    scenario.patch(&json!({"spec": {"replicas": 3}}));
    scenario.until_status(&json!({"readyReplicas": 3}));
    let sizes: Vec<Value> = claims(&scenario)
        .iter()
        .map(|claim| claim["spec"]["resources"]["requests"]["storage"].clone())
        .collect();
    assert_eq!(sizes.iter().filter(|size| *size == "2Gi").count(), 1, "{sizes:?}");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn with_the_gate_an_image_change_recreates_pods_of_other_claim_templates() {
    let scenario = scenario_gated("claims-gate");
    begin(&scenario, &with_claims(2));
    let (pods, before) = (scenario.uids(), claim_uids(&scenario));
    change(&scenario, "2Gi", "nginx:2");
    assert!(scenario.uids().iter().all(|uid| !pods.contains(uid)));
    wait::until_true("the old claims are gone", wait::QUIET, || {
        let claims = claims(&scenario);
        let new = |claim: &Value| {
            claim["spec"]["resources"]["requests"]["storage"] == "2Gi" && !before.contains(&uid(claim))
        };
        Ok(claims.len() == 2 && claims.iter().all(new))
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_claim_costs_one_request_for_its_creation_and_one_for_its_deletion() {
    const PODS: u64 = 20;
    let scenario = scenario("claims-requests");
    let stated = "| a claim of a pod | 1 + 1 | create, before its pod; delete, with its pod |";
    assert!(include_str!("../../../../docs/lifecycle.md").contains(stated));
    storage_class(&scenario);
    let mut log = scenario.audit_log();
    let mut hold = |what: &str| {
        // Not all of the log is written yet, perhaps.
        wait::observe_for(Duration::from_secs(2));
        let requests = log.read_new(MANAGER).unwrap();
        let of_claims = requests
            .iter()
            .filter(|request| request.resource == "persistentvolumeclaims");
        let counts = Counts::of(of_claims);
        println!("{what}, {PODS} claims: {counts}");
        // As for pods: one in twenty may be requested twice.
        let bar = PODS + PODS / 20;
        assert!(
            (PODS..=bar).contains(&counts.total(Class::Counted)),
            "{what}: {counts}"
        );
    };
    scenario
        .kubectl
        .apply(&with_claims(u32::try_from(PODS).unwrap()))
        .unwrap();
    scenario.until_status(&json!({"readyReplicas": PODS}));
    hold("create");
    scenario.patch(&json!({"spec": {"replicas": 0}}));
    scenario.until_status(&json!({"replicas": 0}));
    wait::until_true("no claim is left", wait::QUIET, || {
        Ok(claims(&scenario).is_empty())
    })
    .unwrap();
    hold("delete");
}
