//! The differences that were found: a bounded number of them, and how many there are beyond.

use super::{
    acts::Seen,
    owner::{Owner, about},
    report::Difference,
};

/// Most differences that are listed.
pub(super) const LISTED: usize = 1_000;

/// Something that no plan had, so far.
#[derive(Debug)]
pub(super) struct Suspect {
    pub(super) owner: Owner,
    pub(super) kind: String,
    pub(super) seen: Seen,
    /// What was done, and what would have been.
    pub(super) text: String,
}

/// The differences that were found.
#[derive(Debug, Default)]
pub(super) struct Differences {
    suspects: Vec<Suspect>,
    undone: Vec<Difference>,
    more: usize,
}

impl Differences {
    /// Something was done that no plan had.
    pub(super) fn suspect(&mut self, suspect: Suspect) {
        if self.has_room() {
            self.suspects.push(suspect);
        }
    }

    /// Something was wanted for long and not done.
    pub(super) fn undone(&mut self, differences: impl IntoIterator<Item = Difference>) {
        for difference in differences {
            if self.has_room() {
                self.undone.push(difference);
            }
        }
    }

    /// Counts one more if it is not to be listed.
    fn has_room(&mut self) -> bool {
        let has_room = self.suspects.len() + self.undone.len() < LISTED;
        self.more += usize::from(!has_room);
        has_room
    }

    /// Removes those that turn out to be none.
    pub(super) fn settle(&mut self, is_none: impl Fn(&Suspect) -> bool) -> Vec<Suspect> {
        let suspects = std::mem::take(&mut self.suspects).into_iter();
        let (settled, suspects) = suspects.partition(is_none);
        self.suspects = suspects;
        settled
    }

    /// These and all that were found before: those that are listed, and how many there are beyond.
    pub(super) fn with(&self, standing: impl Iterator<Item = Difference>) -> (Vec<Difference>, usize) {
        let suspects = self.suspects.iter().map(|suspect| Difference {
            about: about(&suspect.kind, &suspect.owner.key),
            text: suspect.text.clone(),
        });
        let mut all = suspects.chain(self.undone.iter().cloned()).chain(standing);
        let listed = all.by_ref().take(LISTED).collect();
        (listed, self.more + all.count())
    }
}
