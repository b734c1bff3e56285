//! Pods that cannot be read or annotated: they keep no others from their subset, and each is tried again after a pause
//! of its own.

use kruise_plan_kit::Explain;
use serde_json::Value;

use crate::{
    existing::running,
    world::{World, subset},
};

/// More than one reconcile reads.
const MANY: usize = 33;

/// Forty pods that no subset has, though one fits.
fn bare() -> World {
    running(Value::Array(vec![subset("a", Value::Null)]), &["a1"; MANY + 7])
}

fn first(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("web-{number}"))
}

/// Runs the controller for so many seconds. Returns how many pods were read.
fn run(world: &mut World, seconds: i64) -> usize {
    let end = world.now + jiff::SignedDuration::from_secs(seconds);
    world.reads = 0;
    for _ in 0..1000 {
        let plan = world.plan(Explain::No);
        let after = plan.requeue;
        if !world.execute(plan) {
            let after = after.map(|after| i64::try_from(after.as_millis().div_ceil(1000)).unwrap());
            let after = after.filter(|after| world.now + jiff::SignedDuration::from_secs(*after) <= end);
            let Some(after) = after else {
                world.now = end;
                return world.reads;
            };
            world.pass(after);
        }
    }
    panic!("the controller never rests: {} reads", world.reads);
}

fn has_its_subset(world: &World, pod: usize) -> bool {
    world.subset_of(&format!("web-{pod}")).is_some()
}

#[test]
fn many_pods_that_cannot_be_read_keep_no_others_waiting_and_are_not_polled() {
    let mut world = bare();
    world.hides = first(MANY).collect();
    run(&mut world, 10);
    assert!((MANY..MANY + 7).all(|pod| has_its_subset(&world, pod)));
    // Pauses of 16, 32, 64, 128, 256 and 300 seconds.
    let reads = run(&mut world, 1000);
    assert!(reads <= 7 * MANY, "{reads} reads");
    world.hides.clear();
    run(&mut world, 310);
    assert!((0..MANY).all(|pod| has_its_subset(&world, pod)));
}

#[test]
fn many_pods_that_refuse_their_patch_keep_no_others_waiting_and_are_not_polled() {
    let mut world = bare();
    world.refuses = first(MANY).collect();
    run(&mut world, 10);
    assert!((MANY..MANY + 7).all(|pod| has_its_subset(&world, pod)));
    let reports = world.reports.len();
    let reads = run(&mut world, 1000);
    assert!(reads <= 7 * MANY, "{reads} reads");
    assert_eq!(world.reports.len(), reports, "attempts do not change the status");
    assert_eq!(world.counts(), "a 7/-1");
    world.refuses.clear();
    run(&mut world, 310);
    assert_eq!(world.counts(), "a 40/-1");
}
