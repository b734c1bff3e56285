//! NodeImages: what becomes of tags, owners and secrets, with all controllers.

use kruise_plan_kit::{Precondition, ResourceId, Write};
use serde_json::{Value, json};

use crate::world::{AGENT, World, owners, pull, tags, world};

const JOBS: ResourceId = kruise_api::imagepulljob::RESOURCE;
const NODES: ResourceId = ResourceId::NODES;
const NODE_IMAGES: ResourceId = kruise_api::nodeimage::RESOURCE;

#[test]
fn a_ready_node_gets_a_node_image_with_its_labels_after_the_delay_and_it_goes_with_the_node() {
    let mut world = World::new();
    let since = kruise_plan_test_kit::text(world.now);
    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": since});
    let node =
        json!({"metadata": {"name": "n1", "labels": {"zone": "a"}}, "status": {"conditions": [ready]}});
    world.store(NODES, node);
    let wait = world.plan_node("n1").requeue.unwrap().as_secs();
    assert_eq!(wait, 30);
    world.pass(29);
    world.settle();
    assert!(world.names(NODE_IMAGES).is_empty());
    world.pass(1);
    world.settle();
    assert_eq!(world.image("n1")["metadata"]["labels"], json!({"zone": "a"}));
    world.edit(
        NODES,
        "",
        "n1",
        &json!({"metadata": {"labels": {"zone": null, "pool": "b"}}}),
    );
    world.settle();
    assert_eq!(world.image("n1")["metadata"]["labels"], json!({"pool": "b"}));
    let unready = json!([{"type": "Ready", "status": "Unknown"}]);
    world.edit(NODES, "", "n1", &json!({"status": {"conditions": unready}}));
    world.settle();
    assert_eq!(
        world.names(NODE_IMAGES),
        ["n1"],
        "a node that is not ready keeps it"
    );
    world.delete(NODES, "", "n1");
    world.settle();
    assert!(world.names(NODE_IMAGES).is_empty());
    let creations = [
        "create-node-image n1",
        "tidy-node-image n1",
        "delete-node-image n1",
    ];
    assert_eq!(world.written, creations);
}

#[test]
fn virtual_nodes_get_no_node_image_and_fake_ones_stay() {
    let mut world = world(&["n1"]);
    world.store(
        NODES,
        json!({"metadata": {"name": "v1", "labels": {"type": "virtual-kubelet"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
    );
    world.store(
        NODE_IMAGES,
        json!({"apiVersion": "apps.kruise.io/v1beta1", "metadata": {"name": "fake",
            "labels": {"apps.kruise.io/fake-nodeimage": "true"}}}),
    );
    world.settle();
    assert_eq!(world.names(NODE_IMAGES), ["fake", "n1"]);
}

#[test]
fn a_tag_that_completed_longer_ago_than_its_time_to_live_is_removed() {
    let mut world = world(&["n1"]);
    let tag = json!({"tag": "1", "createdAt": "2026-01-01T00:00:00Z", "pullPolicy": {"ttlSecondsAfterFinished": 10}});
    let kept = json!({"tag": "2", "createdAt": "2026-01-01T00:50:00Z", "pullPolicy": {"ttlSecondsAfterFinished": 10}});
    world.edit(
        NODE_IMAGES,
        "",
        "n1",
        &json!({"spec": {"images": {"app": {"tags": [tag, kept]}}}}),
    );
    world.report("n1", "app:1", "Succeeded");
    world.report("n1", "app:2", "Pulling");
    world.pass(9);
    assert_eq!(world.plan_node("n1").requeue.unwrap().as_secs(), 1);
    assert!(!world.execute(&world.plan_node("n1")));
    world.pass(2);
    world.settle();
    let left: Vec<Value> = tags(&world, "n1", "app")
        .iter()
        .map(|tag| tag["tag"].clone())
        .collect();
    assert_eq!(left, ["2"]);
}

#[test]
fn the_tag_of_a_deleted_job_is_removed_and_another_owner_keeps_it() {
    let mut world = world(&["n1"]);
    let never = json!({"completionPolicy": {"type": "Never"}});
    world.job("one", &never);
    world.job("two", &never);
    world.settle();
    assert_eq!(owners(&tags(&world, "n1", "app")[0]), ["one", "two"]);
    world.delete(JOBS, "shop", "one");
    world.settle();
    let left = tags(&world, "n1", "app");
    assert_eq!(owners(&left[0]), ["two"]);
    assert_eq!(left[0]["version"], 1, "the round stays as it is");
    world.delete(JOBS, "shop", "two");
    world.settle();
    assert_eq!(world.image("n1")["spec"]["images"], json!({}));
}

#[test]
fn a_tag_without_a_report_fails_after_ten_minutes_with_events_on_the_node_and_its_owners() {
    let mut world = world(&["n1"]);
    world.job("warm", &json!({"completionPolicy": {"type": "Never"}}));
    world.settle();
    assert_eq!(world.plan_node("n1").requeue.unwrap().as_secs(), 600);
    world.pass(600);
    world.settle();
    let status = &world.image("n1")["status"];
    assert_eq!(
        *status,
        json!({"desired": 1, "failed": 1, "pulling": 0, "succeeded": 0, "imageStatuses": {"app": {"tags": [
            {"tag": "1", "phase": "Failed", "message": "node has not responded for a long time"}]}}})
    );
    let text = "Failed to pull image app:1 on node n1 for node has not responded for a long time";
    let events =
        ["ImagePullJob/warm", "NodeImage/n1"].map(|about| format!("PullImageFailed {about}: {text}"));
    assert_eq!(world.events, events);
    assert_eq!(world.the_job("warm")["status"]["failedNodes"], json!(["n1"]));
    // The agent is believed when it reports after all.
    world.report("n1", "app:1", "Succeeded");
    world.settle();
    assert_eq!(world.the_job("warm")["status"]["succeeded"], 1);
}

#[test]
fn a_pull_beyond_its_deadline_fails_ten_minutes_later() {
    let mut world = world(&["n1"]);
    world.job("warm", &json!({"completionPolicy": {"type": "Never"}}));
    world.settle();
    world.report("n1", "app:1", "Pulling");
    world.settle();
    world.pass(1800 + 599);
    world.settle();
    assert_eq!(world.the_job("warm")["status"]["active"], 1);
    world.pass(1);
    world.settle();
    let status = &world.image("n1")["status"]["imageStatuses"]["app"]["tags"][0];
    assert_eq!(status["message"], "pulling exceeds the activeDeadlineSeconds");
    assert!(status["startTime"].is_string(), "what the agent reported stays");
    assert!(
        status["completionTime"].is_string(),
        "for the agent the round is over, too"
    );
}

#[test]
fn a_tag_without_a_policy_or_a_time_is_no_trouble() {
    let mut world = world(&["n1"]);
    let bare = json!({"tag": "1", "createdAt": "2026-01-01T00:55:00Z"});
    let timeless = json!({"tag": "2"});
    world.edit(
        NODE_IMAGES,
        "",
        "n1",
        &json!({"spec": {"images": {"app": {"tags": [bare, timeless]}}}}),
    );
    world.report("n1", "app:1", "Pulling");
    world.pass(100_000);
    world.settle();
    assert_eq!(tags(&world, "n1", "app"), [bare]);
}

#[test]
fn pull_secrets_that_are_gone_are_dropped_and_shared_copies_stay() {
    let mut world = world(&["n1"]);
    let secrets = json!([{"namespace": AGENT, "name": "old"}, {"namespace": AGENT, "name": "kept", "newer": 1},
        {"namespace": AGENT, "name": "shared", "mode": "batch"}]);
    let tag = json!({"tag": "1", "createdAt": "2026-01-01T00:59:00Z"});
    world.secret(AGENT, "kept", "a");
    let image = json!({"tags": [tag], "pullSecrets": secrets});
    world.edit(
        NODE_IMAGES,
        "",
        "n1",
        &json!({"spec": {"images": {"app": image}}}),
    );
    world.settle();
    let left = &world.image("n1")["spec"]["images"]["app"]["pullSecrets"];
    assert_eq!(*left, json!([secrets[1], secrets[2]]));
}

#[test]
fn two_writers_that_race_for_a_node_both_have_their_tags() {
    for is_known in [true, false] {
        let mut world = world(&["n1"]);
        if is_known {
            let tag = json!({"tag": "0", "createdAt": "2026-01-01T00:59:00Z"});
            world.edit(
                NODE_IMAGES,
                "",
                "n1",
                &json!({"spec": {"images": {"app": {"tags": [tag]}}}}),
            );
        }
        let never = |image: &str| json!({"image": image, "completionPolicy": {"type": "Never"}});
        world.job("one", &never("app:1"));
        world.job("two", &never("app:2"));
        let (one, two) = (world.plan_job("one"), world.plan_job("two"));
        world.execute(&one);
        let late = &two.writes[0].steps[0].write;
        assert!(
            world.apply(late, &mut None).is_err(),
            "it was made for what was there"
        );
        world.settle();
        let names: Vec<Value> = tags(&world, "n1", "app")
            .iter()
            .map(|tag| tag["tag"].clone())
            .collect();
        let all = ["0", "1", "2"];
        assert_eq!(names, all[usize::from(!is_known)..]);
    }
}

#[test]
fn a_report_of_the_agent_does_not_disturb_a_request_for_a_known_image() {
    let mut world = world(&["n1"]);
    world.job("one", &json!({"completionPolicy": {"type": "Never"}}));
    world.settle();
    world.job(
        "two",
        &json!({"image": "app:2", "completionPolicy": {"type": "Never"}}),
    );
    let request = world.plan_job("two");
    world.report("n1", "app:1", "Pulling");
    world.execute(&request);
    assert_eq!(tags(&world, "n1", "app").len(), 2);
}

#[test]
fn unknown_fields_of_others_survive_every_write() {
    let mut world = world(&["n1"]);
    let tag = json!({"tag": "0", "createdAt": "2026-01-01T00:59:00Z", "newer": 1});
    let image = json!({"tags": [tag], "newer": 2, "pullSecrets": [{"namespace": AGENT, "name": "x", "mode": "batch", "newer": 3}]});
    world.edit(
        NODE_IMAGES,
        "",
        "n1",
        &json!({"spec": {"newer": 4, "images": {"app": image}}}),
    );
    world.job("warm", &json!({}));
    pull(&mut world, "warm", "app:1");
    world.delete(JOBS, "shop", "warm");
    world.settle();
    assert_eq!(
        world.image("n1")["spec"],
        json!({"newer": 4, "images": {"app": image}})
    );
}

#[test]
fn a_request_is_for_what_it_was_planned_from() {
    let mut world = world(&["n1"]);
    world.job("one", &json!({"completionPolicy": {"type": "Never"}}));
    let precondition = |world: &World, job: &str| {
        let plan = world.plan_job(job);
        let Write::Patch { precondition, .. } = &plan.writes[0].steps[0].write else {
            panic!("{plan:#?}")
        };
        precondition.clone()
    };
    assert!(matches!(
        precondition(&world, "one"),
        Precondition::UidAndVersion(..)
    ));
    world.settle();
    world.job("two", &json!({"completionPolicy": {"type": "Never"}}));
    let stored = world.image("n1")["spec"]["images"]["app"].clone();
    assert_eq!(
        precondition(&world, "two"),
        Precondition::Test("/spec/images/app".into(), stored)
    );
}
