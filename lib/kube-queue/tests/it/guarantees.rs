//! The guarantees of the queue, one test each.

use std::time::Duration;

use kube_queue::{Config, Priority, Queue};
use proptest::prelude::*;

use Priority::{Initial, Live};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Keys are `namespace/name`.
fn queue() -> Queue<String> {
    Queue::new(Config::CLIENT_GO, |key: &String| {
        key.split('/').next().unwrap_or_default()
    })
}

fn pop(queue: &mut Queue<String>, now: u64) -> Option<String> {
    queue.pop(ms(now)).map(|popped| popped.key)
}

#[test]
fn a_key_pushed_while_processed_is_ready_again_after_done() {
    let mut queue = queue();
    queue.push("a/1".into(), Live, ms(0));
    assert_eq!(pop(&mut queue, 0).as_deref(), Some("a/1"));
    queue.push("a/1".into(), Live, ms(1));
    queue.push("a/1".into(), Initial, ms(2));
    assert_eq!((pop(&mut queue, 3), queue.next_wake(ms(3))), (None, None));
    assert_eq!(
        queue.done(&"a/1".into(), ms(10)).map(|done| done.worked),
        Some(ms(10))
    );
    let again = queue.pop(ms(12)).unwrap();
    assert_eq!((again.priority, again.waited), (Live, ms(11)));
    assert_eq!(
        queue.done(&"a/1".into(), ms(12)).map(|done| done.worked),
        Some(ms(0))
    );
    assert_eq!(
        (queue.done(&"a/1".into(), ms(12)), pop(&mut queue, 12)),
        (None, None)
    );
}

#[test]
fn the_earliest_delay_and_the_highest_priority_win() {
    let mut queue = queue();
    queue.push_after("a/1".into(), Live, ms(100), ms(0));
    queue.push_after("a/1".into(), Initial, ms(30), ms(0));
    queue.push_after("a/1".into(), Initial, ms(500), ms(0));
    assert_eq!(queue.next_wake(ms(10)), Some(ms(20)));
    assert_eq!(pop(&mut queue, 29), None);
    assert_eq!(queue.pop(ms(30)).map(|popped| popped.priority), Some(Live));
    assert_eq!(queue.delayed(), 0);
}

#[test]
fn a_push_does_not_wait_for_the_backoff_of_its_key() {
    let mut queue = queue();
    assert_eq!(queue.push_rate_limited("a/1".into(), Live, ms(0)), ms(5));
    queue.push("a/1".into(), Live, ms(1));
    assert_eq!(pop(&mut queue, 1).as_deref(), Some("a/1"));
    queue.done(&"a/1".into(), ms(2));
    assert_eq!(queue.push_rate_limited("a/1".into(), Live, ms(2)), ms(10));
    queue.forget(&"a/1".into());
    assert_eq!(queue.failures(&"a/1".into()), 0);
    assert_eq!(
        queue.next_wake(ms(2)),
        Some(ms(10)),
        "forgetting failures drops no work"
    );
}

#[test]
fn the_shared_bucket_delays_many_failing_keys() {
    let mut queue = queue();
    let delays: Vec<_> = (0..102)
        .map(|n| queue.push_rate_limited(format!("a/{n}"), Live, ms(0)).as_millis())
        .collect();
    assert!(delays[..100].iter().all(|delay| *delay == 5));
    assert_eq!(delays[100..], [100, 200]);
}

#[test]
fn a_busy_namespace_does_not_delay_another() {
    let mut queue = queue();
    for n in 0..1000 {
        queue.push(format!("busy/{n}"), Live, ms(0));
    }
    queue.push("quiet/1".into(), Live, ms(0));
    let first_two = [pop(&mut queue, 0), pop(&mut queue, 0)].map(Option::unwrap);
    assert_eq!(first_two, ["busy/0", "quiet/1"]);
}

#[test]
fn initial_keys_have_every_ninth_turn_while_live_keys_are_ready() {
    let mut queue = queue();
    for n in 0..3 {
        queue.push(format!("old/{n}"), Initial, ms(0));
    }
    let mut initial_turns = Vec::new();
    for turn in 1..=40 {
        queue.push(format!("new/{turn}"), Live, ms(turn));
        let key = pop(&mut queue, turn).unwrap();
        if key.starts_with("old") {
            initial_turns.push(turn);
        }
        queue.done(&key, ms(turn));
    }
    assert_eq!(initial_turns, [9, 18, 27]);
}

#[test]
fn an_initial_key_that_changes_becomes_live_and_keeps_its_arrival() {
    let mut queue = queue();
    for key in ["a/old", "a/older"] {
        queue.push(key.into(), Initial, ms(0));
    }
    queue.push("a/new".into(), Live, ms(1));
    queue.push("a/older".into(), Live, ms(2));
    let order: Vec<_> = std::iter::from_fn(|| pop(&mut queue, 3)).collect();
    assert_eq!(order, ["a/older", "a/new", "a/old"]);
    assert_eq!(queue.counters().adds, 3);
}

#[test]
fn a_window_starts_when_the_key_is_due_not_when_the_driver_calls() {
    let mut queue = queue();
    queue.push_coalesced("a/1".into(), Live, ms(50), ms(0));
    assert!(pop(&mut queue, 0).is_some() && queue.done(&"a/1".into(), ms(0)).is_some());
    queue.push_coalesced("a/1".into(), Live, ms(50), ms(10));
    assert_eq!(queue.pop(ms(80)).map(|popped| popped.waited), Some(ms(30)));
    queue.done(&"a/1".into(), ms(80));
    queue.push_coalesced("a/1".into(), Live, ms(50), ms(90));
    assert_eq!(queue.next_wake(ms(90)), Some(ms(10)));
}

#[test]
fn an_earlier_time_counts_as_the_latest_one() {
    let mut queue = queue();
    queue.push("a/1".into(), Live, ms(100));
    assert_eq!(queue.pop(ms(50)).map(|popped| popped.waited), Some(ms(0)));
    queue.push_after("a/2".into(), Live, ms(10), ms(0));
    assert_eq!(
        (queue.next_wake(ms(0)), pop(&mut queue, 50)),
        (Some(ms(10)), None)
    );
    assert_eq!(pop(&mut queue, 110).as_deref(), Some("a/2"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn coalesced_keys_run_at_once_when_quiet_and_once_per_window_when_busy(
        gaps in prop::collection::vec(0..120u64, 1..60),
        work in 0..30u64,
    ) {
        let mut queue = queue();
        let mut pushes = Vec::new();
        let mut time = 1000;
        for gap in gaps {
            time += gap;
            pushes.push(time);
        }
        // One worker without pauses: it starts a ready key at once and takes `work` milliseconds.
        let (mut starts, mut busy_until) = (Vec::new(), None);
        for now in 1000..time + 200 {
            if busy_until == Some(now) {
                queue.done(&"a/1".into(), ms(now)).unwrap();
                busy_until = None;
            }
            for _ in pushes.iter().filter(|push| **push == now) {
                queue.push_coalesced("a/1".into(), Live, ms(50), ms(now));
            }
            if queue.pop(ms(now)).is_some() {
                starts.push(now);
                busy_until = Some(now + work).filter(|_| work > 0);
                if work == 0 {
                    queue.done(&"a/1".into(), ms(now)).unwrap();
                }
            }
        }
        for pair in starts.windows(2) {
            prop_assert!(pair[1] - pair[0] >= 50, "{starts:?}");
        }
        for push in &pushes {
            let start = starts.iter().find(|start| *start >= push);
            prop_assert!(start.is_some_and(|start| start - push <= 50), "{push} of {pushes:?}: {starts:?}");
            let quiet = starts.iter().all(|start| start + 50 <= *push || start >= push);
            prop_assert!(!quiet || start == Some(push), "{push} was quiet: {starts:?}");
        }
    }

    #[test]
    fn the_order_of_pops_is_first_in_first_out_within_a_namespace(
        keys in prop::collection::vec((0..4u8, 0..50u8), 1..80),
    ) {
        let mut queue = queue();
        let mut expected: Vec<String> = Vec::new();
        for (at, (namespace, name)) in (0..).zip(&keys) {
            let key = format!("{namespace}/{name}");
            queue.push(key.clone(), Live, ms(at));
            if !expected.contains(&key) {
                expected.push(key);
            }
        }
        let popped: Vec<_> = std::iter::from_fn(|| pop(&mut queue, 1000)).collect();
        for namespace in 0..4u8 {
            let of = |keys: &[String]| {
                keys.iter().filter(|key| key.starts_with(&format!("{namespace}/"))).cloned().collect::<Vec<_>>()
            };
            prop_assert_eq!(of(&popped), of(&expected));
        }
        prop_assert_eq!(popped.len(), expected.len());
    }
}
