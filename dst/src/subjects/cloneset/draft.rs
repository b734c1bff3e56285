//! A scenario that is being drawn.

use super::edit::Edit;
use super::start::Start;
use crate::rules::prelude::*;

/// Name of the subject.
pub const NAME: &str = "cloneset";
/// CloneSets.
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
        let what = Action::edit(NAME, edit);
        self.scenario.steps.push(Step { at, what });
    }

    /// The edit of the CloneSet that a step is, if it is one.
    pub fn read(&self, step: &Step) -> Option<Edit> {
        step.what.edit_of(NAME)
    }

    /// The scenario.
    pub fn finish(mut self) -> Scenario {
        let start = serde_json::to_value(&self.start).unwrap_or_default();
        self.scenario.subjects.insert(NAME.to_owned(), start);
        self.scenario
    }
}
