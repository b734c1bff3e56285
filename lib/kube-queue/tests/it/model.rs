//! Random calls on the queue and on a model of plain lists: every result must be equal.

use std::time::Duration;

use kube_queue::{Config, Counters, Done, Popped, Priority, Queue, Unfinished};
use proptest::prelude::*;

type Key = (&'static str, u8);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const CONFIG: Config = Config {
    burst: 3,
    live_per_initial: 2,
    backoff_cap: ms(60),
    ..Config::CLIENT_GO
};

#[derive(Clone, Debug)]
enum Call {
    Push(Key, Priority),
    After(Key, Priority, u64),
    Limited(Key, Priority),
    Coalesced(Key, Priority, u64),
    Forget(Key),
    Pop,
    /// Ends the n-th piece of work in flight, or that of a key that may not be in flight.
    Done(Result<usize, Key>),
    Wait(u64),
}

fn call() -> impl Strategy<Value = Call> {
    let key = || (prop::sample::select(vec!["a", "b", "c"]), 0..2u8);
    let priority = || prop::sample::select(vec![Priority::Initial, Priority::Live]);
    prop_oneof![
        6 => (key(), priority()).prop_map(|(key, priority)| Call::Push(key, priority)),
        3 => (key(), priority(), 0..40u64).prop_map(|(key, priority, delay)| Call::After(key, priority, delay)),
        2 => (key(), priority()).prop_map(|(key, priority)| Call::Limited(key, priority)),
        4 => (key(), priority(), prop::sample::select(vec![20, 50]))
            .prop_map(|(key, priority, window)| Call::Coalesced(key, priority, window)),
        1 => key().prop_map(Call::Forget),
        8 => Just(Call::Pop),
        6 => (0..4usize).prop_map(|nth| Call::Done(Ok(nth))),
        1 => key().prop_map(|key| Call::Done(Err(key))),
        5 => (1..60u64).prop_map(Call::Wait),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Held,
    Delayed,
    Ready,
}

#[derive(Clone, Debug)]
struct Work {
    key: Key,
    priority: Priority,
    due: u64,
    window: Option<u64>,
    place: Place,
    arrival: usize,
}

/// All times in milliseconds.
#[derive(Default)]
struct Model {
    now: u64,
    work: Vec<Work>,
    in_flight: Vec<(Key, u64)>,
    /// Namespaces in order of their turns, for each priority.
    turns: [Vec<&'static str>; 2],
    preferred: u32,
    /// (key, end) of every window ever opened.
    windows: Vec<(Key, u64)>,
    failures: Vec<Key>,
    /// Token debt and credit in milliseconds, as of the given time.
    tokens: Option<(i64, u64)>,
    arrivals: usize,
    adds: u64,
    retries: u64,
}

impl Model {
    fn is_in_flight(&self, key: Key) -> bool {
        self.in_flight.iter().any(|(other, _)| *other == key)
    }

    fn wait(&mut self, millis: u64) {
        self.now += millis;
        loop {
            let due = self
                .work
                .iter()
                .filter(|work| work.place == Place::Delayed && work.due <= self.now);
            let Some(key) = due
                .min_by_key(|work| (work.due, work.arrival))
                .map(|work| work.key)
            else {
                return;
            };
            let work = self.take(key);
            let at = work.due;
            self.file(work, at);
        }
    }

    fn take(&mut self, key: Key) -> Work {
        let at = self.work.iter().position(|work| work.key == key).unwrap();
        self.work.remove(at)
    }

    fn file(&mut self, mut work: Work, at: u64) {
        self.arrivals += 1;
        work.arrival = self.arrivals;
        if self.is_in_flight(work.key) {
            work.place = Place::Held;
        } else if work.due > self.now {
            work.place = Place::Delayed;
        } else {
            work.place = Place::Ready;
            self.adds += 1;
            self.windows
                .extend(work.window.map(|window| (work.key, at + window)));
            self.join_turns(&work);
        }
        self.work.push(work);
    }

    fn join_turns(&mut self, work: &Work) {
        let turns = &mut self.turns[work.priority as usize];
        if !turns.contains(&work.key.0) {
            turns.push(work.key.0);
        }
    }

    /// Namespaces without ready keys have no turn.
    fn drop_empty_turns(&mut self) {
        for priority in [Priority::Initial, Priority::Live] {
            let work = &self.work;
            self.turns[priority as usize].retain(|namespace| {
                work.iter()
                    .any(|w| w.place == Place::Ready && w.priority == priority && w.key.0 == *namespace)
            });
        }
    }

    fn schedule(&mut self, key: Key, priority: Priority, due: u64, window: Option<u64>) {
        let Some(at) = self.work.iter().position(|work| work.key == key) else {
            let place = Place::Held;
            self.file(
                Work {
                    key,
                    priority,
                    due,
                    window,
                    place,
                    arrival: 0,
                },
                self.now,
            );
            return;
        };
        let before = self.work[at].clone();
        let work = &mut self.work[at];
        work.window = work.window.max(window);
        work.priority = work.priority.max(priority);
        work.due = work.due.min(due);
        if (work.priority, work.due) == (before.priority, before.due) {
            return;
        }
        match before.place {
            Place::Held => {}
            Place::Delayed => {
                let work = self.take(key);
                self.file(work, self.now);
            }
            Place::Ready => {
                let work = work.clone();
                self.drop_empty_turns();
                self.join_turns(&work);
            }
        }
    }

    fn limited(&mut self, key: Key, priority: Priority) -> u64 {
        let failures = self.failures.iter().filter(|failed| **failed == key).count();
        self.failures.push(key);
        let backoff = (5u64 << failures.min(20)).min(60);
        let (credit, as_of) = self.tokens.unwrap_or((300, self.now));
        let credit = (credit + (self.now - as_of) as i64).min(300) - 100;
        self.tokens = Some((credit, self.now));
        let delay = backoff.max(u64::try_from(-credit).unwrap_or(0));
        self.retries += 1;
        self.schedule(key, priority, self.now + delay, None);
        delay
    }

    fn coalesced(&mut self, key: Key, priority: Priority, window: u64) {
        let ends = self
            .windows
            .iter()
            .filter(|(other, _)| *other == key)
            .map(|(_, end)| *end);
        let due = ends.max().unwrap_or(0).max(self.now);
        self.schedule(key, priority, due, Some(window));
    }

    fn pop(&mut self) -> Option<Popped<Key>> {
        let waits = |priority: Priority| {
            self.work
                .iter()
                .any(|work| work.place == Place::Ready && work.priority == priority)
        };
        let priority = match (waits(Priority::Live), waits(Priority::Initial)) {
            (false, false) => return None,
            (true, false) => Priority::Live,
            (true, true) if self.preferred < 2 => Priority::Live,
            (_, true) => Priority::Initial,
        };
        let preferred = priority == Priority::Live && waits(Priority::Initial);
        self.preferred = if preferred { self.preferred + 1 } else { 0 };
        let namespace = self.turns[priority as usize].remove(0);
        let ready = self.work.iter().filter(|work| {
            work.place == Place::Ready && work.priority == priority && work.key.0 == namespace
        });
        let key = ready.min_by_key(|work| work.arrival).unwrap().key;
        let work = self.take(key);
        self.turns[priority as usize].push(namespace);
        self.drop_empty_turns();
        self.in_flight.push((key, self.now));
        Some(Popped {
            key,
            priority,
            waited: ms(self.now - work.due),
        })
    }

    fn done(&mut self, key: Key) -> Option<Done> {
        let at = self.in_flight.iter().position(|(other, _)| *other == key)?;
        let (_, started) = self.in_flight.remove(at);
        if self.work.iter().any(|work| work.key == key) {
            let work = self.take(key);
            self.file(work, self.now);
        }
        Some(Done {
            worked: ms(self.now - started),
        })
    }

    fn count(&self, place: Place) -> usize {
        self.work.iter().filter(|work| work.place == place).count()
    }

    fn next_wake(&self) -> Option<Duration> {
        if self.count(Place::Ready) > 0 {
            return Some(Duration::ZERO);
        }
        let delayed = self.work.iter().filter(|work| work.place == Place::Delayed);
        delayed.map(|work| ms(work.due - self.now)).min()
    }

    fn unfinished(&self) -> Unfinished {
        let worked = || self.in_flight.iter().map(|(_, started)| ms(self.now - started));
        let longest = worked().max().unwrap_or_default();
        Unfinished {
            count: self.in_flight.len(),
            total: worked().sum(),
            longest,
        }
    }
}

/// Makes one call on both and checks that the results are equal.
fn call_both(queue: &mut Queue<Key>, model: &mut Model, call: Call) {
    let now = ms(model.now);
    match call {
        Call::Push(key, priority) => {
            queue.push(key, priority, now);
            model.schedule(key, priority, model.now, None);
        }
        Call::After(key, priority, delay) => {
            queue.push_after(key, priority, ms(delay), now);
            model.retries += 1;
            model.schedule(key, priority, model.now + delay, None);
        }
        Call::Limited(key, priority) => {
            let delay = queue.push_rate_limited(key, priority, now);
            assert_eq!(delay, ms(model.limited(key, priority)));
        }
        Call::Coalesced(key, priority, window) => {
            queue.push_coalesced(key, priority, ms(window), now);
            model.coalesced(key, priority, window);
        }
        Call::Forget(key) => {
            queue.forget(&key);
            model.failures.retain(|failed| *failed != key);
        }
        Call::Pop => {
            let popped = queue.pop(now);
            if let Some(popped) = &popped {
                assert!(!model.is_in_flight(popped.key), "{:?} returned twice", popped.key);
            }
            assert_eq!(popped, model.pop());
        }
        Call::Done(which) => {
            let nth = |nth: usize| model.in_flight.get(nth).map_or(("unknown", 0), |(key, _)| *key);
            let key = which.map_or_else(|key| key, nth);
            assert_eq!(queue.done(&key, now), model.done(key));
        }
        Call::Wait(millis) => model.wait(millis),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_result_equals_that_of_plain_lists(calls in prop::collection::vec(call(), 1..160)) {
        let mut queue = Queue::new(CONFIG, |key: &Key| key.0);
        let mut model = Model::default();
        for call in calls {
            call_both(&mut queue, &mut model, call.clone());
            if matches!(call, Call::Wait(_) | Call::Forget(_)) {
                continue; // the queue's time changes with its next call
            }
            prop_assert_eq!(queue.len(), model.count(Place::Ready), "after {:?}", &call);
            prop_assert_eq!(queue.delayed(), model.count(Place::Delayed), "after {:?}", &call);
            prop_assert_eq!(queue.next_wake(ms(model.now)), model.next_wake(), "after {:?}", &call);
            prop_assert_eq!(queue.unfinished(ms(model.now)), model.unfinished());
            prop_assert_eq!(queue.counters(), Counters { adds: model.adds, retries: model.retries });
        }
        // Nothing is lost: once all work ends and time passes, every pending key is returned once.
        for (key, _) in model.in_flight.clone() {
            call_both(&mut queue, &mut model, Call::Done(Err(key)));
        }
        model.wait(10_000);
        let mut pending: Vec<_> = model.work.iter().map(|work| work.key).collect();
        let mut popped: Vec<_> = std::iter::from_fn(|| queue.pop(ms(model.now))).map(|p| p.key).collect();
        pending.sort_unstable();
        popped.sort_unstable();
        prop_assert_eq!(popped, pending);
    }
}
