//! The revisions of a workload: which one is that of its specification, and which writes keep the history correct.

mod found;
pub mod revision;
mod writes;

use std::{cell::OnceCell, collections::BTreeSet, sync::Arc};

use kruise_views::RevisionView;

use crate::{Template, owner::Owner, plan::ObjectWrites};
use revision::{
    Revision, identity_of, is_equal, is_equal_when_completed, is_known_part_of, is_named_by, is_part_of,
    is_recorded,
};

pub use found::{Found, Specified};
pub use writes::{NewRevision, label, patch};

/// The revisions of one workload, oldest first: by number, then creation time, then name.
#[derive(Clone, Debug, Default)]
pub struct History {
    stored: Vec<Arc<RevisionView>>,
    /// Those that hold a pod template, read when first asked for.
    read: Vec<OnceCell<Option<Revision>>>,
}

/// Which stored revision is that of a specification.
#[derive(Clone, Debug)]
pub enum Match<'h> {
    /// The newest one: nothing to write.
    Newest(&'h Arc<RevisionView>),
    /// An older one: it becomes the newest again under this number.
    Older(&'h Arc<RevisionView>, i64),
    /// None: one is to be created with this number.
    Missing(i64),
}

/// The update revision in the status of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Reported<'a> {
    /// Its name.
    pub name: &'a str,
    /// Is the status that of the specification as it is now?
    pub is_current: bool,
}

impl Reported<'_> {
    /// Is this the revision, and does it lack only fields that its writer dropped?
    fn is_shortened(self, view: &RevisionView, live: &Template) -> bool {
        // Whoever wrote a current status saw this template. Otherwise the edit may have added the fields: only
        // those that no type has can have been dropped, and never by a writer that records the template.
        *view.name == *self.name
            && if self.is_current {
                is_part_of(view, live)
            } else {
                view.template_hash.is_none() && is_known_part_of(view, live)
            }
    }
}

/// A name for a new revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name that no other object has.
    pub name: String,
    /// Hash in the name.
    pub hash: String,
    /// Name collisions so far: part of every hash, from zero on.
    pub collision_count: i32,
}

/// How many revisions stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// So many that nothing uses.
    Unused(usize),
    /// So many in all, and beyond that those which something uses.
    InAll(usize),
}

impl History {
    /// Sorts the revisions.
    pub fn new(revisions: &[Arc<RevisionView>]) -> Self {
        let mut stored = revisions.to_vec();
        stored.sort_by(|a, b| (a.number, a.created, &a.name).cmp(&(b.number, b.created, &b.name)));
        let read = stored.iter().map(|_| OnceCell::new()).collect();
        Self { stored, read }
    }

    /// All of them, oldest first.
    pub fn all(&self) -> &[Arc<RevisionView>] {
        &self.stored
    }

    /// The stored revision of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<RevisionView>> {
        self.stored.iter().find(|view| *view.name == *name)
    }

    /// The newest revision that `is_it` accepts as that of the specification.
    pub fn find(&self, is_it: impl Fn(&RevisionView) -> bool) -> Match<'_> {
        self.at(self.stored.iter().rposition(|view| is_it(view)))
    }

    /// The revision of a live template: the newest that holds the template or is recorded to be for it.
    ///
    /// Where there is none, it may be the one that status names, if its writer dropped fields that its types did
    /// not know. They are missing from the pods, too, and are no reason to roll them.
    ///
    /// A workload that has reported nothing yet may have taken over the pods of a built-in one, which was deleted
    /// without them. The newest revision is that one's, and means the same if only what the two fill in differs.
    pub fn find_template(&self, live: &Template, reported: Reported<'_>) -> Match<'_> {
        let newest = |is_it: &dyn Fn(&RevisionView) -> bool| self.stored.iter().rposition(|view| is_it(view));
        let found = newest(&|view| is_equal(view, live));
        let found = found.or_else(|| newest(&|view| is_recorded(view, live)));
        let found = found.or_else(|| newest(&|view| reported.is_shortened(view, live)));
        let last = self.stored.len().checked_sub(1);
        let of_builtin = || last.filter(|_| reported.name.is_empty() && self.is_left_by_builtin(live));
        self.at(found.or_else(of_builtin))
    }

    /// Is the newest revision nobody's, and does it mean the same as the live template once both are completed?
    fn is_left_by_builtin(&self, live: &Template) -> bool {
        let last = self.stored.last().filter(|view| view.owner_uid().is_none());
        last.is_some_and(|view| is_equal_when_completed(view, live))
    }

    /// The revisions that hold the live template, oldest first: an earlier manager may have stored it twice.
    pub fn twins<'h>(&'h self, live: &'h Template) -> impl Iterator<Item = &'h Arc<RevisionView>> {
        self.stored
            .iter()
            .filter(|view| is_equal(view, live) || is_recorded(view, live))
    }

    /// Records that a revision is for the live template, if it lacks fields of it and the record is missing. Later
    /// edits of the workload that leave the template alone find the revision by it, and those of the template do
    /// not.
    pub fn record(&self, owner: &Owner<'_>, view: &RevisionView, live: &Template) -> Option<ObjectWrites> {
        let is_known = is_equal(view, live) || is_recorded(view, live);
        (!is_known).then(|| writes::record(owner, view, live))
    }

    fn at(&self, index: Option<usize>) -> Match<'_> {
        let next = self.stored.last().map_or(1, |last| last.number.saturating_add(1));
        match index.and_then(|index| Some((index, self.stored.get(index)?))) {
            None => Match::Missing(next),
            Some((index, view)) if index + 1 == self.stored.len() => Match::Newest(view),
            Some((_, view)) => Match::Older(view, next),
        }
    }

    /// A name for a revision of this data. A name that another object holds is a collision: the next is tried.
    pub fn identify(
        &self,
        owner: &Owner<'_>,
        data: &str,
        taken: &BTreeSet<String>,
        mut collision_count: i32,
    ) -> Identity {
        loop {
            let (name, hash) = identity_of(owner.name, data, collision_count);
            if self.get(&name).is_none() && !taken.contains(&name) {
                return Identity {
                    name,
                    hash,
                    collision_count,
                };
            }
            collision_count = collision_count.saturating_add(1);
        }
    }

    /// The templates of all revisions that hold one.
    pub fn templates(&self) -> impl Iterator<Item = &Revision> {
        (0..self.stored.len()).filter_map(|index| self.read(index))
    }

    /// The revision that a pod's label names.
    pub fn by_label(&self, label: &str) -> Option<&Revision> {
        let is_it = |view: &Arc<RevisionView>| go_compat::revision::label_matches_revision(label, &view.name);
        self.read(self.stored.iter().position(is_it)?)
    }

    fn read(&self, index: usize) -> Option<&Revision> {
        let view = self.stored.get(index)?;
        let read = self.read.get(index)?.get_or_init(|| Revision::stored(view));
        read.as_ref()
    }

    /// Deletes the oldest of the owner's revisions beyond those that stay. Revisions with one of the names `kept`
    /// are in use; of the others `is_used` is asked, which may be expensive. A revision that nobody controls counts
    /// as the owner's if it has such a name: those of a predecessor that was deleted without them.
    pub fn truncate(
        &self,
        owner: &Owner<'_>,
        keep: Keep,
        kept: &[&str],
        is_used: impl Fn(&RevisionView) -> bool,
        reason: &str,
    ) -> Vec<ObjectWrites> {
        let own = |view: &&Arc<RevisionView>| {
            let is_own = match view.owner_uid() {
                Some(uid) => uid == owner.uid,
                None => is_named_by(owner.name, &view.name),
            };
            is_own && !kept.contains(&&*view.name)
        };
        let mut unused: Vec<_> = self.stored.iter().filter(own).collect();
        let surplus = match keep {
            Keep::Unused(limit) => unused.len().saturating_sub(limit),
            Keep::InAll(limit) => self.stored.len().saturating_sub(limit),
        };
        if surplus == 0 {
            return Vec::new();
        }
        unused.retain(|view| !is_used(view));
        let surplus = match keep {
            Keep::Unused(limit) => unused.len().saturating_sub(limit),
            Keep::InAll(_) => surplus,
        };
        let surplus = unused.into_iter().take(surplus);
        surplus.map(|view| writes::delete(owner, view, reason)).collect()
    }
}
