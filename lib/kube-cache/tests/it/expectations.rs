//! Expectations against a plain list of them, and against two informers with different lags.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube_cache::{CacheState, Event, Expectation, Expectations, Informer, Verdict, Version};
use proptest::prelude::*;

use crate::server::{Object, Server, change, version};

const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, Default)]
struct Caches {
    observed: BTreeMap<u8, Version>,
    present: BTreeSet<(u8, String)>,
}

impl CacheState<u8> for Caches {
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
    fn never_satisfied_while_an_unmet_unexpired_expectation_exists(steps in prop::collection::vec(step(), 1..80)) {
        let mut expectations = Expectations::new(TIMEOUT);
        let mut caches = Caches::default();
        let mut now = Duration::ZERO;
        // Everything recorded since the owner was last satisfied, timed out or forgotten, duplicates included.
        let mut recorded: Vec<(u8, Expectation<u8>, Duration)> = Vec::new();
        for step in steps {
            match step {
                Step::Record(owner, expectation) => {
                    expectations.record(owner, expectation.clone(), now);
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
                    expectations.forget(&owner);
                    recorded.retain(|(other, ..)| *other != owner);
                }
                Step::Check(owner) => {
                    recorded.retain(|(other, expectation, _)| *other != owner || !is_met(expectation, &caches));
                    let own = recorded.iter().filter(|(other, ..)| *other == owner);
                    let (stale, fresh): (Vec<_>, Vec<_>) = own.partition(|(.., at)| now >= *at + TIMEOUT);
                    match expectations.check(&owner, &caches, now) {
                        Verdict::Satisfied => prop_assert!(fresh.is_empty() && stale.is_empty()),
                        Verdict::Pending { wait, since } => {
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
        // After the timeout, two checks of each owner leave no expectation.
        now += TIMEOUT;
        for owner in 0..2 {
            expectations.check(&owner, &caches, now);
            prop_assert_eq!(expectations.check(&owner, &caches, now), Verdict::Satisfied);
        }
        prop_assert_eq!(expectations.waiting().count(), 0);
    }

    /// Versions are ordered only within one watch: the cache of the second resource may be far ahead of the first.
    #[test]
    fn satisfied_expectations_mean_that_both_caches_contain_the_writes(
        writes in prop::collection::vec((0..2usize, change()), 1..30),
        lags in prop::collection::vec((0..2usize, 0..4usize), 1..60),
    ) {
        let mut servers = [Server::default(), Server::default()];
        let mut caches = [Informer::<Object>::new([]), Informer::new([])];
        for informer in &mut caches {
            informer.apply(Event::ListStarted).unwrap();
            informer.apply(Event::ListDone { version: version(1) }).unwrap();
        }
        let mut expectations = Expectations::new(TIMEOUT);
        for (resource, change) in writes {
            if let Some(written) = servers[resource].apply(change) {
                let version = written.version.parse().unwrap();
                expectations.record((), Expectation::AtLeast { resource, version }, Duration::ZERO);
            }
        }
        for (resource, count) in lags {
            let position = caches[resource].observed().unwrap().get();
            for (_, event) in servers[resource].events_after(position).take(count) {
                caches[resource].apply(event.clone()).unwrap();
            }
            let verdict = expectations.check(&(), &Pair(&caches), Duration::ZERO);
            if verdict == Verdict::Satisfied {
                for (server, informer) in servers.iter().zip(&caches) {
                    for (key, object) in server.state_at(u64::MAX) {
                        prop_assert_eq!(informer.get(&key).map(|found| &found.version), Some(&object.version));
                    }
                }
            }
        }
    }
}

struct Pair<'a>(&'a [Informer<Object>; 2]);

impl CacheState<usize> for Pair<'_> {
    fn observed(&self, resource: usize) -> Option<Version> {
        self.0[resource].observed()
    }
    fn present(&self, resource: usize, uid: &str) -> bool {
        self.0[resource].iter().any(|object| object.uid == uid)
    }
}

#[test]
fn an_expected_deletion_is_not_met_before_the_cache_is_synced() {
    let mut expectations = Expectations::new(TIMEOUT);
    let mut caches = Caches::default();
    expectations.record("set", gone(0, "u1"), secs(1));
    let pending = Verdict::Pending {
        wait: secs(18),
        since: secs(1),
    };
    assert_eq!(expectations.check(&"set", &caches, secs(3)), pending);
    caches.observed.insert(0, version(1));
    assert_eq!(expectations.check(&"set", &caches, secs(3)), Verdict::Satisfied);
}

#[test]
fn a_timeout_reports_what_expired_and_keeps_what_is_younger() {
    let mut expectations = Expectations::new(TIMEOUT);
    let caches = Caches::default();
    expectations.record("set", at_least(0, 7), secs(0));
    expectations.record("set", gone(1, "u1"), secs(15));
    assert_eq!(
        expectations.check(&"set", &caches, secs(20)),
        Verdict::TimedOut(vec![at_least(0, 7)])
    );
    assert_eq!(
        expectations.check(&"set", &caches, secs(20)),
        Verdict::Pending {
            wait: secs(15),
            since: secs(15)
        }
    );
    assert_eq!(
        expectations.check(&"set", &caches, secs(35)),
        Verdict::TimedOut(vec![gone(1, "u1")])
    );
    assert_eq!(expectations.check(&"set", &caches, secs(35)), Verdict::Satisfied);
}

#[test]
fn expectations_of_one_owner_do_not_delay_another() {
    let mut expectations = Expectations::new(TIMEOUT);
    expectations.record("a", at_least(0, 7), secs(2));
    assert_eq!(
        expectations.check(&"b", &Caches::default(), secs(3)),
        Verdict::Satisfied
    );
    assert_eq!(expectations.waiting().collect::<Vec<_>>(), [(&"a", secs(2))]);
}
