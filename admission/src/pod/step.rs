//! What a step of the pod webhook is given, and what comes of it.

use crate::lookup::{Lookup, Lookups};
use crate::protocol::Write;
use crate::{Options, Request, Response};

/// What a step may look at.
pub(super) struct Context<'a> {
    pub(super) request: &'a Request,
    pub(super) options: Options,
    pub(super) lookups: &'a Lookups,
}

/// What a step did.
#[derive(Default)]
pub(super) struct Done {
    /// The pod is another one now.
    pub(super) changed: bool,
    /// Texts shown to the author of the pod.
    pub(super) warnings: Vec<String>,
    /// What has to be stored before the pod passes.
    pub(super) write: Option<Box<Write>>,
    /// No subset has room for the pod.
    pub(super) without_subset: bool,
}

impl Done {
    pub(super) const NOTHING: Self = Self {
        changed: false,
        warnings: Vec::new(),
        write: None,
        without_subset: false,
    };
    pub(super) const CHANGED: Self = Self {
        changed: true,
        warnings: Vec::new(),
        write: None,
        without_subset: false,
    };
}

/// Why a step did not finish.
pub(super) enum Stop {
    /// The pod is turned down.
    Deny(Response),
    /// Something has to be looked up first.
    Missing(Vec<Lookup>),
}

impl From<Lookup> for Stop {
    fn from(lookup: Lookup) -> Self {
        Self::Missing(vec![lookup])
    }
}

/// Refuses a pod for a reason that lies with us or our objects, not with its author: 500, as in OpenKruise.
pub(super) fn failed(message: String) -> Stop {
    Stop::Deny(Response::denied(500, message))
}
