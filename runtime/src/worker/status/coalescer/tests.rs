use std::time::Duration;

use kruise_plan_kit::{StatusPatch, Target};
use kube_cache::Version;
use serde_json::json;

use super::{Coalescer, Written};

const MOST: usize = 8;
const KEY: &str = "n/web";

/// Computed from the object in this version.
fn patch(version: u64, ready: i32, urgent: bool) -> StatusPatch {
    let target = Target {
        resource: kruise_api::cloneset::RESOURCE,
        namespace: "n".into(),
        name: "web".into(),
    };
    StatusPatch {
        target,
        version: version.to_string(),
        patch: json!({"status": {"readyReplicas": ready}}),
        urgent,
    }
}

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

fn due(coalescer: &mut Coalescer<&str>, at: u64) -> Vec<StatusPatch> {
    let due = coalescer.due(ms(at), MOST);
    due.into_iter().map(|(_, patch)| patch).collect()
}

/// Sends the due patches. The server stores them with this version.
fn written(coalescer: &mut Coalescer<&'static str>, at: u64, version: u64) -> Vec<StatusPatch> {
    let due = due(coalescer, at);
    for _ in &due {
        coalescer.ended(&KEY, Written::Yes(Some(Version::new(version))));
    }
    due
}

#[test]
fn the_first_is_sent_at_once_and_later_ones_twice_a_second_with_the_last_value() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    assert_eq!(written(&mut coalescer, 0, 2), [patch(1, 1, false)]);
    coalescer.submit(&KEY, patch(2, 2, false), ms(0));
    coalescer.submit(&KEY, patch(2, 3, false), ms(0));
    assert_eq!(written(&mut coalescer, 499, 3), []);
    assert_eq!(coalescer.next(), Some(ms(500)));
    assert_eq!(written(&mut coalescer, 500, 3), [patch(2, 3, false)]);
}

#[test]
fn an_urgent_one_is_sent_after_a_tenth_of_a_second() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    written(&mut coalescer, 0, 2);
    coalescer.submit(&KEY, patch(2, 2, true), ms(0));
    assert_eq!(written(&mut coalescer, 100, 3), [patch(2, 2, true)]);
}

#[test]
fn a_status_computed_before_our_last_write_is_dropped_at_any_time() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    assert_eq!(due(&mut coalescer, 0), [patch(1, 1, false)]);
    // While the first is in flight, and after it is stored.
    coalescer.submit(&KEY, patch(1, 2, false), ms(0));
    coalescer.ended(&KEY, Written::Yes(Some(Version::new(5))));
    assert_eq!(coalescer.next(), None);
    coalescer.submit(&KEY, patch(4, 3, false), ms(0));
    assert_eq!(coalescer.next(), None);
    coalescer.submit(&KEY, patch(5, 3, false), ms(0));
    assert_eq!(written(&mut coalescer, 500, 6), [patch(5, 3, false)]);
}

#[test]
fn after_a_conflict_a_status_waits_for_one_computed_from_newer_state() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    due(&mut coalescer, 0);
    coalescer.ended(&KEY, Written::Outdated);
    assert_eq!(coalescer.next(), Some(ms(10_000)));
    coalescer.submit(&KEY, patch(1, 2, true), ms(0));
    assert_eq!(coalescer.next(), Some(ms(10_000)));
    coalescer.submit(&KEY, patch(2, 1, false), ms(0));
    assert_eq!(due(&mut coalescer, 500), [patch(2, 1, false)]);
    // A newer one is pending when an older one causes a conflict.
    coalescer.submit(&KEY, patch(3, 2, false), ms(0));
    coalescer.ended(&KEY, Written::Outdated);
    assert_eq!(written(&mut coalescer, 1000, 4), [patch(3, 2, false)]);
}

#[test]
fn a_correct_status_drops_the_pending_write() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    written(&mut coalescer, 0, 2);
    coalescer.submit(&KEY, patch(2, 2, false), ms(0));
    coalescer.withdraw(&KEY);
    assert_eq!(coalescer.next(), None);
}

#[test]
fn the_state_of_an_object_is_dropped_after_its_last_write() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(9, 1, false), ms(0));
    due(&mut coalescer, 0);
    coalescer.ended(&KEY, Written::Gone);
    assert_eq!(due(&mut coalescer, 10_001), []);
    assert!(coalescer.objects.is_empty());
}

#[test]
fn a_status_is_written_after_the_server_was_restored_to_older_versions() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(8, 1, false), ms(0));
    written(&mut coalescer, 0, 9);
    coalescer.submit(&KEY, patch(3, 2, false), ms(10_000));
    assert_eq!(coalescer.next(), None, "the cache may lack the write");
    coalescer.submit(&KEY, patch(3, 2, false), ms(10_001));
    assert_eq!(due(&mut coalescer, 10_001), [patch(3, 2, false)]);
}

#[test]
fn a_failed_write_is_repeated_with_growing_delays() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    let (mut now, mut pauses) = (0, Vec::new());
    for _ in 0..8 {
        assert_eq!(due(&mut coalescer, now), [patch(1, 1, false)]);
        // Submitted again while in flight: it stays one write.
        coalescer.submit(&KEY, patch(1, 1, false), ms(0));
        assert_eq!(due(&mut coalescer, now + 1), []);
        coalescer.ended(&KEY, Written::No);
        let next = coalescer.next().unwrap().as_millis() as u64;
        pauses.push(next - now);
        now = next;
    }
    assert_eq!(pauses, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
}

#[test]
fn a_newer_value_replaces_a_failed_one() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    due(&mut coalescer, 0);
    coalescer.submit(&KEY, patch(1, 2, false), ms(0));
    coalescer.ended(&KEY, Written::No);
    assert_eq!(written(&mut coalescer, 1000, 2), [patch(1, 2, false)]);
    assert_eq!(coalescer.next(), None);
}

#[test]
fn a_write_that_fails_during_a_stop_is_dropped() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    due(&mut coalescer, 0);
    coalescer.ended(&KEY, Written::No);
    coalescer.give_up();
    assert_eq!(coalescer.next(), None);
}

#[test]
fn a_status_without_a_newer_object_after_a_conflict_is_sent_again_with_its_last_value() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    for at in [0, 10_000] {
        assert_eq!(due(&mut coalescer, at), [patch(1, 1, false)]);
        coalescer.ended(&KEY, Written::Outdated);
    }
    coalescer.submit(&KEY, patch(1, 2, false), ms(0));
    assert_eq!(due(&mut coalescer, 19_999), []);
    assert_eq!(written(&mut coalescer, 20_000, 2), [patch(1, 2, false)]);
    assert_eq!(coalescer.next(), None);
}

#[test]
fn an_outdated_status_does_not_delay_a_stop() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    due(&mut coalescer, 0);
    coalescer.ended(&KEY, Written::Outdated);
    coalescer.give_up();
    assert_eq!(coalescer.next(), None);
}
