//! Agents pull from a registry that wants a password.

use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use serde_json::{Value, json};

use super::agent::{Agents, PULLS, pull_job, report, until_ended};
use super::locked::{HOST, Locked, PASSWORD, secret};
use super::{OnNodes, TOOL, on_nodes_alone, web_of};
use crate::cluster::{Flagged, LIMIT, text};
use crate::sidecarset::Set;

/// Bytes of answers that are passed on before the registry goes: less than the layer of an image has.
const PART: u64 = 256 << 10;

fn locked(repository: &str) -> String {
    format!("{HOST}/{repository}")
}

fn pull_job_with(secret: &str, name: &str, image: &str, nodes: &[String]) -> Value {
    let mut job = pull_job(name, image, nodes);
    job["spec"]["pullSecrets"] = json!([secret]);
    job
}

fn forget_everywhere(on: &OnNodes, nodes: &[String], version: &str) {
    for node in nodes {
        for host in [HOST, "lab.test"] {
            on.runtime.forget(node, &format!("{host}/web:{version}"));
        }
    }
}

/// Ends a job, and waits until the tag is off the node's list.
fn forget_job(kubectl: &Kubectl, job: &str, node: &str, (image, tag): (&str, &str)) {
    kubectl
        .run(&["delete", "imagepulljob", job, "--wait=true"])
        .unwrap();
    wait::until_true("the tag is off the list", LIMIT, || {
        let stored = kubectl.get("nodeimages", node)?;
        let tags = stored["spec"]["images"][image]["tags"].as_array().cloned();
        Ok(!tags.into_iter().flatten().any(|one| one["tag"] == tag))
    })
    .unwrap();
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn agents_pull_tags_and_digests_with_the_password_of_a_secret_and_not_without() {
    let on = on_nodes_alone("nodes-password");
    let kubectl = &on.scenario.kubectl;
    let _flagged = Flagged::shared(kubectl.kubeconfig(), &PULLS);
    let agents = Agents::start(&on);
    let nodes = agents.until_listed(kubectl);
    let _locked = Locked::start(&on, nodes);
    forget_everywhere(&on, nodes, "3");
    let (repository, image) = (locked("web"), locked("web:3"));
    for (name, password) in [("wrong", "wrong"), ("right", PASSWORD)] {
        kubectl.create(&secret(name, password)).unwrap();
    }

    kubectl.create(&pull_job("without", &image, nodes)).unwrap();
    assert_eq!(until_ended(kubectl, "without")["failed"], nodes.len());
    let failed = report(kubectl, &nodes[0], &repository, "3");
    assert!(text(&failed, "/message").contains("401"), "{failed}");
    forget_job(kubectl, "without", &nodes[0], (&repository, "3"));

    kubectl
        .create(&pull_job_with("wrong", "wrong", &image, nodes))
        .unwrap();
    assert_eq!(until_ended(kubectl, "wrong")["failed"], nodes.len());
    assert!(!on.runtime.has(&nodes[0], &image));
    forget_job(kubectl, "wrong", &nodes[0], (&repository, "3"));

    kubectl
        .create(&pull_job_with("right", "tag", &image, nodes))
        .unwrap();
    let status = until_ended(kubectl, "tag");
    assert_eq!(status["succeeded"], nodes.len(), "{status}");
    let digest = on.runtime.digest(&nodes[0], &image);
    forget_everywhere(&on, nodes, "3");
    let image = format!("{repository}@{digest}");
    kubectl
        .create(&pull_job_with("right", "digest", &image, nodes))
        .unwrap();
    let status = until_ended(kubectl, "digest");
    assert_eq!(status["succeeded"], nodes.len(), "{status}");
    assert!(nodes.iter().all(|node| on.runtime.has(node, &image)));
    for node in nodes {
        on.runtime.forget(node, &image);
    }
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn images_of_a_held_rollout_are_pulled_with_the_secrets_that_its_pods_have_and_its_template_lacks() {
    let on = on_nodes_alone("nodes-password-pods");
    let kubectl = &on.scenario.kubectl;
    let gates = "--feature-gates=ImagePullJobGate=true,PreDownloadImageForInPlaceUpdate=true";
    let _flagged = Flagged::shared(kubectl.kubeconfig(), &[gates, PULLS[1]]);
    let agents = Agents::start(&on);
    let nodes = agents.until_listed(kubectl);
    let _locked = Locked::start(&on, nodes);
    kubectl.create(&secret("team", PASSWORD)).unwrap();
    // As a service account does, on servers that admit by them.
    let gives =
        json!({"containers": [{"name": "neighbour", "image": TOOL}], "imagePullSecrets": [{"name": "team"}]});
    let _set = Set::new(&on.scenario, "nodes-password-pods", &gives);
    let main = |version: &str| json!([{"name": "main", "image": locked(&format!("web:{version}"))}]);
    let mut set = web_of(4, &main("1"));
    kubectl.apply(&set).unwrap();
    on.until_updated(4);
    forget_everywhere(&on, nodes, "3");

    set["spec"]["template"]["spec"]["containers"] = main("3");
    set["spec"]["updateStrategy"]["partition"] = json!(4);
    kubectl.apply(&set).unwrap();
    let image = locked("web:3");
    let used: Vec<String> = on
        .scenario
        .pods()
        .iter()
        .map(|pod| text(pod, "/spec/nodeName"))
        .collect();
    wait::until_true("the nodes of the pods have the image", LIMIT, || {
        Ok(used.iter().all(|node| on.runtime.has(node, &image)))
    })
    .unwrap();
    let jobs = kubectl.list("imagepulljobs", "").unwrap();
    let secrets: Vec<&Value> = jobs.iter().map(|job| &job["spec"]["pullSecrets"]).collect();
    assert_eq!(secrets, [&json!(["team"])]);
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn an_image_is_pulled_though_its_registry_goes_half_way_and_comes_back() {
    let on = on_nodes_alone("nodes-registry-goes");
    let kubectl = &on.scenario.kubectl;
    let _flagged = Flagged::shared(kubectl.kubeconfig(), &PULLS);
    let agents = Agents::start(&on);
    let nodes = agents.until_listed(kubectl);
    let mut registry = Locked::start(&on, nodes);
    kubectl.create(&secret("right", PASSWORD)).unwrap();
    forget_everywhere(&on, nodes, "2");
    let (node, image) = (&nodes[..1], locked("web:2"));
    let mut job = pull_job_with("right", "half", &image, node);
    job["spec"]["pullPolicy"] = json!({"backoffLimit": 5, "timeoutSeconds": 60});
    registry.go_after(PART, || drop(kubectl.create(&job).unwrap()));
    assert!(!on.runtime.has(&node[0], &image));
    registry.is_missed();

    registry.come_back();
    let status = until_ended(kubectl, "half");
    assert_eq!(status["succeeded"], 1, "{status}");
    assert!(on.runtime.has(&node[0], &image));
    forget_everywhere(&on, nodes, "2");
}
