//! How far a rollout is, for those who follow its beginning and its end.

use kruise_api::{condition::Condition, names::conditions::STALLED};

use super::conditions;

/// How far the rollout of a workload is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The update revision of the stored status; empty if it has none.
    pub reported: String,
    /// The update revision.
    pub revision: String,
    /// Are there pods of other revisions?
    pub has_old: bool,
    /// Does it go on?
    pub course: Course,
}

/// Whether a rollout goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Course {
    /// Something is left to do.
    Moving,
    /// Something is left to do, and is not done, for this reason.
    Held(String),
    /// Nothing is left to do.
    Done,
}

impl Stage {
    /// The stage of a workload with these conditions. `held` says why the specification lets no pod be updated.
    /// `resting` is the reason and the message where nothing is to be done, and `done` the reason where nothing is
    /// left to do.
    pub fn of(
        held: Option<&str>,
        (reported, revision): (&str, &str),
        has_old: bool,
        (resting, done): (Option<(&str, &str)>, &str),
        all: &[Condition],
    ) -> Self {
        let held = held.filter(|_| has_old);
        let course = match (resting, conditions::get(all, STALLED)) {
            (Some((reason, _)), _) if reason == done => Course::Done,
            (Some((_, message)), _) => Course::Held(message.to_owned()),
            (None, Some(stalled)) => Course::Held(stalled.message.clone()),
            (None, None) => held.map_or(Course::Moving, |held| Course::Held(held.to_owned())),
        };
        Self {
            reported: reported.to_owned(),
            revision: revision.to_owned(),
            has_old,
            course,
        }
    }
}
