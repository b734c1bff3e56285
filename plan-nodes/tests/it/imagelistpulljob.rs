//! ImageListPullJobs and their jobs.

use kruise_plan_kit::ResourceId;
use serde_json::{Value, json};

use crate::world::{World, world};

const JOBS: ResourceId = kruise_api::imagepulljob::RESOURCE;
const LISTS: ResourceId = kruise_api::imagelistpulljob::RESOURCE;

#[test]
fn two_images_make_two_jobs_and_the_list_ends_with_them() {
    let mut world = world(&["n1", "n2"]);
    world.list(
        "warm",
        &json!({"images": ["app:1", "db:2"], "parallelism": 5,
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 60}}),
    );
    world.settle();
    let list = |world: &World| world.get(LISTS, "shop", "warm").cloned().unwrap_or_default();
    let hash = list(&world)["metadata"]["labels"]["controller-revision-hash"].clone();
    let jobs: Vec<Value> = world.all(JOBS).cloned().collect();
    assert_eq!(jobs.len(), 2);
    for job in &jobs {
        let metadata = &job["metadata"];
        assert!(metadata["name"].as_str().unwrap().starts_with("warm-"));
        assert_eq!(metadata["labels"]["controller-revision-hash"], hash);
        let owner = &metadata["ownerReferences"][0];
        assert_eq!(
            (&owner["kind"], &owner["controller"]),
            (&json!("ImageListPullJob"), &json!(true))
        );
        assert_eq!(job["spec"]["parallelism"], 5);
    }
    for node in ["n1", "n2"] {
        world.report(node, "app:1", "Succeeded");
        world.report(node, "db:2", "Succeeded");
    }
    world.settle();
    let status = &list(&world)["status"];
    let counts = ["desired", "completed", "succeeded", "active"].map(|count| status[count].as_i64().unwrap());
    assert_eq!(counts, [2, 2, 2, 0]);
    assert!(status["completionTime"].is_string());
    world.pass(60);
    world.settle();
    assert!(world.names(LISTS).is_empty() && world.names(JOBS).is_empty());
    assert_eq!(world.image("n1")["spec"]["images"], json!({}));
}

/// Names of the images whose jobs there are.
fn listed(world: &World) -> Vec<&str> {
    let mut images: Vec<&str> = world
        .all(JOBS)
        .map(|job| job["spec"]["image"].as_str().unwrap())
        .collect();
    images.sort_unstable();
    images
}

#[test]
fn a_job_goes_with_its_image_and_comes_with_one_that_is_added() {
    let mut world = world(&["n1"]);
    world.list("warm", &json!({"images": ["app:1", "db:2"]}));
    world.settle();
    let kept = world
        .all(JOBS)
        .find(|job| job["spec"]["image"] == "db:2")
        .unwrap()["metadata"]["uid"]
        .clone();
    world.edit(
        LISTS,
        "shop",
        "warm",
        &json!({"spec": {"images": ["db:2", "web:3"]}}),
    );
    world.settle();
    assert_eq!(listed(&world), ["db:2", "web:3"]);
    let still = world
        .all(JOBS)
        .find(|job| job["spec"]["image"] == "db:2")
        .unwrap();
    assert_eq!(still["metadata"]["uid"], kept);
}

#[test]
fn another_template_replaces_the_jobs() {
    let mut world = world(&["n1"]);
    world.list(
        "warm",
        &json!({"images": ["app:1"], "completionPolicy": {"type": "Never"}}),
    );
    world.settle();
    let before = world.names(JOBS);
    world.edit(LISTS, "shop", "warm", &json!({"spec": {"parallelism": 3}}));
    world.settle();
    let after: Vec<Value> = world.all(JOBS).cloned().collect();
    assert_eq!(after.len(), 1);
    assert!(!before.contains(&after[0]["metadata"]["name"].as_str().unwrap().to_owned()));
    assert_eq!(after[0]["spec"]["parallelism"], 3);
    let list = world.get(LISTS, "shop", "warm").unwrap();
    let hash = "controller-revision-hash";
    assert_eq!(
        list["metadata"]["labels"][hash],
        after[0]["metadata"]["labels"][hash]
    );
}

#[test]
fn a_job_that_somebody_else_changed_stays() {
    let mut world = world(&["n1"]);
    world.list(
        "warm",
        &json!({"images": ["app:1"], "completionPolicy": {"type": "Never"}}),
    );
    world.settle();
    let before = world.names(JOBS);
    world.edit(JOBS, "shop", &before[0], &json!({"spec": {"parallelism": 0}}));
    world.settle();
    assert_eq!(world.names(JOBS), before);
    assert_eq!(world.all(JOBS).next().unwrap()["spec"]["parallelism"], 0);
}

#[test]
fn an_image_that_fails_on_a_node_is_reported_once_in_the_order_of_images() {
    let mut world = world(&["n1"]);
    world.list(
        "warm",
        &json!({"images": ["web:3", "app:1", "db:2"], "completionPolicy": {"type": "Always"}}),
    );
    world.settle();
    world.report("n1", "app:1", "Failed");
    world.report("n1", "db:2", "Succeeded");
    world.report("n1", "web:3", "Failed");
    world.settle();
    let status = &world.get(LISTS, "shop", "warm").unwrap()["status"];
    assert_eq!(
        (&status["completed"], &status["succeeded"]),
        (&json!(3), &json!(1))
    );
    let failed = status["failedImageStatuses"].as_array().unwrap();
    let names: Vec<&Value> = failed.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["app:1", "web:3"]);
    let job = failed[0]["imagePullJob"].as_str().unwrap();
    assert_eq!(
        failed[0]["message"],
        format!("Please check for details which nodes failed by 'kubectl get ImagePullJob {job}'.")
    );
}

#[test]
fn a_job_that_ended_before_its_siblings_is_not_created_again() {
    let mut world = world(&["n1"]);
    world.list(
        "warm",
        &json!({"images": ["app:1", "db:2"],
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 10}}),
    );
    world.settle();
    let before = world.names(JOBS);
    world.report("n1", "app:1", "Succeeded");
    world.report("n1", "db:2", "Pulling");
    world.settle();
    world.pass(500);
    world.settle();
    assert_eq!(
        world.names(JOBS),
        before,
        "it stays, though its time to live is over"
    );
    world.report("n1", "db:2", "Succeeded");
    world.settle();
    world.pass(10);
    world.settle();
    assert!(world.names(JOBS).is_empty() && world.names(LISTS).is_empty());
}

#[test]
fn a_list_that_has_ended_creates_nothing() {
    let mut world = world(&["n1"]);
    world.list("warm", &json!({"images": ["app:1"]}));
    world.settle();
    world.report("n1", "app:1", "Succeeded");
    world.settle();
    world.edit(
        LISTS,
        "shop",
        "warm",
        &json!({"spec": {"images": ["app:1", "db:2"]}}),
    );
    world.settle();
    assert_eq!(listed(&world), ["app:1"]);
}

#[test]
fn a_list_waits_for_jobs_that_have_found_no_node() {
    let mut world = world(&[]);
    world.list(
        "warm",
        &json!({"images": ["app:1"], "completionPolicy": {"type": "Always"}}),
    );
    world.settle();
    let list = |world: &World| world.get(LISTS, "shop", "warm").unwrap()["status"].clone();
    let status = list(&world);
    assert_eq!(
        (&status["completed"], &status["completionTime"]),
        (&json!(0), &Value::Null)
    );
    world.node("n1");
    world.settle();
    world.report("n1", "app:1", "Succeeded");
    world.settle();
    assert_eq!(list(&world)["completed"], 1);
    assert!(list(&world)["completionTime"].is_string());
}
