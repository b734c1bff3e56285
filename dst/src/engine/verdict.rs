//! What oracles find.

use std::{cell::RefCell, collections::BTreeSet};

thread_local! {
    /// The oracles that failed in the play on this thread, if all are collected.
    static COLLECTED: RefCell<Option<BTreeSet<&'static str>>> = const { RefCell::new(None) };
}

/// Something that must not happen, happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which oracle found it.
    pub oracle: &'static str,
    /// What it saw.
    pub what: String,
}

impl Violation {
    /// From now on all violations in plays on this thread are collected, and not only the first of each write.
    pub fn collect() {
        COLLECTED.replace(Some(BTreeSet::new()));
    }

    /// The oracles that failed since [`Violation::collect`].
    pub fn collected() -> BTreeSet<&'static str> {
        COLLECTED.with_borrow(|collected| collected.clone().unwrap_or_default())
    }

    /// From now on nothing is collected.
    pub fn collect_no_more() {
        COLLECTED.take();
    }

    /// Are violations collected?
    pub fn are_collected() -> bool {
        COLLECTED.with_borrow(Option::is_some)
    }

    /// Itself; nothing if it was collected, so that further rules are looked at.
    pub fn unless_collected(self) -> Option<Self> {
        COLLECTED.with_borrow_mut(|collected| match collected {
            Some(collected) => {
                collected.insert(self.oracle);
                None
            }
            None => Some(self),
        })
    }

    /// What an oracle found.
    pub fn of(oracle: &'static str, what: String) -> Option<Self> {
        Some(Self { oracle, what })
    }
}

/// Whether oracles judge what managers do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Judged {
    /// Every write, and the end.
    #[default]
    Yes,
    /// Only the end.
    No,
}
