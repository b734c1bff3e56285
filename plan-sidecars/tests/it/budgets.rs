//! Upgrades under a PodUnavailableBudget.

use serde_json::json;

use crate::world::{World, hot};

/// Five pods under a budget that lets one of them go, of which so many are available, and a limit of the set's own that
/// lets all of them go.
fn world(available: i32) -> World {
    let mut world = World::settled(5);
    world.gates.updates = true;
    world.strategy("maxUnavailable", json!("100%"));
    world.settle();
    world.protect(&format!("web counted={available}/4/5"));
    world
}

fn of_pods(done: &[String]) -> Vec<&str> {
    let lines = done.iter().filter(|line| !line.starts_with("create-revision"));
    lines.map(String::as_str).collect()
}

#[test]
fn one_pod_is_upgraded_and_the_rest_wait_for_the_budget() {
    let mut world = world(5);
    world.image("bad:1");
    let done = world.reconcile();
    assert_eq!(
        of_pods(&done),
        ["charge-budget web", "tell-upgradable p0", "update-in-place p0"]
    );
    assert!(
        world.budgets["web"]["status"]["unavailablePods"]["p0"].is_string(),
        "{}",
        world.budgets["web"]
    );
    assert_eq!(world.budgets["web"]["status"]["unavailableAllowed"], 0);
    assert_eq!(
        world.why("shop/p1"),
        "held: PodUnavailableBudget web lets no more pods become unavailable now"
    );
    world.run("p0");
    world.protect("web counted=4/4/5");
    assert_eq!(
        of_pods(&world.reconcile()),
        [""; 0],
        "the broken pod takes up the budget"
    );
    assert_eq!(world.with_image("log", "bad:1"), ["p0"]);
}

#[test]
fn a_pod_that_is_broken_is_upgraded_free_of_charge() {
    let mut world = world(5);
    world.image("bad:1");
    world.reconcile();
    world.run("p0");
    world.protect("web counted=4/4/5");
    world.image("log:3");
    assert_eq!(of_pods(&world.reconcile()), ["update-in-place p0"]);
}

#[test]
fn an_upgrade_that_restarts_nothing_and_a_gate_that_is_off_cost_nothing() {
    let mut records_only = world(4);
    records_only.edit(|spec| {
        spec["containers"][0]["upgradeStrategy"] = json!({"upgradeType": "ColdUpgrade", "x": 1});
    });
    let charged = |world: &mut World| world.reconcile().contains(&"charge-budget web".to_owned());
    assert!(!charged(&mut records_only));
    let mut off = world(4);
    off.gates.updates = false;
    off.image("log:2");
    let done = off.reconcile();
    assert_eq!(of_pods(&done).len(), 10, "{done:?}");
}

#[test]
fn a_lost_race_for_the_budget_leaves_the_pod_alone() {
    let mut world = world(5);
    world.image("log:2");
    let plan = world.plan_and_learn();
    world.budgets.get_mut("web").unwrap()["metadata"]["resourceVersion"] = json!("8");
    let done = world.carry_out(&plan);
    assert_eq!(of_pods(&done), [""; 0]);
    assert_eq!(of_pods(&world.reconcile()).first(), Some(&"charge-budget web"));
}

#[test]
fn the_twin_that_is_to_idle_waits_for_the_budget() {
    let mut world = World::new();
    world.edit(|spec| spec["containers"] = json!([hot("mesh", "mesh:1", "mesh:empty")]));
    world.add("p0");
    world.settle();
    world.gates.updates = true;
    world.image("mesh:2");
    world.reconcile();
    world.run("p0");
    world.protect("web max=0 counted=1/1/1");
    assert_eq!(of_pods(&world.reconcile()), [""; 0]);
    assert!(world.why("shop/p0").contains("held: PodUnavailableBudget web"));
    world.protect("web max=1 counted=2/1/2");
    assert_eq!(
        of_pods(&world.reconcile()),
        ["charge-budget web", "empty-twin p0"]
    );
}
