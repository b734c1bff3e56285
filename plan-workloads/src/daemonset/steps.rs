//! How much one plan does at a time.

use std::collections::BTreeSet;

use kruise_plan_kit::injected::is_injected;

/// What a plan may still do, of each kind `burstReplicas` at most.
pub(super) struct Steps<'a> {
    limit: i32,
    creates: i32,
    deletes: i32,
    updates: i32,
    /// Names of nodes whose pods the plan creates or deletes.
    touched: BTreeSet<&'a str>,
}

/// A kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Create,
    Delete,
    Update,
}

/// Why a step waits.
pub(super) const BURST: &str = "waits: burstReplicas is reached in this step";

impl<'a> Steps<'a> {
    pub(super) fn new(limit: i32) -> Self {
        Self {
            limit,
            creates: 0,
            deletes: 0,
            updates: 0,
            touched: BTreeSet::new(),
        }
    }

    fn done(&mut self, kind: Kind) -> &mut i32 {
        match kind {
            Kind::Create => &mut self.creates,
            Kind::Delete => &mut self.deletes,
            Kind::Update => &mut self.updates,
        }
    }

    /// Is there room for a step of this kind?
    pub(super) fn has_room(&mut self, kind: Kind) -> bool {
        let limit = self.limit;
        *self.done(kind) < limit || is_injected("BurstIgnored")
    }

    /// Counts a step on a node.
    pub(super) fn take(&mut self, kind: Kind, node: &'a str) {
        *self.done(kind) += 1;
        self.touched.insert(node);
    }

    /// Does the plan create or delete a pod of the node already?
    pub(super) fn has_touched(&self, node: &str) -> bool {
        self.touched.contains(node)
    }
}
