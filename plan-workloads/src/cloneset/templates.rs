//! Stored revisions, parsed when a pod's label asks for them.

use std::{cell::OnceCell, sync::Arc};

use kruise_plan_kit::revision::Revision;
use kruise_views::RevisionView;

/// Parses each revision once, when first asked for.
pub(super) struct Templates<'a> {
    history: &'a [Arc<RevisionView>],
    parsed: Vec<OnceCell<Option<Revision>>>,
}

impl<'a> Templates<'a> {
    pub(super) fn new(history: &'a [Arc<RevisionView>]) -> Self {
        Self {
            history,
            parsed: history.iter().map(|_| OnceCell::new()).collect(),
        }
    }

    /// All that can be read.
    pub(super) fn all(&self) -> impl Iterator<Item = &Revision> {
        (0..self.history.len()).filter_map(|index| self.at(index))
    }

    /// The revision that a pod's label names.
    pub(super) fn by_label(&self, label: &str) -> Option<&Revision> {
        let index = self
            .history
            .iter()
            .position(|view| go_compat::revision::label_matches_revision(label, &view.name))?;
        self.at(index)
    }

    fn at(&self, index: usize) -> Option<&Revision> {
        let view = self.history.get(index)?;
        self.parsed
            .get(index)?
            .get_or_init(|| Revision::stored(view))
            .as_ref()
    }
}
