//! An update that is under way.

use std::sync::Arc;

use serde_json::Value;

use super::Touched;

/// An update under way.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// Of the object as it was read.
    pub(super) revision: u64,
    pub(super) old: Arc<Value>,
    pub(super) new: Value,
    pub(super) touched: Touched,
    pub(super) warnings: Vec<String>,
    pub(super) next: Next,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Mutating webhooks, and all that follows.
    Mutate,
    /// Validating webhooks, and the write.
    Admit,
}
