//! A crash after every single write of a clean scenario, one play for each.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{
    campaign::once,
    scenario::{Action, Scenario, Step, SuddenFault},
    subject::Subjects,
    threads,
    verdict::Violation,
};

/// The result of an enumeration.
#[derive(Debug)]
pub struct Enumerated {
    /// Writes of the clean scenario, and so plays.
    pub writes: u32,
    /// What went wrong.
    pub failures: Vec<(Scenario, Violation)>,
}

/// Plays a clean scenario with a crash after each `every`-th of its writes.
pub fn run(subjects: Subjects, clean: &Scenario, every: u32, threads: u64) -> anyhow::Result<Enumerated> {
    let (played, violation) = once(subjects, clean)?;
    let failures: Vec<_> = violation
        .map(|violation| (clean.clone(), violation))
        .into_iter()
        .collect();
    let (next, failures) = (AtomicU32::new(every), Mutex::new(failures));
    let work = || -> anyhow::Result<()> {
        loop {
            let number = next.fetch_add(every, Ordering::Relaxed);
            if number > played.counters.writes {
                return Ok(());
            }
            let mut scenario = clean.clone();
            let what = Action::Once(SuddenFault::CrashAfterWrites(number));
            scenario.steps.insert(0, Step { at: 0, what });
            if let (_, Some(violation)) = once(subjects, &scenario)? {
                failures
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push((scenario, violation));
            }
        }
    };
    threads::run(threads, work)?;
    Ok(Enumerated {
        writes: played.counters.writes,
        failures: failures.into_inner().unwrap_or_else(PoisonError::into_inner),
    })
}
