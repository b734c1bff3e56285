//! Stateful sets at work.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::{CLAIMS, images, play, pods, workload};
use crate::wire::{Method, Request};
use crate::world::tests::{PODS, Play, is_ready};

const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";

fn post(play: &mut Play, replicas: i64, more: &Value) {
    play.post(SETS, &workload("StatefulSet", replicas, more));
}

fn with_claims(more: &Value) -> Value {
    let mut spec = json!({"volumeClaimTemplates": [{"metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]});
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    spec
}

fn change(play: &mut Play, spec: &Value) {
    play.merge(&format!("{SETS}/web"), &json!({"spec": spec}));
}

fn roll_to(play: &mut Play, image: &str) {
    let spec = json!({"containers": [{"name": "main", "image": image}]});
    change(play, &json!({"template": {"spec": spec}}));
}

fn names(play: &mut Play, path: &str) -> Vec<String> {
    let list = play.get(path).unwrap();
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|one| one["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

fn counts(play: &mut Play) -> [i64; 5] {
    let set = play.get(&format!("{SETS}/web")).unwrap();
    [
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "currentReplicas",
        "updatedReplicas",
    ]
    .map(|name| set["status"][name].as_i64().unwrap_or(0))
}

/// Plays until all is quiet; `see` looks after every step.
fn watch(play: &mut Play, mut see: impl FnMut(&mut Play)) {
    while let Some(due) = play.0.next_due() {
        play.0.advance(due);
        see(play);
    }
}

/// How many pods are not available, out of so many.
fn away(play: &mut Play, of: usize) -> usize {
    of - pods(play).iter().filter(|pod| is_ready(pod)).count()
}

#[test]
fn an_ordered_set_makes_and_removes_one_pod_at_a_time() {
    let mut play = play();
    post(
        &mut play,
        3,
        &json!({"serviceName": "db", "ordinals": {"start": 2}}),
    );
    let mut made = Vec::new();
    watch(&mut play, |play| {
        let pods = pods(play);
        assert!(
            pods.iter().rev().skip(1).all(is_ready),
            "the one before was waited for"
        );
        if pods.len() > made.len() {
            made.push(names(play, PODS).pop().unwrap());
        }
    });
    assert_eq!(made, ["web-2", "web-3", "web-4"]);
    assert_eq!(counts(&mut play), [3; 5]);
    let pod = play.pod("web-3");
    assert_eq!(
        (&pod["spec"]["hostname"], &pod["spec"]["subdomain"]),
        (&json!("web-3"), &json!("db"))
    );
    assert_eq!(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "3");
    change(&mut play, &json!({"replicas": 1}));
    let mut seen = vec![3];
    watch(&mut play, |play| {
        let pods = pods(play);
        let leaving = pods
            .iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_string());
        assert!(leaving.count() <= 1);
        if seen.last() != Some(&pods.len()) {
            seen.push(pods.len());
        }
    });
    assert_eq!(seen, [3, 2, 1]);
    assert_eq!(names(&mut play, PODS), ["web-2"]);
}

#[test]
fn a_parallel_set_makes_its_pods_at_once_and_waits_for_them_to_be_available() {
    let mut play = play();
    let spec = json!({"podManagementPolicy": "Parallel", "minReadySeconds": 30});
    post(&mut play, 3, &spec);
    play.pass(Duration::from_secs(10));
    assert_eq!(counts(&mut play), [3, 3, 0, 3, 3]);
    play.rest();
    assert_eq!(counts(&mut play), [3; 5]);
}

#[test]
fn an_update_goes_down_to_the_partition_and_a_held_pod_comes_back_as_it_was() {
    let mut play = play();
    let rolling = json!({"updateStrategy": {"rollingUpdate": {"partition": 1}}});
    post(&mut play, 3, &rolling);
    play.rest();
    roll_to(&mut play, "web:2");
    watch(&mut play, |play| assert!(away(play, 3) <= 1));
    assert_eq!(images(&mut play), ["web:1", "web:2", "web:2"]);
    assert_eq!(counts(&mut play), [3, 3, 3, 1, 2]);
    play.delete(&format!("{PODS}/web-0"));
    play.rest();
    assert_eq!(images(&mut play), ["web:1", "web:2", "web:2"]);
    let status = play.get(&format!("{SETS}/web")).unwrap()["status"].clone();
    assert_ne!(status["currentRevision"], status["updateRevision"]);
    change(
        &mut play,
        &json!({"updateStrategy": {"rollingUpdate": {"partition": 0}}}),
    );
    play.rest();
    assert_eq!(images(&mut play), ["web:2"; 3]);
    let status = play.get(&format!("{SETS}/web")).unwrap()["status"].clone();
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    assert_eq!(counts(&mut play), [3; 5]);
}

#[test]
fn as_many_pods_are_updated_at_a_time_as_may_be_unavailable() {
    let mut play = play();
    let spec = json!({"podManagementPolicy": "Parallel", "updateStrategy": {"rollingUpdate": {"maxUnavailable": "50%"}}});
    post(&mut play, 5, &spec);
    play.rest();
    roll_to(&mut play, "web:2");
    let mut most = 0;
    watch(&mut play, |play| most = most.max(away(play, 5)));
    assert_eq!(most, 2, "rounded down");
    assert_eq!(images(&mut play), ["web:2"; 5]);
}

#[test]
fn a_deletion_by_hand_updates_a_pod_of_a_set_that_waits_for_it() {
    let mut play = play();
    post(&mut play, 2, &json!({"updateStrategy": {"type": "OnDelete"}}));
    play.rest();
    roll_to(&mut play, "web:2");
    play.rest();
    assert_eq!(images(&mut play), ["web:1"; 2]);
    play.delete(&format!("{PODS}/web-0"));
    play.rest();
    assert_eq!(images(&mut play), ["web:2", "web:1"]);
}

#[test]
fn a_broken_update_of_a_parallel_set_is_replaced_by_the_next() {
    let mut play = play();
    post(&mut play, 3, &json!({"podManagementPolicy": "Parallel"}));
    play.rest();
    roll_to(&mut play, "registry.invalid/web:2");
    play.pass(Duration::from_mins(1));
    assert_eq!(away(&mut play, 3), 1);
    roll_to(&mut play, "web:3");
    watch(&mut play, |play| assert!(away(play, 3) <= 1));
    assert_eq!(images(&mut play), ["web:3"; 3]);
}

#[test]
fn revisions_are_named_by_their_content_reused_and_kept_within_the_limit() {
    let mut play = play();
    post(&mut play, 1, &json!({"revisionHistoryLimit": 1}));
    play.rest();
    let first = names(&mut play, REVISIONS);
    let revision = play.get(&format!("{REVISIONS}/{}", first[0])).unwrap();
    let data = go_compat::pod_template::revision_data(
        &play.get(&format!("{SETS}/web")).unwrap()["spec"]["template"],
    );
    let data = data.replace(r#""creationTimestamp":null,"#, "");
    let hash = go_compat::revision::revision_hash(data.as_bytes(), Some(0));
    assert_eq!(first, [format!("web-{hash}")]);
    assert_eq!(revision["data"], serde_json::from_str::<Value>(&data).unwrap());
    assert_eq!(
        play.pod("web-0")["metadata"]["labels"]["controller-revision-hash"],
        first[0].as_str()
    );
    for image in ["web:2", "web:1"] {
        roll_to(&mut play, image);
        play.rest();
    }
    let both: BTreeSet<String> = names(&mut play, REVISIONS).into_iter().collect();
    assert!(both.len() == 2 && both.contains(&first[0]), "{both:?}");
    let back = play.get(&format!("{REVISIONS}/{}", first[0])).unwrap();
    assert_eq!(back["revision"], 3, "the way back is the newest revision");
    roll_to(&mut play, "web:3");
    play.rest();
    let left = names(&mut play, REVISIONS);
    assert!(left.len() == 2 && left.contains(&first[0]), "{left:?}");
}

#[test]
fn claims_outlive_their_pods_unless_the_policy_takes_them_along() {
    for (policy, after_scaling, after_deletion) in [
        (json!({}), 3, 3),
        (json!({"whenScaled": "Delete"}), 1, 1),
        (json!({"whenDeleted": "Delete"}), 3, 0),
        (json!({"whenScaled": "Delete", "whenDeleted": "Delete"}), 1, 0),
    ] {
        let mut play = play();
        let spec = with_claims(&json!({"persistentVolumeClaimRetentionPolicy": policy}));
        post(&mut play, 3, &spec);
        play.rest();
        assert_eq!(
            names(&mut play, CLAIMS),
            ["data-web-0", "data-web-1", "data-web-2"]
        );
        let volumes = &play.pod("web-1")["spec"]["volumes"];
        assert_eq!(volumes[0]["persistentVolumeClaim"]["claimName"], "data-web-1");
        play.delete(&format!("{PODS}/web-1"));
        play.rest();
        assert_eq!(names(&mut play, CLAIMS).len(), 3, "{policy}: it comes back");
        change(&mut play, &json!({"replicas": 1}));
        play.rest();
        assert_eq!(names(&mut play, CLAIMS).len(), after_scaling, "{policy}");
        play.delete(&format!("{SETS}/web"));
        play.rest();
        assert_eq!(pods(&mut play).len(), 0, "{policy}");
        assert_eq!(names(&mut play, CLAIMS).len(), after_deletion, "{policy}");
    }
}

#[test]
fn a_pod_that_comes_back_waits_until_the_claim_of_the_last_one_is_gone() {
    let mut play = play();
    let policy = json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}});
    post(&mut play, 2, &with_claims(&policy));
    play.rest();
    let uid = |play: &mut Play| play.get(&format!("{CLAIMS}/data-web-1")).unwrap()["metadata"]["uid"].clone();
    let before = uid(&mut play);
    change(&mut play, &json!({"replicas": 1}));
    play.pass(Duration::ZERO);
    change(&mut play, &json!({"replicas": 2}));
    play.rest();
    assert_eq!(counts(&mut play), [2; 5]);
    assert_ne!(uid(&mut play), before, "the pod has a claim of its own");
}

#[test]
fn the_claim_templates_of_a_set_cannot_be_changed() {
    let mut play = play();
    post(&mut play, 1, &with_claims(&json!({})));
    let patch = json!({"spec": {"volumeClaimTemplates": null}});
    let request = Request::new(Method::Patch, &format!("{SETS}/web"), Some(&patch));
    let answer = play
        .0
        .handle(&request.content_type("application/merge-patch+json"));
    let answer = answer.response().unwrap();
    let message = answer.value()["message"].to_string();
    assert!(
        answer.code == 422
            && message.contains("updates to statefulset spec for fields other than 'replicas'"),
        "{message}"
    );
}

#[test]
fn a_foreign_pod_of_the_name_is_left_alone_until_it_goes() {
    let mut play = play();
    play.post(PODS, &crate::world::tests::pod("web-0"));
    post(&mut play, 1, &json!({}));
    play.rest();
    assert_eq!(play.pod("web-0")["metadata"].get("ownerReferences"), None);
    assert_eq!(counts(&mut play), [0; 5]);
    let path = format!("{PODS}/web-0");
    play.send(&Request::new(Method::Delete, &path, None));
    play.rest();
    assert_eq!(counts(&mut play), [1; 5]);
}
