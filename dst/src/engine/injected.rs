//! Injected bugs: each must be found, and soon.

#![allow(clippy::disallowed_methods, reason = "it measures what a run takes")]

use std::time::{Duration, Instant};

use kruise_plan_kit::injected::Bug;

use super::{
    play::{Keep, play},
    subject::Subjects,
    verdict::Violation,
};

/// How a bug was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What showed it.
    pub violation: Violation,
    /// The seed.
    pub seed: u64,
    /// How long it took.
    pub took: Duration,
}

/// Plays scenarios of a subject, or of all, from a seed on, until the bug shows; `None` if it does not in `most` of them.
pub fn hunt(
    subjects: Subjects,
    of: Option<&str>,
    bug: Bug,
    first: u64,
    most: u64,
) -> anyhow::Result<Option<Found>> {
    let begun = Instant::now();
    let mut played = 0;
    // No subject has less than a hundredth of the seeds.
    for seed in first..first.saturating_add(most.saturating_mul(100)) {
        if played == most {
            break;
        }
        let (owner, mut scenario) = subjects.generate(seed)?;
        if of.is_some_and(|of| of != owner.name()) {
            continue;
        }
        played += 1;
        scenario.bug = Some(format!("{bug:?}"));
        if let Some(violation) = play(subjects, &scenario, Keep::Hash)?.violation {
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
