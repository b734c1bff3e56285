//! Differences between two versions.

use serde_json::Value;

use super::path;

/// Which way an object is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From `v1alpha1` to `v1beta1`.
    Newer,
    /// From `v1beta1` to `v1alpha1`.
    Older,
}

impl Direction {
    /// The opposite direction.
    #[must_use]
    pub fn back(self) -> Self {
        match self {
            Self::Newer => Self::Older,
            Self::Older => Self::Newer,
        }
    }
}

/// One difference between two versions. Places are patterns: `spec.subsets[].patch`, `spec.images{}.tags`.
pub enum Rule {
    /// The older version has no such member.
    NewerOnly(&'static str),
    /// The newer version has no such member.
    OlderOnly(&'static str),
    /// The same member under another name.
    Renamed {
        /// Where it is in the older version.
        older: &'static str,
        /// Its name in the newer.
        newer: &'static str,
    },
    /// Anything else.
    Special {
        /// What happens on the way to the newer version.
        newer: fn(&mut Value),
        /// What happens on the way to the older version.
        older: fn(&mut Value),
    },
}

impl Rule {
    /// Changes an object.
    pub fn apply(&self, object: &mut Value, direction: Direction) {
        match (self, direction) {
            (Self::NewerOnly(place), Direction::Older) | (Self::OlderOnly(place), Direction::Newer) => {
                path::each(object, place, &mut |members, name| {
                    members.remove(name);
                });
            }
            (Self::NewerOnly(_), Direction::Newer) | (Self::OlderOnly(_), Direction::Older) => {}
            (Self::Renamed { older, newer }, direction) => rename(object, older, newer, direction),
            (Self::Special { newer, .. }, Direction::Newer) => newer(object),
            (Self::Special { older, .. }, Direction::Older) => older(object),
        }
    }
}

/// A member that has the new name already is replaced: the source version has no such member.
fn rename(object: &mut Value, older: &str, newer: &str, direction: Direction) {
    path::each(object, older, &mut |members, older| {
        let (from, to) = match direction {
            Direction::Newer => (older, newer),
            Direction::Older => (newer, older),
        };
        if let Some(value) = members.remove(from) {
            members.insert(to.to_owned(), value);
        }
    });
}
