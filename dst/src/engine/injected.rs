//! Injected bugs: each must be found, and soon.

#![allow(clippy::disallowed_methods, reason = "it measures what a run takes")]

use std::time::{Duration, Instant};

use super::{
    play::{Keep, play},
    subject::{Seed, Subjects},
    verdict::Violation,
};

/// How a bug was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What showed it.
    pub violation: Violation,
    /// The seed.
    pub seed: Seed,
    /// How long it took.
    pub took: Duration,
}

/// Plays scenarios of a subject from a seed on, until the bug shows; `None` if it does not in `most` of them.
pub fn hunt(
    subjects: Subjects,
    of: &'static str,
    bug: &'static str,
    first: u64,
    most: u64,
) -> anyhow::Result<Option<Found>> {
    let begun = Instant::now();
    for number in first..first.saturating_add(most) {
        let seed = Seed { of, number };
        let mut scenario = subjects.scenario(seed)?;
        scenario.bug = Some(bug.to_owned());
        if let Some(violation) = play(subjects, &scenario, Keep::Hash)?.violation {
            // What fails without the bug, too, shows nothing of it.
            scenario.bug = None;
            if play(subjects, &scenario, Keep::Hash)?.violation.is_some() {
                continue;
            }
            let took = begun.elapsed();
            return Ok(Some(Found {
                violation,
                seed,
                took,
            }));
        }
    }
    Ok(None)
}
