//! A crash after every single write of a clean run, one play for each.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{
    campaign::{Failure, twice},
    history::{Act, Claims, Edit, History, Policy, Start, Strike, What},
};

/// The clean run: a set is created, updated, scaled and rolled back.
pub fn clean(policy: Policy) -> History {
    let act = |at, edit| Act {
        at,
        what: What::Edit(edit),
    };
    History {
        seed: 1,
        bug: None,
        brief: false,
        managers: 1,
        set: Start {
            claims: Some(Claims::Gone),
            ..Start::plain(5, policy)
        },
        sidecars: None,
        acts: vec![
            act(10_000, Edit::Image(2)),
            act(30_000, Edit::Partition("2".into())),
            act(30_001, Edit::Image(3)),
            act(50_000, Edit::Scale(7)),
            act(60_000, Edit::PodsToDelete(vec![1], true)),
            act(70_000, Edit::Partition("0".into())),
            act(90_000, Edit::Image(1)),
            act(110_000, Edit::Scale(5)),
        ],
    }
}

/// What an enumeration came to.
#[derive(Debug)]
pub struct Enumerated {
    /// Writes of the clean run, and so plays.
    pub writes: u32,
    /// What went wrong.
    pub failures: Vec<Failure>,
}

/// Plays a clean run with a crash after each `every`-th of its writes.
pub fn run(policy: Policy, every: u32, threads: usize) -> anyhow::Result<Enumerated> {
    let clean = clean(policy);
    let (played, violation) = twice(&clean)?;
    let failures: Vec<_> = violation
        .map(|violation| Failure {
            history: clean.clone(),
            violation,
        })
        .into_iter()
        .collect();
    let (next, failures) = (AtomicU32::new(every), Mutex::new(failures));
    let work = || -> anyhow::Result<()> {
        loop {
            let number = next.fetch_add(every, Ordering::Relaxed);
            if number > played.counters.writes {
                return Ok(());
            }
            let mut history = clean.clone();
            history.acts.insert(
                0,
                Act {
                    at: 0,
                    what: What::Strike(Strike::CrashAfterWrites(number)),
                },
            );
            if let (_, Some(violation)) = twice(&history)? {
                failures
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(Failure { history, violation });
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?)
    })?;
    Ok(Enumerated {
        writes: played.counters.writes,
        failures: failures.into_inner().unwrap_or_else(PoisonError::into_inner),
    })
}
