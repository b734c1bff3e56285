//! When a scenario has its turn on the cluster.
//!
//! All scenarios are there at once, each in a thread of its own, and nearly all only wait for what simulated pods do. Some crash the
//! manager, change definitions or count requests, and need the cluster to themselves. Those come last, one after another: each that came
//! between others would wait for the slowest of these and keep the rest from beginning.
//!
//! Two invariants: never is a scenario at work beside one that is alone, and never are more at work than [`at_once`].

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Scenarios that are at work, and those that wait.
struct Turns {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Default)]
struct Now {
    shared: usize,
    shared_waiting: usize,
    alone: bool,
}

static TURNS: Turns = Turns::new();

/// A turn, until this is dropped.
pub(crate) struct Turn<'a> {
    of: &'a Turns,
    alone: bool,
}

/// Waits for a turn beside others, or `alone`, after all of those.
pub(crate) fn take(alone: bool) -> Turn<'static> {
    TURNS.take(alone, at_once())
}

/// How many scenarios share the cluster: the variable that `cargo xtask e2e` sets.
fn at_once() -> usize {
    let set = std::env::var("KRUISE_E2E_AT_ONCE").ok();
    set.and_then(|number| number.parse().ok()).unwrap_or(1)
}

impl Turns {
    const fn new() -> Self {
        Self {
            now: Mutex::new(Now {
                shared: 0,
                shared_waiting: 0,
                alone: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, alone: bool, at_once: usize) -> Turn<'_> {
        let mut now = self.now();
        now.shared_waiting += usize::from(!alone);
        let must_wait = |now: &mut Now| {
            let no_room = if alone {
                now.shared + now.shared_waiting > 0
            } else {
                now.shared >= at_once.max(1)
            };
            now.alone || no_room
        };
        now = self
            .changed
            .wait_while(now, must_wait)
            .unwrap_or_else(PoisonError::into_inner);
        if alone {
            now.alone = true;
        } else {
            now.shared_waiting -= 1;
            now.shared += 1;
        }
        Turn { of: self, alone }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut now = self.of.now();
        if self.alone {
            now.alone = false;
        } else {
            now.shared -= 1;
        }
        self.of.changed.notify_all();
    }
}

#[test]
fn those_that_are_alone_come_after_all_others_and_one_by_one() {
    let turns = Turns::new();
    // Each scenario with what was at work when it began: how many shared the cluster, itself included.
    let begun = Mutex::new(Vec::new());
    let first = turns.take(false, 2);
    std::thread::scope(|scope| {
        for alone in [true, false, true, false, false] {
            let (turns, begun) = (&turns, &begun);
            scope.spawn(move || {
                let turn = turns.take(alone, 2);
                let now = turns.now();
                begun.lock().unwrap().push((alone, now.shared, now.alone));
                drop(now);
                drop(turn);
            });
        }
        // All wait for this one or are done beside it, and none that is alone has begun.
        kruise_e2e::wait::until_true("the others are done", std::time::Duration::from_mins(5), || {
            Ok(begun.lock().unwrap().len() == 3)
        })
        .unwrap();
        drop(first);
    });
    let begun = begun.into_inner().unwrap();
    assert!(
        begun
            .iter()
            .take(3)
            .all(|(alone, shared, _)| !alone && *shared == 2),
        "{begun:?}"
    );
    assert!(
        begun.iter().skip(3).all(|now| *now == (true, 0, true)),
        "{begun:?}"
    );
    assert_eq!(begun.len(), 5);
}
