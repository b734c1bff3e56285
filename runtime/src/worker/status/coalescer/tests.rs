use std::time::Duration;

use kruise_plan_kit::{ResourceId, StatusPatch, Target};
use kube_cache::Version;
use serde_json::json;

use super::{Coalescer, Written};

const MOST: usize = 8;
const KEY: &str = "n/web";

/// Made from the object in this version.
fn patch(version: u64, ready: i32, urgent: bool) -> StatusPatch {
    let target = Target {
        resource: ResourceId::CLONESETS,
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

/// What is sent; the server stores it in this version.
fn written(coalescer: &mut Coalescer<&'static str>, at: u64, version: u64) -> Vec<StatusPatch> {
    let due = due(coalescer, at);
    for _ in &due {
        coalescer.ended(&KEY, Written::Yes(Some(Version::new(version))));
    }
    due
}

#[test]
fn the_first_goes_at_once_and_later_ones_twice_a_second_with_the_last_value() {
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
fn an_urgent_one_hardly_waits() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    written(&mut coalescer, 0, 2);
    coalescer.submit(&KEY, patch(2, 2, true), ms(0));
    assert_eq!(written(&mut coalescer, 100, 3), [patch(2, 2, true)]);
}

#[test]
fn a_status_made_before_our_last_one_showed_is_dropped_whenever_it_comes() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    assert_eq!(due(&mut coalescer, 0), [patch(1, 1, false)]);
    // While the first is on its way, and after it is stored.
    coalescer.submit(&KEY, patch(1, 2, false), ms(0));
    coalescer.ended(&KEY, Written::Yes(Some(Version::new(5))));
    assert_eq!(coalescer.next(), None);
    coalescer.submit(&KEY, patch(4, 3, false), ms(0));
    assert_eq!(coalescer.next(), None);
    coalescer.submit(&KEY, patch(5, 3, false), ms(0));
    assert_eq!(written(&mut coalescer, 500, 6), [patch(5, 3, false)]);
}

#[test]
fn what_the_server_found_outdated_waits_for_what_is_made_from_newer_state() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    due(&mut coalescer, 0);
    coalescer.ended(&KEY, Written::Outdated);
    assert_eq!(coalescer.next(), Some(ms(10_000)));
    coalescer.submit(&KEY, patch(1, 2, true), ms(0));
    assert_eq!(coalescer.next(), Some(ms(10_000)));
    coalescer.submit(&KEY, patch(2, 1, false), ms(0));
    assert_eq!(due(&mut coalescer, 500), [patch(2, 1, false)]);
    // One that is newer already waits while an older one turns out to be outdated.
    coalescer.submit(&KEY, patch(3, 2, false), ms(0));
    coalescer.ended(&KEY, Written::Outdated);
    assert_eq!(written(&mut coalescer, 1000, 4), [patch(3, 2, false)]);
}

#[test]
fn a_status_that_is_as_it_should_be_takes_back_what_waits() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    written(&mut coalescer, 0, 2);
    coalescer.submit(&KEY, patch(2, 2, false), ms(0));
    coalescer.withdraw(&KEY);
    assert_eq!(coalescer.next(), None);
}

#[test]
fn what_is_known_of_an_object_is_forgotten_when_it_is_long_gone() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(9, 1, false), ms(0));
    due(&mut coalescer, 0);
    coalescer.ended(&KEY, Written::Gone);
    assert_eq!(due(&mut coalescer, 10_001), []);
    assert!(coalescer.objects.is_empty());
}

#[test]
fn a_store_that_went_back_to_older_versions_gets_its_status_all_the_same() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(8, 1, false), ms(0));
    written(&mut coalescer, 0, 9);
    coalescer.submit(&KEY, patch(3, 2, false), ms(10_000));
    assert_eq!(coalescer.next(), None, "the write may not show yet");
    coalescer.submit(&KEY, patch(3, 2, false), ms(10_001));
    assert_eq!(due(&mut coalescer, 10_001), [patch(3, 2, false)]);
}

#[test]
fn a_failed_write_comes_again_by_itself_later_and_later() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    let (mut now, mut pauses) = (0, Vec::new());
    for _ in 0..8 {
        assert_eq!(due(&mut coalescer, now), [patch(1, 1, false)]);
        // Submitted while it is in flight: the same thing, not a second one.
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
fn a_newer_value_takes_the_place_of_a_failed_one() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    due(&mut coalescer, 0);
    coalescer.submit(&KEY, patch(1, 2, false), ms(0));
    coalescer.ended(&KEY, Written::No);
    assert_eq!(written(&mut coalescer, 1000, 2), [patch(1, 2, false)]);
    assert_eq!(coalescer.next(), None);
}

#[test]
fn what_fails_while_the_process_ends_is_given_up() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    due(&mut coalescer, 0);
    coalescer.ended(&KEY, Written::No);
    coalescer.give_up();
    assert_eq!(coalescer.next(), None);
}

#[test]
fn what_was_wrongly_called_outdated_is_sent_again_with_its_last_value() {
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
fn what_is_outdated_does_not_hold_up_the_end_of_the_process() {
    let mut coalescer = Coalescer::default();
    coalescer.submit(&KEY, patch(1, 1, false), ms(0));
    due(&mut coalescer, 0);
    coalescer.ended(&KEY, Written::Outdated);
    coalescer.give_up();
    assert_eq!(coalescer.next(), None);
}
