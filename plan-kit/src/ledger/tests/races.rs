//! Two webhooks, a plan and a controller at once, each with copies of its own age.
//!
//! The model is a server: it stores the budget under a version, and the pods as they are. Everybody else reads what was
//! there up to [`LAG`] ago. Only the controller counts, and its cache of pods does not go back in time.

use std::{collections::BTreeMap, sync::Arc};

use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_views::{PodView, Truth};
use proptest::prelude::*;
use serde_json::json;

use super::{ALL_GATES, OPERATIONS, at, budget, pod, ready};
use crate::ledger::{Account, Covered, Decision, Expected, Live, Operation, count, is_available};

/// Most seconds that a cache lags behind.
const LAG: i64 = 3;
/// Pods, named alike when they come again.
const PODS: usize = 5;

#[derive(Clone, Debug)]
enum Event {
    /// Seconds pass.
    Wait(i64),
    /// Somebody whose copy of the budget is so old asks for a pod, and makes it unavailable if allowed. Some are
    /// allowed and then do nothing.
    Ask {
        pod: usize,
        operation: usize,
        age: i64,
        acts: bool,
    },
    /// As a plan: it asks for several pods, and all are charged in one write.
    Plan { pods: Vec<usize>, age: i64 },
    /// The controller counts, from copies of the budget and of the pods that are so old.
    Count { budget_age: i64, pods_age: i64 },
    /// A pod becomes available again: the updated one, or a new one of its name.
    Recover(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let age = || 0..=LAG;
    prop_oneof![
        3 => (1..=4_i64).prop_map(Event::Wait),
        6 => (0..PODS, 0..OPERATIONS.len(), age(), prop::bool::weighted(0.8))
            .prop_map(|(pod, operation, age, acts)| Event::Ask { pod, operation, age, acts }),
        1 => (prop::collection::vec(0..PODS, 1..4), age()).prop_map(|(pods, age)| Event::Plan { pods, age }),
        5 => (age(), age()).prop_map(|(budget_age, pods_age)| Event::Count { budget_age, pods_age }),
        4 => (0..PODS).prop_map(Event::Recover),
    ]
}

/// What the server stored at some second.
#[derive(Clone)]
struct Stored {
    at: i64,
    /// Of the server, for all objects.
    revision: u64,
    /// Revision of the budget.
    version: u64,
    budget: PodUnavailableBudget,
    pods: Vec<Option<Arc<PodView>>>,
}

struct Server {
    now: i64,
    history: Vec<Stored>,
    /// Revision of the controller's cache of pods.
    cached: u64,
}

impl Server {
    fn new(max_unavailable: i32) -> Self {
        let spec = json!({"maxUnavailable": max_unavailable, "protectOperations": ["DELETE", "EVICT", "UPDATE", "RESIZE"]});
        let pods = (0..PODS)
            .map(|index| Some(Arc::new(pod(&format!("p{index}")))))
            .collect();
        let stored = Stored {
            at: 100,
            revision: 1,
            version: 1,
            budget: budget(spec, 0),
            pods,
        };
        Self {
            now: 100,
            history: vec![stored],
            cached: 1,
        }
    }

    fn last(&self) -> &Stored {
        self.history.last().unwrap()
    }

    /// The newest state of so many seconds ago.
    fn seen(&self, age: i64) -> Stored {
        let is_old = |stored: &&Stored| stored.at <= self.now - age;
        let old = self.history.iter().rev().find(is_old);
        old.unwrap_or(&self.history[0]).clone()
    }

    fn change(&mut self, change: impl FnOnce(&mut Stored)) {
        let mut next = self.last().clone();
        next.at = self.now;
        next.revision += 1;
        change(&mut next);
        self.history.push(next);
    }

    /// Writes a status if the budget still has this version.
    fn write(&mut self, version: u64, account: &Account<'_>) -> bool {
        let status = account.status().clone();
        let is_current = self.last().version == version;
        if is_current {
            self.change(|stored| {
                stored.budget.status = status;
                stored.version = stored.revision;
            });
        }
        is_current
    }

    /// Asks for pods until the answer is stored. The pods are those of the request, which the server has just read.
    fn ask(&mut self, wanted: &[usize], operation: Operation, age: i64) -> Vec<usize> {
        let mut seen = self.seen(age);
        loop {
            let mut account = Account::of(&seen.budget);
            let mut granted = Vec::new();
            let mut must_write = false;
            for index in wanted {
                let Some(pod) = self.last().pods[*index].clone() else {
                    continue;
                };
                match account.ask(&pod, operation, ALL_GATES, at(self.now)) {
                    Decision::Refused(_) => continue,
                    Decision::Charged | Decision::Renewed => must_write = true,
                    Decision::Recorded | Decision::Free(_) => {}
                }
                granted.push(*index);
            }
            if !must_write || self.write(seen.version, &account) {
                return granted;
            }
            seen = self.last().clone();
        }
    }

    /// The pod goes, or is taken out of service.
    fn disrupt(&mut self, index: usize, operation: Operation) {
        let now = self.now;
        self.change(|stored| {
            let removes = matches!(operation, Operation::Delete | Operation::Evict);
            stored.pods[index] = stored.pods[index].take().filter(|_| !removes).map(|pod| {
                let mut pod = (*pod).clone();
                pod.conditions = Box::new([ready(Truth::False, now)]);
                Arc::new(pod)
            });
        });
    }

    fn recover(&mut self, index: usize) {
        let now = self.now;
        self.change(|stored| {
            let mut next = match stored.pods[index].take() {
                Some(pod) => (*pod).clone(),
                None => PodView {
                    created: Some(at(now)),
                    ..pod(&format!("p{index}"))
                },
            };
            if !next.is_true("Ready") || next.created == Some(at(now)) {
                next.conditions = Box::new([ready(Truth::True, now)]);
            }
            stored.pods[index] = Some(Arc::new(next));
        });
    }

    /// Counts; pods that it asks for are read as they are now.
    fn count(&mut self, budget_age: i64, pods_age: i64) {
        let seen = self.seen(budget_age);
        self.cached = self.cached.max(self.seen(pods_age).revision);
        let is_cached = |stored: &&Stored| stored.revision == self.cached;
        let cache = self.history.iter().find(is_cached).unwrap().clone();
        let pods: Vec<Arc<PodView>> = cache.pods.iter().flatten().cloned().collect();
        let mut live: BTreeMap<String, Live> = BTreeMap::new();
        for _ in 0..2 {
            let covered = Covered {
                pods: &pods,
                expected: Expected::Known(PODS as i32),
                as_new_as_budget: cache.revision >= seen.version,
                live: &live,
            };
            let counted = count(&seen.budget, &covered, at(self.now)).unwrap();
            if counted.unproven.is_empty() {
                self.write(seen.version, &Account::counted(&seen.budget, counted.status));
                return;
            }
            for name in counted.unproven {
                let now = self.last().pods.iter().flatten().find(|pod| *pod.name == *name);
                live.insert(name, now.cloned());
            }
        }
        panic!("a pod that was read from the server is not proven");
    }

    fn available(&self) -> i32 {
        let pods = self.last().pods.iter().flatten();
        pods.filter(|pod| is_available(pod, at(self.now))).count() as i32
    }

    fn play(&mut self, event: &Event) {
        match event {
            Event::Wait(seconds) => self.now += seconds,
            Event::Ask {
                pod,
                operation,
                age,
                acts,
            } => {
                let operation = OPERATIONS[*operation];
                for index in self.ask(&[*pod], operation, *age) {
                    if *acts {
                        self.disrupt(index, operation);
                    }
                }
            }
            Event::Plan { pods, age } => {
                for index in self.ask(pods, Operation::Update, *age) {
                    self.disrupt(index, Operation::Update);
                }
            }
            Event::Count { budget_age, pods_age } => self.count(*budget_age, *pods_age),
            Event::Recover(index) => self.recover(*index),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_order_of_events_takes_more_pods_than_the_budget_has(
        max_unavailable in 0..=PODS as i32 - 1,
        events in prop::collection::vec(event(), 1..60),
    ) {
        let mut server = Server::new(max_unavailable);
        server.count(0, 0);
        for event in &events {
            server.play(event);
            let desired = PODS as i32 - max_unavailable;
            prop_assert!(server.available() >= desired, "{event:?}: {} of {desired}", server.available());
        }
        // Once all is seen, the budget is whole again.
        for index in 0..PODS {
            server.recover(index);
        }
        server.now += 21;
        server.count(0, 0);
        let status = &server.last().budget.status;
        prop_assert!(status.disrupted_pods.is_empty() && status.unavailable_pods.is_empty());
        prop_assert_eq!(status.unavailable_allowed, max_unavailable);
    }

    #[test]
    fn as_many_are_granted_as_the_budget_has_and_not_one_more(
        max_unavailable in 0..=PODS as i32,
        ages in prop::collection::vec(0..=LAG, PODS),
    ) {
        let mut server = Server::new(max_unavailable);
        server.count(0, 0);
        server.now += 1;
        let mut granted = Vec::new();
        // An old copy may refuse, and the newest one does not.
        for age in [ages, vec![0; PODS]] {
            for (index, age) in age.iter().enumerate() {
                if !granted.contains(&index) {
                    granted.extend(server.ask(&[index], Operation::Evict, *age));
                }
            }
        }
        prop_assert_eq!(granted.len() as i32, max_unavailable);
    }
}
