//! What is wanted once agrees with one thing that is done.

use super::*;

/// Pods of one revision that are equal.
fn pods<const N: usize>(names: [&str; N]) -> [Value; N] {
    names.map(|name| pod(name, "1", "web:1"))
}

fn deleted(pod: &Value) -> Option<Seen> {
    act(Some(pod), &deleting(pod.clone()))
}

/// How many were deleted as planned, and how many differ.
fn deletions(scene: &Scene) -> (usize, usize) {
    (scene.tally().deleted, scene.differences().len())
}

#[test]
fn one_deletion_is_wanted_and_of_three_of_equal_pods_one_agrees() {
    let [a, b, c] = pods(["a", "b", "c"]);
    let planned = wanted(&[&a, &b, &c], vec![deletes("a")]);
    let mut scene = Scene::new();
    scene.planned(planned.clone());
    scene.seen(&planned, deleted(&b));
    scene.seen(&[], deleted(&a));
    scene.seen(&[], deleted(&c));
    assert_eq!(deletions(&scene), (1, 2));
    // A plan of the state after them wants nothing, and still nothing agrees.
    scene.planned(Vec::new());
    scene.seen(&[], deleted(&c));
    assert_eq!(deletions(&scene), (1, 3));
}

#[test]
fn a_plan_that_wants_three_agrees_with_three_whatever_plans_in_between_want() {
    let [a, b, c, d] = pods(["a", "b", "c", "d"]);
    let all = [&a, &b, &c, &d];
    let planned = wanted(&all, ["a", "b", "c"].map(deletes).into());
    for ended in [false, true] {
        let mut scene = Scene::new();
        scene.planned(planned.clone());
        if ended {
            scene.planned(Vec::new());
        }
        for pod in all {
            scene.seen(&[], deleted(pod));
        }
        assert_eq!(deletions(&scene), (3, 1), "ended: {ended}");
    }
}

#[test]
fn new_pods_of_a_revision_agree_as_often_as_a_plan_wants_them() {
    let mut scene = Scene::new();
    scene.planned(wanted(&[], vec![creates("web-a", "2"), creates("web-b", "2")]));
    for name in ["web-x", "web-y", "web-z"] {
        scene.seen(&[], act(None, &pod(name, "2", "web:2")));
    }
    assert_eq!((scene.tally().created, scene.differences().len()), (2, 1));
}

#[test]
fn a_newer_plan_renews_what_it_wants_again_and_adds_nothing_to_it() {
    let [a, b, c] = pods(["a", "b", "c"]);
    let planned = || wanted(&[&a, &b, &c], vec![deletes("c")]);
    let mut scene = Scene::new();
    for wishes in [planned(), Vec::new(), planned(), Vec::new()] {
        scene.planned(wishes);
    }
    scene.seen(&[], deleted(&a));
    scene.seen(&[], deleted(&b));
    assert_eq!(deletions(&scene), (1, 1), "wanted twice, but never two");
    let mut scene = Scene::new();
    scene.planned(planned());
    scene.seen(&[], deleted(&a));
    scene.planned(planned());
    scene.seen(&[], deleted(&b));
    assert_eq!(
        deletions(&scene),
        (2, 0),
        "the second plan was made after the first deletion"
    );
}

#[test]
fn what_the_plan_of_the_state_before_has_uses_up_what_plans_want_for_an_equal_pod() {
    let [a, b] = pods(["a", "b"]);
    let mut scene = Scene::new();
    scene.planned(wanted(&[&a, &b], vec![deletes("a")]));
    scene.seen(&wanted(&[&a, &b], vec![deletes("b")]), deleted(&b));
    scene.seen(&[], deleted(&a));
    assert_eq!(deletions(&scene), (1, 1));
}

#[test]
fn the_wish_for_the_very_pod_is_used_up_before_that_for_an_equal_one() {
    let [a, b] = pods(["a", "b"]);
    let unready = with(b.clone(), "/status/conditions", json!([]));
    let mut scene = Scene::new();
    scene.planned(wanted(&[&a, &b], vec![deletes("b"), deletes("a")]));
    scene.seen(&[], deleted(&a));
    // It has become unequal meanwhile.
    scene.seen(&[], deleted(&unready));
    assert_eq!(deletions(&scene), (2, 0));
}

#[test]
fn each_part_of_an_update_is_used_up_by_itself_and_for_the_pod_that_got_the_first() {
    let [a, b] = pods(["a", "b"]);
    let labelled = |name| pod(name, "2", "web:1");
    let new = |name| pod(name, "2", "web:2");
    let planned = wanted(&[&a, &b], vec![updates("a", "2", "web:2")]);
    let scene = || {
        let mut scene = Scene::new();
        scene.planned(planned.clone());
        scene.seen(&[], act(Some(&b), &labelled("b")));
        scene
    };
    let counts = |scene: &Scene| (scene.tally().updated, scene.differences().len());
    let mut same = scene();
    same.seen(&[], act(Some(&labelled("b")), &new("b")));
    assert_eq!(counts(&same), (2, 0));
    same.seen(&[], act(Some(&a), &new("a")));
    assert_eq!(counts(&same), (2, 1), "all of it is used up");
    let mut other = scene();
    other.seen(&[], act(Some(&labelled("a")), &new("a")));
    assert_eq!(counts(&other), (1, 1), "the second part is that of another pod");
}

#[test]
fn what_begins_with_a_first_step_agrees_once() {
    let [a, b] = pods(["a", "b"]);
    let wishes = || wanted(&[&a, &b], vec![updates("a", "2", "web:2")]);
    let mut scene = Scene::new();
    scene.planned(wishes());
    scene.begins("a", 40, wishes());
    scene.planned(Vec::new());
    scene.seen(&[], act(Some(&a), &pod("a", "2", "web:2")));
    scene.seen(&[], act(Some(&b), &pod("b", "2", "web:2")));
    assert_eq!((scene.tally().updated, scene.differences().len()), (1, 1));
}

#[test]
fn what_plans_no_longer_want_is_over_in_time_even_if_none_is_made_since() {
    let [a] = pods(["a"]);
    for (pause, differs) in [(GRACE, false), (GRACE + Duration::from_secs(1), true)] {
        let mut scene = Scene::new();
        scene.planned(wanted(&[&a], vec![deletes("a")]));
        scene.planned(Vec::new());
        scene.second = pause.as_secs();
        scene.seen(&[], deleted(&a));
        assert_eq!(!scene.differences().is_empty(), differs, "{pause:?}");
    }
}

#[test]
fn an_eviction_uses_up_the_wish_for_its_pod() {
    let [a, b] = pods(["a", "b"]);
    let evicted = with(
        deleting(a.clone()),
        "/status/conditions",
        json!([{"type": "DisruptionTarget", "status": "True"}]),
    );
    let mut scene = Scene::new();
    scene.planned(wanted(&[&a, &b], vec![deletes("a")]));
    scene.seen(&[], act(Some(&a), &evicted));
    scene.seen(&[], deleted(&b));
    assert_eq!((scene.tally().others, deletions(&scene)), (1, (0, 1)));
}

#[test]
fn of_more_differences_than_are_listed_the_rest_is_counted() {
    let mut scene = Scene::new();
    for index in 0..1_003 {
        scene.seen(&[], act(None, &pod(&format!("web-{index}"), "2", "web:2")));
    }
    let report = scene.report();
    assert_eq!((report.differences.len(), report.more), (1_000, 3));
    let printed = report.to_string();
    let first = printed.lines().next().unwrap();
    assert!(
        first.ends_with(" 0 agree, 1003 differ, 0 not compared"),
        "{first}"
    );
    assert_eq!(printed.lines().last(), Some("and 3 more differences"));
}

#[test]
fn of_what_earlier_plans_wanted_the_newest_is_kept() {
    let mut scene = Scene::new();
    for round in 0..1_001 {
        scene.planned(wanted(&[], vec![creates_ordinal(&format!("web-{round}"), "2")]));
    }
    scene.planned(Vec::new());
    scene.seen(&[], act(None, &pod("web-0", "2", "web:2")));
    scene.seen(&[], act(None, &pod("web-1", "2", "web:2")));
    assert_eq!((scene.tally().created, scene.differences().len()), (1, 1));
}
