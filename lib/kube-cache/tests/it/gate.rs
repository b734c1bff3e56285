//! The write gate against a list of expectations, and against two informers that lag differently.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube_cache::{Event, Expectation, Gate, Informer, Seen, Verdict, Version};
use proptest::prelude::*;

use crate::world::{Object, World, change, version};

const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, Default)]
struct Caches {
    observed: BTreeMap<u8, Version>,
    present: BTreeSet<(u8, String)>,
}

impl Seen<u8> for Caches {
    fn observed(&self, resource: u8) -> Option<Version> {
        self.observed.get(&resource).copied()
    }
    fn present(&self, resource: u8, uid: &str) -> bool {
        self.present.contains(&(resource, uid.to_owned()))
    }
}

fn at_least(resource: u8, number: u64) -> Expectation<u8> {
    Expectation::AtLeast {
        resource,
        version: version(number),
    }
}

fn gone(resource: u8, uid: &str) -> Expectation<u8> {
    Expectation::Gone {
        resource,
        uid: uid.into(),
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[derive(Clone, Debug)]
enum Step {
    Record(u8, Expectation<u8>),
    Observe(u8, u64),
    Toggle(u8, u8),
    Wait(u64),
    Forget(u8),
    Check(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let expectation = prop_oneof![
        (0..2u8, 1..20u64).prop_map(|(resource, number)| at_least(resource, number)),
        (0..2u8, 0..3u8).prop_map(|(resource, uid)| gone(resource, &uid.to_string())),
    ];
    prop_oneof![
        4 => (0..2u8, expectation).prop_map(|(owner, expectation)| Step::Record(owner, expectation)),
        2 => (0..2u8, 1..20u64).prop_map(|(resource, number)| Step::Observe(resource, number)),
        2 => (0..2u8, 0..3u8).prop_map(|(resource, uid)| Step::Toggle(resource, uid)),
        2 => (1..15u64).prop_map(Step::Wait),
        1 => (0..2u8).prop_map(Step::Forget),
        6 => (0..2u8).prop_map(Step::Check),
    ]
}

fn is_met(expectation: &Expectation<u8>, caches: &Caches) -> bool {
    match expectation {
        Expectation::AtLeast { resource, version } => caches.observed(*resource) >= Some(*version),
        Expectation::Gone { resource, uid } => {
            caches.observed(*resource).is_some() && !caches.present(*resource, uid)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn never_open_while_an_unmet_unexpired_expectation_exists(steps in prop::collection::vec(step(), 1..80)) {
        let mut gate = Gate::new(TIMEOUT);
        let mut caches = Caches::default();
        let mut now = Duration::ZERO;
        // Everything recorded since the owner was last open, timed out or forgotten; nothing merged.
        let mut recorded: Vec<(u8, Expectation<u8>, Duration)> = Vec::new();
        for step in steps {
            match step {
                Step::Record(owner, expectation) => {
                    gate.record(owner, expectation.clone(), now);
                    recorded.push((owner, expectation, now));
                }
                Step::Observe(resource, number) => {
                    let newest = caches.observed.entry(resource).or_insert(version(number));
                    *newest = version(number).max(*newest);
                }
                Step::Toggle(resource, uid) => {
                    let object = (resource, uid.to_string());
                    if !caches.present.remove(&object) {
                        caches.present.insert(object);
                    }
                }
                Step::Wait(seconds) => now += secs(seconds),
                Step::Forget(owner) => {
                    gate.forget(&owner);
                    recorded.retain(|(other, ..)| *other != owner);
                }
                Step::Check(owner) => {
                    recorded.retain(|(other, expectation, _)| *other != owner || !is_met(expectation, &caches));
                    let own = recorded.iter().filter(|(other, ..)| *other == owner);
                    let (stale, fresh): (Vec<_>, Vec<_>) = own.partition(|(.., at)| now >= *at + TIMEOUT);
                    match gate.check(&owner, &caches, now) {
                        Verdict::Open => prop_assert!(fresh.is_empty() && stale.is_empty()),
                        Verdict::Closed { wait, since } => {
                            prop_assert!(!fresh.is_empty());
                            prop_assert!(!wait.is_zero() && now + wait == since + TIMEOUT);
                        }
                        Verdict::TimedOut(expired) => {
                            prop_assert!(!expired.is_empty());
                            for expectation in &expired {
                                prop_assert!(stale.iter().any(|(_, known, _)| known == expectation));
                            }
                            recorded.retain(|(other, _, at)| *other != owner || now < *at + TIMEOUT);
                        }
                    }
                }
            }
        }
        // Whatever happened, patience ends: two checks after the timeout heal everything.
        now += TIMEOUT;
        for owner in 0..2 {
            gate.check(&owner, &caches, now);
            prop_assert_eq!(gate.check(&owner, &caches, now), Verdict::Open);
        }
        prop_assert_eq!(gate.waiting().count(), 0);
    }

    /// Order holds only within one watch: the second resource may run far ahead of the first.
    #[test]
    fn an_open_gate_means_that_both_caches_show_the_writes(
        writes in prop::collection::vec((0..2usize, change()), 1..30),
        lags in prop::collection::vec((0..2usize, 0..4usize), 1..60),
    ) {
        let mut worlds = [World::default(), World::default()];
        let mut caches = [Informer::<Object>::new([]), Informer::new([])];
        for informer in &mut caches {
            informer.apply(Event::ListStarted).unwrap();
            informer.apply(Event::ListDone { version: version(1) }).unwrap();
        }
        let mut gate = Gate::new(TIMEOUT);
        for (resource, change) in writes {
            if let Some(written) = worlds[resource].apply(change) {
                let version = written.version.parse().unwrap();
                gate.record((), Expectation::AtLeast { resource, version }, Duration::ZERO);
            }
        }
        for (resource, count) in lags {
            let position = caches[resource].observed().unwrap().get();
            for (_, event) in worlds[resource].events_after(position).take(count) {
                caches[resource].apply(event.clone()).unwrap();
            }
            let open = gate.check(&(), &Pair(&caches), Duration::ZERO) == Verdict::Open;
            if open {
                for (world, informer) in worlds.iter().zip(&caches) {
                    for (key, object) in world.state_at(u64::MAX) {
                        prop_assert_eq!(informer.get(&key).map(|found| &found.version), Some(&object.version));
                    }
                }
            }
        }
    }
}

struct Pair<'a>(&'a [Informer<Object>; 2]);

impl Seen<usize> for Pair<'_> {
    fn observed(&self, resource: usize) -> Option<Version> {
        self.0[resource].observed()
    }
    fn present(&self, resource: usize, uid: &str) -> bool {
        self.0[resource].iter().any(|object| object.uid == uid)
    }
}

#[test]
fn a_deletion_is_not_believed_before_the_cache_is_synced() {
    let mut gate = Gate::new(TIMEOUT);
    let mut caches = Caches::default();
    gate.record("set", gone(0, "u1"), secs(1));
    let closed = Verdict::Closed {
        wait: secs(18),
        since: secs(1),
    };
    assert_eq!(gate.check(&"set", &caches, secs(3)), closed);
    caches.observed.insert(0, version(1));
    assert_eq!(gate.check(&"set", &caches, secs(3)), Verdict::Open);
}

#[test]
fn a_timeout_reports_what_expired_and_keeps_what_is_younger() {
    let mut gate = Gate::new(TIMEOUT);
    let caches = Caches::default();
    gate.record("set", at_least(0, 7), secs(0));
    gate.record("set", gone(1, "u1"), secs(15));
    assert_eq!(
        gate.check(&"set", &caches, secs(20)),
        Verdict::TimedOut(vec![at_least(0, 7)])
    );
    assert_eq!(
        gate.check(&"set", &caches, secs(20)),
        Verdict::Closed {
            wait: secs(15),
            since: secs(15)
        }
    );
    assert_eq!(
        gate.check(&"set", &caches, secs(35)),
        Verdict::TimedOut(vec![gone(1, "u1")])
    );
    assert_eq!(gate.check(&"set", &caches, secs(35)), Verdict::Open);
}

#[test]
fn owners_wait_separately() {
    let mut gate = Gate::new(TIMEOUT);
    gate.record("a", at_least(0, 7), secs(2));
    assert_eq!(gate.check(&"b", &Caches::default(), secs(3)), Verdict::Open);
    assert_eq!(gate.waiting().collect::<Vec<_>>(), [(&"a", secs(2))]);
}
