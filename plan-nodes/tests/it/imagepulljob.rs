//! ImagePullJobs, with all controllers: they run until none has anything to do, agents report, and so on.

use kruise_plan_kit::{Explain, ResourceId};
use serde_json::{Value, json};

use crate::world::{World, owners, pull, tags, world};

const JOBS: ResourceId = kruise_api::imagepulljob::RESOURCE;
const SECRETS: ResourceId = ResourceId::SECRETS;
const NODES: ResourceId = ResourceId::NODES;

#[test]
fn a_job_pulls_on_all_nodes_ends_is_removed_and_leaves_nothing() {
    let mut world = world(&["n1", "n2", "n3"]);
    world.secret("shop", "reg", "a");
    let spec = json!({"parallelism": 2, "pullSecrets": ["reg"],
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 10}});
    world.job("warm", &spec);
    pull(&mut world, "warm", "app:1");
    let status = &world.the_job("warm")["status"];
    assert_eq!((&status["desired"], &status["succeeded"]), (&json!(3), &json!(3)));
    assert_eq!(status["message"], "job has completed");
    assert_eq!(world.names(SECRETS).len(), 2, "the job keeps its copy");
    world.pass(10);
    world.settle();
    assert!(world.names(JOBS).is_empty());
    assert_eq!(world.names(SECRETS), ["reg"], "the copy is gone");
    for node in ["n1", "n2", "n3"] {
        assert_eq!(world.image(node)["spec"]["images"], json!({}), "{node}");
    }
}

#[test]
fn a_node_and_an_image_cost_one_write_until_success_and_one_to_clean_up() {
    let nodes: Vec<String> = (0..20).map(|number| format!("n{number:02}")).collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let mut world = world(&nodes);
    world.secret("shop", "reg", "a");
    let spec = json!({"parallelism": 7, "pullSecrets": ["reg"],
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 10}});
    world.job("warm", &spec);
    pull(&mut world, "warm", "app:1");
    let of_nodes = |world: &World| {
        let on_node = |line: &&String| nodes.iter().any(|node| line.ends_with(node));
        world.written.iter().filter(on_node).count()
    };
    assert_eq!(of_nodes(&world), 20);
    world.pass(10_000);
    world.settle();
    assert_eq!(of_nodes(&world), 40);
}

#[test]
fn names_choose_the_nodes_and_their_order() {
    let mut world = world(&["n1", "n2", "n3"]);
    world.explain = Explain::Yes;
    world.job("warm", &json!({"selector": {"names": ["n3", "n1", "n9"]}}));
    let plan = world.plan_job("warm");
    assert_eq!(plan.writes[0].steps[0].write.target().name, "n3");
    assert!(
        plan.why
            .iter()
            .any(|why| why.node() == Some("n9") && why.text.contains("no NodeImage"))
    );
    pull(&mut world, "warm", "app:1");
    assert_eq!(world.the_job("warm")["status"]["desired"], 2);
    assert!(tags(&world, "n2", "app").is_empty());
    world.job("none", &json!({"selector": {"names": []}}));
    world.settle();
    assert_eq!(world.the_job("none")["status"]["message"], "job has completed");
}

#[test]
fn no_more_nodes_than_parallelism_pull_at_a_time() {
    let mut world = world(&["n1", "n2", "n3"]);
    world.job("warm", &json!({}));
    for node in ["n1", "n2", "n3"] {
        world.settle();
        assert_eq!(world.active("warm"), [node]);
        world.report(node, "app:1", "Pulling");
        world.settle();
        assert_eq!(world.active("warm"), [node]);
        world.report(node, "app:1", if node == "n2" { "Failed" } else { "Succeeded" });
    }
    world.settle();
    let status = &world.the_job("warm")["status"];
    assert_eq!(status["failedNodes"], json!(["n2"]));
    assert_eq!(
        (&status["succeeded"], &status["failed"], &status["active"]),
        (&json!(2), &json!(1), &json!(0))
    );
}

#[test]
fn parallelism_zero_pauses_a_job() {
    let mut world = world(&["n1"]);
    world.job("warm", &json!({"parallelism": 0}));
    world.settle();
    assert!(world.active("warm").is_empty());
    world.edit(JOBS, "shop", "warm", &json!({"spec": {"parallelism": "1"}}));
    world.settle();
    assert_eq!(world.active("warm"), ["n1"]);
}

#[test]
fn a_job_of_type_never_waits_for_silent_nodes_covers_new_ones_and_pulls_again_after_a_day() {
    let mut world = world(&["n1", "n2"]);
    world.job(
        "warm",
        &json!({"parallelism": 5, "completionPolicy": {"type": "Never"}}),
    );
    world.settle();
    world.report("n1", "app:1", "Succeeded");
    world.node("n3");
    world.settle();
    world.report("n3", "app:1", "Succeeded");
    world.settle();
    let status = world.the_job("warm")["status"].clone();
    assert_eq!((&status["succeeded"], &status["active"]), (&json!(2), &json!(1)));
    assert_eq!(status["message"], "job is running, progress 66.7%");
    assert!(status["completionTime"].is_null());
    let ttl = tags(&world, "n1", "app")[0]["pullPolicy"]["ttlSecondsAfterFinished"].clone();
    assert!((85_800..=87_000).contains(&ttl.as_i64().unwrap()), "{ttl}");
    world.pass(87_001);
    world.settle();
    let again = &tags(&world, "n1", "app")[0];
    assert_eq!(again["version"], 1, "another round");
    assert!(world.active("warm").contains(&"n1".to_owned()));
}

#[test]
fn a_second_job_for_an_image_begins_a_round_that_both_follow() {
    let mut world = world(&["n1"]);
    world.job("one", &json!({"completionPolicy": {"type": "Never"}}));
    world.settle();
    world.report("n1", "app:1", "Succeeded");
    world.settle();
    world.job("two", &json!({"imagePullPolicy": "Always"}));
    world.settle();
    let tag = &tags(&world, "n1", "app")[0];
    assert_eq!(
        (&tag["version"], &tag["imagePullPolicy"]),
        (&json!(1), &json!("Always"))
    );
    assert_eq!(owners(tag), ["one", "two"]);
    assert_eq!(world.the_job("one")["status"]["active"], 1);
    world.report("n1", "app:1", "Succeeded");
    world.settle();
    assert_eq!(world.the_job("one")["status"]["succeeded"], 1);
    assert_eq!(world.the_job("two")["status"]["message"], "job has completed");
}

#[test]
fn a_shared_tag_is_kept_as_long_as_the_job_that_keeps_it_longest() {
    let mut world = world(&["n1"]);
    let ttl = |world: &World| tags(world, "n1", "app")[0]["pullPolicy"]["ttlSecondsAfterFinished"].clone();
    let short = json!({"type": "Always", "ttlSecondsAfterFinished": 5});
    world.job("short", &json!({"completionPolicy": short}));
    world.settle();
    let of_short = ttl(&world).as_i64().unwrap();
    world.job("daily", &json!({"completionPolicy": {"type": "Never"}}));
    world.settle();
    let of_both = ttl(&world).as_i64().unwrap();
    assert!(
        of_short < 86_400 - 600 && of_both >= 86_400 - 600,
        "{of_short} {of_both}"
    );
    world.report("n1", "app:1", "Succeeded");
    world.settle();

    world.job("other", &json!({"completionPolicy": short}));
    world.settle();
    assert_eq!(ttl(&world), of_both);
}

#[test]
fn a_deadline_ends_a_job_and_names_every_node_that_has_not_pulled() {
    let mut world = world(&["n1", "n2", "n3", "n4"]);
    world.job(
        "warm",
        &json!({"parallelism": 2, "completionPolicy": {"type": "Always", "activeDeadlineSeconds": 700}}),
    );
    world.settle();
    world.report("n2", "app:1", "Succeeded");
    world.settle();
    world.report("n3", "app:1", "Failed");
    world.settle();
    assert_eq!(world.plan_job("warm").requeue.unwrap().as_secs(), 700);
    world.pass(699);
    for node in ["n1", "n4"] {
        world.report(node, "app:1", "Pulling");
    }
    world.settle();
    assert!(world.the_job("warm")["status"]["completionTime"].is_null());
    world.pass(1);
    world.settle();
    let status = &world.the_job("warm")["status"];
    assert_eq!(status["message"], "job exceeds activeDeadlineSeconds");
    assert_eq!(status["failedNodes"], json!(["n1", "n3", "n4"]));
    assert_eq!((&status["failed"], &status["active"]), (&json!(3), &json!(0)));
    assert!(status["completionTime"].is_string());
}

#[test]
fn a_pod_selector_pulls_on_the_nodes_of_active_pods_and_on_those_of_new_ones() {
    let mut world = world(&["n1", "n2", "n3"]);
    let pod = |name: &str, node: Value, phase: &str, app: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "labels": {"app": app}},
            "spec": {"nodeName": node, "containers": []}, "status": {"phase": phase}})
    };
    world.store(ResourceId::PODS, pod("a", json!("n2"), "Running", "web"));
    world.store(ResourceId::PODS, pod("b", json!("n3"), "Succeeded", "web"));
    world.store(ResourceId::PODS, pod("c", json!("n3"), "Running", "db"));
    world.store(ResourceId::PODS, pod("d", Value::Null, "Pending", "web"));
    world.job(
        "warm",
        &json!({"parallelism": 5, "podSelector": {"matchLabels": {"app": "web"}},
        "completionPolicy": {"type": "Never"}}),
    );
    world.settle();
    assert_eq!(world.active("warm"), ["n2"]);
    world.edit(
        ResourceId::PODS,
        "shop",
        "d",
        &json!({"spec": {"nodeName": "n1"}}),
    );
    world.settle();
    assert_eq!(world.active("warm"), ["n1", "n2"]);
}

#[test]
fn a_digest_is_listed_so_that_an_agent_can_pull_it() {
    let mut world = world(&["n1"]);
    let digest = format!("sha256:{}", "0a".repeat(32));
    let image = format!("registry.example/app:1@{digest}");
    world.job("warm", &json!({"image": image}));
    world.settle();
    let tag = &tags(&world, "n1", "registry.example/app")[0];
    assert_eq!(tag["tag"], json!(digest));
    world.report("n1", &image, "Succeeded");
    world.settle();
    assert_eq!(world.the_job("warm")["status"]["succeeded"], 1);
}

#[test]
fn an_empty_selector_is_that_of_all_nodes_to_the_end() {
    let mut world = world(&["n1", "n2"]);
    world.job("warm", &json!({"selector": {}}));
    pull(&mut world, "warm", "app:1");
    assert_eq!(world.the_job("warm")["status"]["succeeded"], 2);
}

#[test]
fn labels_choose_the_nodes() {
    let mut world = world(&["n1", "n2"]);
    world.edit(NODES, "", "n2", &json!({"metadata": {"labels": {"pool": "web"}}}));
    world.settle();
    world.job("warm", &json!({"selector": {"matchLabels": {"pool": "web"}}}));
    pull(&mut world, "warm", "app:1");
    assert_eq!(world.the_job("warm")["status"]["desired"], 1);
    assert!(tags(&world, "n1", "app").is_empty());
}

#[test]
fn a_job_without_secrets_to_copy_is_never_held() {
    let mut world = world(&["n1"]);
    world.job("warm", &json!({"completionPolicy": {"type": "Never"}}));
    world.settle();
    assert!(world.the_job("warm")["metadata"]["finalizers"].is_null());
    // OpenKruise holds every job.
    world.edit(
        JOBS,
        "shop",
        "warm",
        &json!({"metadata": {"finalizers": ["a/b", "apps.kruise.io/deletion-protection"]}}),
    );
    world.settle();
    world.delete(JOBS, "shop", "warm");
    world.settle();
    assert_eq!(
        world.the_job("warm")["metadata"]["finalizers"],
        json!(["a/b"]),
        "that of others stays"
    );
}

#[test]
fn nodes_of_a_long_job_do_not_lose_the_image_before_its_end() {
    let mut world = world(&["n1", "n2"]);
    world.job(
        "warm",
        &json!({"completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 0}}),
    );
    world.settle();
    world.report("n1", "app:1", "Succeeded");
    for _ in 0..10 {
        world.settle();
        world.pass(550);
        world.report("n2", "app:1", "Pulling");
    }
    assert_eq!(
        tags(&world, "n1", "app").len(),
        1,
        "though its time to live was over long ago"
    );
    world.report("n2", "app:1", "Succeeded");
    world.settle();
    assert!(world.names(JOBS).is_empty());
    assert!(tags(&world, "n1", "app").is_empty());
}

#[test]
fn a_change_of_an_ended_job_is_reported_and_pulls_nothing() {
    let mut world = world(&["n1"]);
    world.job("warm", &json!({}));
    pull(&mut world, "warm", "app:1");
    world.edit(JOBS, "shop", "warm", &json!({"spec": {"image": "app:2"}}));
    let plan = world.plan_changed_job("warm", true);
    assert!(plan.writes.is_empty());
    assert_eq!(plan.events[0].reason.name, "ChangeIgnored");
}

#[test]
fn parallelism_that_is_no_number_is_reported_and_asks_no_node() {
    let mut world = world(&["n1"]);
    for parallelism in [json!("10%"), json!(-1)] {
        world.job("warm", &json!({"parallelism": parallelism}));
        let plan = world.plan_job("warm");
        assert!(plan.writes.is_empty() && plan.status.is_none());
        assert_eq!(plan.events[0].reason.name, "InvalidSpec");
    }
}

#[test]
fn labels_and_annotations_for_the_runtime_reach_the_node() {
    let mut world = world(&["n1"]);
    let config = json!({"labels": {"a": "b"}, "annotations": {"c": "d"}, "newer": 1});
    world.job("warm", &json!({"sandboxConfig": config}));
    world.settle();
    assert_eq!(
        world.image("n1")["spec"]["images"]["app"]["sandboxConfig"],
        config
    );
}

#[test]
fn a_node_that_cannot_be_asked_keeps_no_other_waiting() {
    let mut world = world(&["n1", "n2"]);
    world.job("warm", &json!({}));
    let asked = |world: &World| {
        world.plan_job("warm").writes[0].steps[0]
            .write
            .target()
            .name
            .clone()
    };
    for _ in 0..3 {
        assert_eq!(asked(&world), "n1");
        let plan = world.plan_job("warm");
        world.try_in_vain("warm", &plan);
    }
    assert_eq!(asked(&world), "n2");
}
