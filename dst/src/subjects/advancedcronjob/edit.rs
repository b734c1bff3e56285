//! What users do to an AdvancedCronJob and its jobs, and what becomes of clocks.

use crate::rules::prelude::*;

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// Another `schedule`.
    Schedule(String),
    /// Another `concurrencyPolicy`.
    Policy(String),
    /// `paused`.
    Paused(bool),
    /// Other limits of the history.
    Limits(u8, u8),
    /// Another `startingDeadlineSeconds`, or none.
    Deadline(Option<u32>),
    /// Deletes the job at this place in the order of names.
    Delete(u8),
    /// Managers that start from now on are on machines whose clocks are so many seconds fast, or slow.
    Skew(i64),
}

impl Edit {
    /// Does it end what would never end?
    pub fn is_release(&self) -> bool {
        matches!(self, Self::Paused(true))
    }
}
