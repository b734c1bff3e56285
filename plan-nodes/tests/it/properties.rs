//! Random histories: users, agents and nodes do what they like, in any order with the controllers. At every write
//! the limits hold; when everybody is quiet the controllers rest, and what jobs left is gone.

use kruise_plan_kit::ResourceId;
use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::{Value, json};

use crate::world::{AGENT, World};

const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];
const JOBS: [&str; 3] = ["one", "two", "three"];

#[derive(Clone, Debug)]
enum Step {
    /// A job with this image, parallelism, end and secret, if there is none of the name.
    Job(Index, Index, i64, bool, bool),
    /// A job is deleted.
    Delete(Index),
    /// The parallelism of a job changes.
    Edit(Index, i64),
    /// The agent of a node reports on an image.
    Report(Index, Index, Index),
    /// A node goes, or comes back.
    Node(Index),
    /// The controller of a job runs.
    PlanJob(Index),
    /// The controller of a NodeImage runs.
    PlanNode(Index),
    /// Time passes.
    Pass(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = any::<Index>;
    let step = prop_oneof![
        2 => (index(), index(), 0_i64..4, any::<bool>(), any::<bool>())
            .prop_map(|(name, image, parallelism, never, secret)| Step::Job(name, image, parallelism, never, secret)),
        1 => index().prop_map(Step::Delete),
        1 => (index(), 0_i64..4).prop_map(|(name, parallelism)| Step::Edit(name, parallelism)),
        6 => (index(), index(), index()).prop_map(|(node, image, phase)| Step::Report(node, image, phase)),
        1 => index().prop_map(Step::Node),
        6 => index().prop_map(Step::PlanJob),
        3 => index().prop_map(Step::PlanNode),
        1 => (0_i64..700).prop_map(Step::Pass),
    ];
    vec(step, 1..60)
}

fn parallelism(job: &Value) -> usize {
    let parallelism = job["spec"]["parallelism"].as_u64().unwrap();
    usize::try_from(parallelism).unwrap()
}

/// Carries a plan of a job out: it may ask only as many nodes as there is room for.
fn run_job(world: &mut World, name: &str) {
    let before = world.active(name);
    let plan = world.plan_job(name);
    world.execute(&plan);
    if world.the_job(name).is_null() {
        return;
    }
    let after = world.active(name);
    let asked = after.iter().filter(|node| !before.contains(node)).count();
    let limit = parallelism(world.the_job(name)).max(before.len());
    assert!(asked == 0 || after.len() <= limit, "{after:?} pull for {name}");
}

/// The tag of a user stays as it is.
fn assert_foreign_tag(world: &World) {
    for node in world.all(kruise_api::nodeimage::RESOURCE) {
        let foreign = &node["spec"]["images"]["foreign"];
        assert!(foreign.is_null() || foreign["tags"][0]["newer"] == 1, "{node}");
    }
}

fn happen(world: &mut World, step: &Step) {
    match step {
        Step::Job(name, image, parallelism, never, secret) => {
            let name = name.get(&JOBS);
            if world.the_job(name).is_null() {
                let kind = if *never { "Never" } else { "Always" };
                let secrets: &[&str] = if *secret { &["reg"] } else { &[] };
                world.job(
                    name,
                    &json!({"image": image.get(&["app:1", "app:2", "db:1"]), "parallelism": parallelism,
                        "pullSecrets": secrets, "completionPolicy": {"type": kind}}),
                );
            }
        }
        Step::Delete(name) => {
            let name = name.get(&JOBS);
            let job = world.the_job(name);
            if !job.is_null() && job["metadata"]["deletionTimestamp"].is_null() {
                world.delete(kruise_api::imagepulljob::RESOURCE, "shop", name);
            }
        }
        Step::Edit(name, parallelism) => {
            let name = name.get(&JOBS);
            if !world.the_job(name).is_null() {
                let change = json!({"spec": {"parallelism": parallelism}});
                world.edit(kruise_api::imagepulljob::RESOURCE, "shop", name, &change);
            }
        }
        Step::Report(node, image, phase) => {
            let (node, image) = (node.get(&NODES), image.get(&["app:1", "app:2", "db:1"]));
            let (name, tag) = image.split_once(':').unwrap();
            let tags = &world.image(node)["spec"]["images"][name]["tags"];
            let is_listed = tags
                .as_array()
                .is_some_and(|tags| tags.iter().any(|one| one["tag"] == *tag));
            if is_listed {
                let phase = phase.get(&["Waiting", "Pulling", "Succeeded", "Failed"]);
                world.report(node, image, phase);
            }
        }
        Step::Node(node) => {
            let node = node.get(&NODES);
            if world.get(ResourceId::NODES, "", node).is_some() {
                world.delete(ResourceId::NODES, "", node);
            } else if world.image(node).is_null() {
                world.node(node);
            }
        }
        Step::PlanJob(name) => {
            let name = name.get(&JOBS);
            if !world.the_job(name).is_null() {
                run_job(world, name);
            }
        }
        Step::PlanNode(node) => {
            let node = node.get(&NODES);
            let plan = world.plan_node(node);
            world.execute(&plan);
        }
        Step::Pass(seconds) => world.pass(*seconds),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn limits_hold_at_every_write_and_nothing_is_left_behind(steps in steps()) {
        let mut world = World::new();
        world.secret("shop", "reg", "a");
        for node in NODES {
            world.node(node);
        }
        let foreign = json!({"tags": [{"tag": "1", "createdAt": "2026-01-01T00:59:00Z", "newer": 1}]});
        world.edit(kruise_api::nodeimage::RESOURCE, "", "n1", &json!({"spec": {"images": {"foreign": foreign}}}));
        for step in &steps {
            happen(&mut world, step);
            assert_foreign_tag(&world);
        }
        world.settle();
        world.restart();
        prop_assert_eq!(world.settle(), 0, "the controllers rest");
        for name in world.names(kruise_api::imagepulljob::RESOURCE) {
            world.delete(kruise_api::imagepulljob::RESOURCE, "shop", &name);
        }
        world.settle();
        prop_assert!(world.names(kruise_api::imagepulljob::RESOURCE).is_empty());
        for node in world.all(kruise_api::nodeimage::RESOURCE) {
            let images = node["spec"]["images"].as_object();
            let left = images.into_iter().flatten().filter(|(name, _)| *name != "foreign");
            prop_assert_eq!(left.count(), 0, "{}", node);
        }
        let copies = world.all(ResourceId::SECRETS).filter(|secret| secret["metadata"]["namespace"] == AGENT);
        prop_assert_eq!(copies.count(), 0);
    }
}
