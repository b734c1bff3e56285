//! Sidecars that are upgraded by starting their other container first.

use kruise_plan_kit::sidecars::names;
use serde_json::json;

use crate::world::{World, container, hot};

fn world() -> World {
    let mut world = World::new();
    world.edit(|spec| spec["containers"] = json!([hot("mesh", "mesh:1", "mesh:empty")]));
    world.add("p0");
    world.settle();
    world
}

fn twins(world: &World) -> [String; 2] {
    [world.image_of("p0", "mesh-1"), world.image_of("p0", "mesh-2")]
}

fn version(world: &World, prefix: &str, twin: u8) -> String {
    world.annotation("p0", &format!("{prefix}.sidecarset.kruise.io/mesh-{twin}"))
}

#[test]
fn the_idle_twin_takes_over_and_the_other_one_idles_there_and_back() {
    let mut world = world();
    world.image("mesh:2");
    let set_version = world.set["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    world.reconcile();
    assert_eq!(twins(&world), ["mesh:1", "mesh:2"]);
    assert_eq!(world.annotation("p0", names::WORKING), r#"{"mesh":"mesh-2"}"#);
    assert_eq!(
        [version(&world, "version", 1), version(&world, "version", 2)],
        ["1", &set_version]
    );
    assert_eq!(
        [version(&world, "versionalt", 1), version(&world, "versionalt", 2)],
        [&set_version, "1"]
    );
    assert!(world.reconcile().is_empty(), "the new one does not run yet");
    world.run("p0");
    let plan = world.plan();
    let done = plan.writes[0].steps[0].done.clone().unwrap();
    assert!(
        done.reason == "ResetContainerSucceed"
            && done.message.contains("reset sidecar container image empty")
    );
    world.carry_out(&plan);
    assert_eq!(twins(&world), ["mesh:empty", "mesh:2"]);
    assert_eq!(
        [version(&world, "version", 1), version(&world, "versionalt", 2)],
        ["0", "0"]
    );
    world.run("p0");
    world.settle();
    assert_eq!(world.set["status"]["updatedReadyPods"], 1);

    world.image("mesh:3");
    world.settle();
    assert_eq!(twins(&world), ["mesh:3", "mesh:empty"]);
    assert_eq!(world.annotation("p0", names::WORKING), r#"{"mesh":"mesh-1"}"#);
    assert_eq!(world.set["status"]["updatedReadyPods"], 1);
}

#[test]
fn a_bad_image_never_restarts_the_twin_that_works() {
    let mut world = world();
    world.image("bad:2");
    world.settle();
    assert_eq!(twins(&world), ["mesh:1", "bad:2"]);
    world.image("mesh:3");
    world.settle();
    assert_eq!(twins(&world), ["mesh:empty", "mesh:3"]);
    let statuses = world.pods["p0"]["status"]["containerStatuses"]
        .as_array()
        .unwrap();
    assert!(statuses.iter().all(|status| status["ready"] == true));
}

#[test]
fn going_back_from_a_bad_image_makes_the_serving_twin_the_working_one_again() {
    let mut world = world();
    world.image("bad:2");
    world.settle();
    world.image("mesh:1");
    world.settle();
    assert_eq!(twins(&world), ["mesh:1", "mesh:empty"]);
    assert_eq!(world.annotation("p0", names::WORKING), r#"{"mesh":"mesh-1"}"#);
    assert_eq!(
        [version(&world, "version", 2), version(&world, "versionalt", 1)],
        ["0", "0"]
    );
    assert_eq!(world.set["status"]["updatedReadyPods"], 1);
}

#[test]
fn a_pause_holds_the_end_of_a_hot_upgrade_too() {
    let mut world = world();
    world.image("mesh:2");
    world.reconcile();
    world.strategy("paused", json!(true));
    world.run("p0");
    assert!(world.reconcile().is_empty());
    assert_eq!(twins(&world), ["mesh:1", "mesh:2"]);
    world.strategy("paused", json!(false));
    world.settle();
    assert_eq!(twins(&world), ["mesh:empty", "mesh:2"]);
}

#[test]
fn a_pod_in_the_middle_of_a_hot_upgrade_is_not_ready_and_takes_up_the_budget() {
    let mut world = world();
    world.add("p1");
    world.settle();
    world.image("mesh:2");
    world.reconcile();
    let first = [
        world.with_image("mesh-1", "mesh:2"),
        world.with_image("mesh-2", "mesh:2"),
    ]
    .concat()
    .remove(0);
    world.run(&first);
    let plan = world.plan();
    let intents: Vec<String> = plan
        .writes
        .iter()
        .map(|object| object.steps[0].write.to_string())
        .collect();
    assert_eq!(
        intents,
        [format!("empty-twin pods/{first}")],
        "the other one waits until both twins are settled"
    );
    world.settle();
    assert_eq!(world.set["status"]["updatedReadyPods"], 2);
}

#[test]
fn where_the_pod_is_not_ready_for_its_own_reasons_the_upgrade_ends_all_the_same() {
    let mut world = world();
    world.image("mesh:2");
    world.reconcile();
    world.run("p0");
    let pod = world.pods.get_mut("p0").unwrap();
    pod["status"]["conditions"][0]["status"] = json!("False");
    assert_eq!(
        world.reconcile(),
        ["empty-twin p0"],
        "its containers are all ready"
    );
}

#[test]
fn a_pod_whose_old_twin_is_told_to_idle_takes_up_the_budget_though_it_is_not_to_follow() {
    let mut world = world();
    world.add("p1");
    for (pod, turn) in [("p0", "first"), ("p1", "second")] {
        world.pods.get_mut(pod).unwrap()["metadata"]["labels"]["turn"] = json!(turn);
    }
    world.settle();
    world.strategy("selector", json!({"matchLabels": {"turn": "first"}}));
    world.image("mesh:2");
    world.reconcile();
    world.run("p0");
    assert_eq!(twins(&world), ["mesh:1", "mesh:2"], "both twins serve");
    world.strategy("selector", json!({"matchLabels": {"turn": "second"}}));
    world.image("mesh:3");
    let plan = world.plan();
    let of_pods = plan.writes.iter().map(|object| object.steps[0].write.to_string());
    let of_pods: Vec<String> = of_pods.filter(|write| write.contains("pods/")).collect();
    assert_eq!(of_pods, ["empty-twin pods/p0"], "one may be out of service");
    world.carry_out(&plan);
    world.run("p0");
    world.settle();
    assert_eq!(world.with_image("mesh-2", "mesh:3"), ["p1"]);
    assert_eq!(twins(&world), ["mesh:empty", "mesh:2"], "it is not to follow");
}

#[test]
fn pods_under_another_upgrade_type_are_counted_and_explained_and_keep_no_others_waiting() {
    let cold = || container("log", "log:1");
    let hot = || hot("log", "log:1", "empty:1");
    for (before, after) in [(cold(), hot()), (hot(), cold())] {
        let mut world = World::settled(0);
        world.edit(|spec| spec["containers"] = json!([before]));
        for name in ["a", "b"] {
            world.add(name);
        }
        world.settle();
        // The set is created again, and pods come that it injects.
        world.edit(|spec| spec["containers"] = json!([after]));
        for name in ["c", "d"] {
            world.add(name);
        }
        // Not in service, which is no fault of the set.
        world.pods.get_mut("a").unwrap()["status"]["conditions"] =
            json!([{"type": "Ready", "status": "False"}]);
        world.settle();
        let status = &world.set["status"];
        let counts = ["matchedPods", "updatedPods"].map(|name| status[name].as_i64().unwrap());
        assert_eq!(counts, [4, 2], "{status}");
        let why = world.plan().why;
        let of_old = why
            .iter()
            .filter(|why| why.text.contains("under another upgradeType"));
        let about: Vec<&str> = of_old.map(|why| &*why.about).collect();
        assert_eq!(about, ["shop/a", "shop/b"]);
        world.image("log:2");
        world.settle();
        assert_eq!(world.set["status"]["updatedPods"], 2, "the others follow");
    }
}
