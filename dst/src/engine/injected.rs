//! Injected bugs: each must be found, and soon.

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

/// Plays the seeds of a subject, or all of them, until the bug shows; `None` if it does not up to this seed.
pub fn hunt(subjects: Subjects, of: Option<&str>, bug: Bug, most: u64) -> anyhow::Result<Option<Found>> {
    let begun = Instant::now();
    for seed in 1..=most {
        let (owner, mut scenario) = subjects.generate(seed)?;
        if of.is_some_and(|of| of != owner.name()) {
            continue;
        }
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
