//! Copies that cannot be read or written: they keep no others waiting, and each is tried again after a pause of its
//! own.

use std::time::Duration;

use kruise_plan_kit::Explain;
use serde_json::{Value, json};

use crate::{
    scenarios::{distributed, everywhere},
    world::World,
};

/// As many namespaces as this, all with a copy, which a restarted manager knows nothing of.
fn many(count: usize) -> World {
    let names: Vec<String> = (0..count).map(|number| format!("n{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(&names);
    world.distribute("pull", &json!({}), &everywhere());
    world.settle();
    world.restart();
    world
}

/// The namespaces of the first so many.
fn first(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("n{number:03}"))
}

/// Runs the controller for so many seconds. Returns how many copies were read and how many writes were tried.
fn run(world: &mut World, seconds: i64) -> (usize, usize) {
    let end = world.now + jiff::SignedDuration::from_secs(seconds);
    let mut tried = 0;
    world.reads.set(0);
    for _ in 0..1000 {
        let plan = world.plan("pull", Explain::No);
        tried += plan.writes.len();
        let after = plan.requeue;
        let is_busy = world.execute("pull", plan);
        if !is_busy {
            let after = after.map(|after| i64::try_from(after.as_millis().div_ceil(1000)).unwrap());
            let after = after.filter(|after| world.now + jiff::SignedDuration::from_secs(*after) <= end);
            let Some(after) = after else {
                world.now = end;
                return (world.reads.get(), tried);
            };
            world.pass(after);
        }
    }
    panic!(
        "the controller never rests: {} reads, {tried} writes",
        world.reads.get()
    );
}

#[test]
fn a_refusal_in_one_namespace_holds_back_no_other_and_is_retried() {
    let mut world = World::new(&["a", "b", "c"]);
    world
        .refuses
        .insert("b".into(), "exceeded quota: no-secrets, 100%".into());
    world.distribute("pull", &json!({}), &everywhere());
    world.settle();
    assert_eq!(world.copied("pull"), "a c");
    assert_eq!(world.report("pull"), "3 2 1, CreateResourceFailed: b");
    assert_eq!(
        world.reason("pull", "CreateResourceFailed"),
        "exceeded quota: no-secrets, 100%"
    );
    let event =
        "FailedDistribute: Error creating Secret reg in namespace b: exceeded quota: no-secrets, 100%";
    assert!(world.events.contains(&event.to_owned()), "{:?}", world.events);
    let plan = world.plan("pull", Explain::No);
    assert_eq!(
        (plan.writes.len(), plan.requeue),
        (0, Some(Duration::from_secs(1)))
    );
    world.pass(1);
    let plan = world.plan("pull", Explain::No);
    assert_eq!(plan.writes.len(), 1);
    world.refuses.clear();
    world.pass(59);
    world.settle();
    assert_eq!(world.report("pull"), "3 3 0");
    let times: Vec<&Value> = world.status("pull")["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| &condition["lastTransitionTime"])
        .collect();
    assert_eq!(*times[1], "2026-01-01T01:01:00Z", "its status has changed");
    assert_eq!(*times[0], "2026-01-01T01:00:00Z", "that of others has not");
}

#[test]
fn a_copy_that_cannot_be_read_is_reported_and_read_again_later() {
    let mut world = distributed();
    world.restart();
    world.hides.insert("b".into(), "the server is overloaded".into());
    let plan = world.plan("pull", Explain::No);
    assert_eq!(plan.requeue, Some(Duration::from_secs(1)));
    world.execute("pull", plan);
    assert_eq!(world.report("pull"), "3 2 1, GetResourceFailed: b");
    assert_eq!(
        world.reason("pull", "GetResourceFailed"),
        "the server is overloaded"
    );
    world.pass(1);
    assert_eq!(
        world.plan("pull", Explain::No).requeue,
        Some(Duration::from_secs(2))
    );
    world.hides.clear();
    world.pass(2);
    world.settle();
    assert_eq!(world.report("pull"), "3 3 0");
}

/// More than one reconcile reads.
const MANY: usize = 33;

#[test]
fn many_copies_that_refuse_their_patch_keep_no_others_from_theirs() {
    let mut world = many(MANY + 7);
    for namespace in first(MANY) {
        world.refuses.insert(namespace, "denied by policy".into());
    }
    world.change(
        "pull",
        &json!({"spec": {"resource": {"data": {"token": "bmV3"}}}}),
    );
    let cost = run(&mut world, 0);
    assert_eq!(cost, (MANY + 7, MANY + 7), "each is read and written once");
    assert_eq!(world.copy("n039")["data"]["token"], "bmV3");
    let report = world.report("pull");
    assert!(
        report.starts_with("40 7 33, UpdateResourceFailed: n000 n001 "),
        "{report}"
    );
    // A pause of 1, 2, 4, 8, 16 and 32 seconds, and so at most six more attempts in a minute.
    assert_eq!(run(&mut world, 60), (5 * MANY, 5 * MANY));
    assert_eq!(run(&mut world, 3600).1, 14 * MANY, "every five minutes at last");
    world.refuses.clear();
    run(&mut world, 300);
    assert_eq!(world.report("pull"), "40 40 0");
}

#[test]
fn other_contents_are_tried_at_once_where_earlier_ones_were_refused() {
    let mut world = many(3);
    world.refuses.insert("n000".into(), "denied by policy".into());
    let token = |token: &str| json!({"spec": {"resource": {"data": {"token": token}}}});
    world.change("pull", &token("bmV3"));
    run(&mut world, 100);
    world.refuses.clear();
    world.change("pull", &token("bmV3ZXI="));
    assert_eq!(run(&mut world, 0).1, 3);
    assert_eq!(world.report("pull"), "3 3 0");
}

#[test]
fn many_namespaces_that_refuse_a_new_copy_are_tried_less_and_less_often() {
    let mut world = World::new(&[]);
    for namespace in first(MANY + 7) {
        world.namespace(&namespace, "");
    }
    for namespace in first(MANY) {
        world.refuses.insert(namespace, "exceeded quota".into());
    }
    world.distribute("pull", &json!({}), &everywhere());
    assert_eq!(run(&mut world, 0).1, MANY + 7);
    assert_eq!(run(&mut world, 60).1, 5 * MANY);
    // A new namespace does not wait for them, and is no reason to try them again.
    world.namespace("new", "");
    assert_eq!(run(&mut world, 0).1, 1);
}

#[test]
fn many_copies_that_cannot_be_read_keep_no_others_from_theirs() {
    let mut world = many(MANY + 7);
    for namespace in first(MANY) {
        world.hides.insert(namespace, "timeout".into());
    }
    world.change(
        "pull",
        &json!({"spec": {"resource": {"data": {"token": "bmV3"}}}}),
    );
    let (reads, written) = run(&mut world, 1);
    assert_eq!(written, 7);
    assert!(reads <= 2 * MANY + 7, "{reads}");
    let (reads, _) = run(&mut world, 60);
    assert!(reads <= 6 * MANY, "{reads}");
    world.hides.clear();
    run(&mut world, 300);
    assert_eq!(world.report("pull"), "40 40 0");
}

#[test]
fn an_explanation_says_when_a_refused_copy_is_written_again() {
    let mut world = distributed();
    world.refuses.insert("b".into(), "denied by policy".into());
    world.change(
        "pull",
        &json!({"spec": {"resource": {"data": {"token": "bmV3"}}}}),
    );
    run(&mut world, 1);
    let plan = world.plan("pull", Explain::Yes);
    let mut lines = plan.why.iter().filter(|why| why.namespace() == Some("b"));
    assert_eq!(
        lines.next().unwrap().text,
        "is written again in 2 s: denied by policy"
    );
}
