//! A scenario that is being drawn.

use super::edit::Edit;
use super::start::Start;
use crate::rules::prelude::*;

pub const NAME: &str = "cloneset";
pub const CONTROLLER: &str = "cloneset-controller";
pub const CLONESETS: Resource = Resource::kruise("clonesets", "CloneSet");

/// A scenario that is still being drawn.
pub struct Draft {
    /// All but the CloneSet.
    pub scenario: Scenario,
    /// The CloneSet when it is created.
    pub start: Start,
}

impl Draft {
    /// Adds an edit of the CloneSet.
    pub fn edit(&mut self, at: u64, edit: &Edit) {
        self.scenario.edit(at, NAME, edit);
    }

    /// The edit of the CloneSet that a step is, if it is one.
    pub fn read(step: &Step) -> Option<Edit> {
        step.what.edit_of(NAME)
    }

    /// The scenario.
    pub fn finish(mut self) -> Scenario {
        self.scenario.add(NAME, &self.start);
        self.scenario
    }
}
