//! Bugs on purpose: each must be found, and soon.

use std::time::{Duration, Instant};

use kruise_plan_kit::planted::Bug;

use crate::{
    history::generate,
    oracle::Violation,
    play::{Keep, play},
};

/// The bug of a name.
pub fn named(name: &str) -> Option<Bug> {
    Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name)
}

/// How a bug was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What showed it.
    pub violation: Violation,
    /// The seed.
    pub seed: u64,
    /// Histories played until then.
    pub histories: u64,
    /// How long it took.
    pub took: Duration,
}

/// Plays seed after seed until the bug shows; `None` if it does not within so many histories.
pub fn hunt(bug: Bug, most: u64) -> anyhow::Result<Option<Found>> {
    let begun = Instant::now();
    for histories in 1..=most {
        let mut history = generate(histories);
        history.bug = Some(format!("{bug:?}"));
        if let Some(violation) = play(&history, Keep::Hash)?.violation {
            return Ok(Some(Found {
                violation,
                seed: histories,
                histories,
                took: begun.elapsed(),
            }));
        }
    }
    Ok(None)
}
