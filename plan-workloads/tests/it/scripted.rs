//! Histories of one course each, under the same oracle as the random ones.

use std::collections::BTreeSet;

use serde_json::json;

use crate::properties::{Event, History, at_rest, run};

#[test]
fn a_second_change_does_not_end_the_first_one_early() {
    let all = Event::Plan(u32::MAX);
    let (spec, mut events) = at_rest("InPlaceIfPossible", (false, false, false, false));
    // The label changes while the new image is still being pulled; the pod is not ready before it runs.
    events.extend([
        Event::Image(1),
        all.clone(),
        Event::Annotation(1),
        all.clone(),
        all,
    ]);
    run(spec, &events);
}

#[test]
fn an_update_that_broke_off_after_it_asked_for_resources_gives_them_back() {
    let (spec, mut events) = at_rest("InPlaceIfPossible", (false, false, false, false));
    // The revision is made, the pod's containers are told, and the template goes back before the pod is.
    events.extend([Event::Cpu(2), Event::Plan(0b01_11), Event::Cpu(1)]);
    let mut history = History::new(spec);
    for event in &events {
        history.happen(event);
    }
    assert_eq!(history.world.resized.len(), 1);
    history.settle();
}

#[test]
fn a_rollback_that_broke_off_after_it_asked_for_resources_gives_them_back_each_time() {
    let (spec, events) = at_rest("InPlaceIfPossible", (false, false, false, false));
    let mut history = History::new(spec);
    for event in &events {
        history.happen(event);
    }
    // All pods came to the second amount in place.
    history.happen(&Event::Cpu(2));
    history.settle();
    for _ in 0..2 {
        for event in [Event::Cpu(1), Event::Plan(0b01_11), Event::Cpu(2)] {
            history.happen(&event);
        }
        let amounts = |history: &History| -> BTreeSet<String> {
            let pods = history.world.pods.values();
            pods.map(|pod| pod["spec"]["containers"][0]["resources"].to_string())
                .collect()
        };
        assert_eq!(amounts(&history).len(), 2, "one pod was asked to go back");
        history.settle();
        let wanted = history.world.set["spec"]["template"]["spec"]["containers"][0]["resources"].to_string();
        assert_eq!(amounts(&history), BTreeSet::from([wanted]));
    }
}

#[test]
fn a_pod_held_before_an_update_that_the_partition_took_back_returns_to_service() {
    let all = Event::Plan(u32::MAX);
    let (spec, mut events) = at_rest("InPlaceIfPossible", (false, true, false, true));
    events.extend([
        Event::Image(1),
        all.clone(),
        Event::Strategy("partition", json!(3)),
        all,
    ]);
    run(spec, &events);
}

#[test]
fn a_pod_held_before_an_update_that_became_impossible_returns_to_service() {
    let all = Event::Plan(u32::MAX);
    let (spec, mut events) = at_rest("InPlaceOnly", (false, true, false, true));
    events.extend([Event::Image(1), all.clone(), Event::Environment(1), all]);
    run(spec, &events);
}

#[test]
fn a_rollout_mends_a_set_whose_old_pods_all_crash_though_creation_is_limited() {
    for policy in ["ReCreate", "InPlaceIfPossible"] {
        let (mut spec, events) = at_rest(policy, (false, false, false, false));
        spec["scaleStrategy"] = json!({"maxUnavailable": 1});
        let mut history = History::new(spec);
        history.world.broken_image = Some("web:0".into());
        for event in &events {
            history.happen(event);
        }
        history.happen(&Event::Image(1));
        history.settle();
    }
}
