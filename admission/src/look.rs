//! What rules of kinds ask about other objects, and what came of it.
//!
//! A rule asks [`Looks`] and goes on with what is known; where something is not, it is noted, and the review is made again
//! once somebody has looked. So a rule is written as if it could read a cluster, and stays a pure function.

use serde_json::Value;

use crate::pod::{Known, Need};

/// One look at an API server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// The object, or the list of objects, at this path.
    At(String),
    /// What administrators wrote under this name into the ConfigMap of the manager's configuration.
    Setting(&'static str),
    /// Could an object be made in the manager's namespace? Nothing is made.
    Trial {
        /// The resource, of the core group.
        plural: &'static str,
        /// The object as JSON, so that looks have an order. Its namespace does not matter.
        object: String,
    },
}

/// What a look showed.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// It is there: the object, the text of a setting, nothing in particular for a trial.
    Found(Value),
    /// It does not exist.
    Nothing,
    /// A trial was refused.
    Refused {
        /// HTTP status.
        code: u16,
        /// What the server said.
        message: String,
    },
}

impl Seen {
    /// As [`Self::Nothing`], for whom need not look to know.
    pub(crate) const NOTHING: &'static Self = &Self::Nothing;

    /// The object, or the text, if there is one.
    pub(crate) fn found(&self) -> Option<&Value> {
        match self {
            Self::Found(value) => Some(value),
            Self::Nothing | Self::Refused { .. } => None,
        }
    }
}

/// What is known, and what was asked for besides.
pub(crate) struct Looks<'a> {
    known: &'a Known,
    missing: Vec<Need>,
}

impl<'a> Looks<'a> {
    /// Nothing has been asked yet.
    pub(crate) fn new(known: &'a Known) -> Self {
        Self {
            known,
            missing: Vec::new(),
        }
    }

    /// What a look shows; `None` if it has yet to be taken.
    pub(crate) fn see(&mut self, look: Look) -> Option<&'a Seen> {
        let seen = self.known.seen.get(&look);
        if seen.is_none() {
            let need = Need::Look(look);
            if !self.missing.contains(&need) {
                self.missing.push(need);
            }
        }
        seen
    }

    /// What is at a path; `None` if that has yet to be seen.
    pub(crate) fn at(&mut self, path: String) -> Option<&'a Seen> {
        self.see(Look::At(path))
    }

    /// What has to be known to go on.
    pub(crate) fn missing(self) -> Vec<Need> {
        self.missing
    }
}
