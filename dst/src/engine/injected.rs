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
    /// The seed, and so the number of scenarios played until then.
    pub seed: u64,
    /// How long it took.
    pub took: Duration,
}

/// Plays seed after seed until the bug shows; `None` if it does not within so many scenarios.
pub fn hunt(subjects: Subjects, bug: Bug, most: u64) -> anyhow::Result<Option<Found>> {
    let begun = Instant::now();
    for seed in 1..=most {
        let (_, mut scenario) = subjects.generate(seed)?;
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
