//! What users do to a budget, and to the pods that it covers.

use super::start::Limit;
use crate::rules::prelude::*;

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// Creates the budget; means nothing if it is there.
    Create,
    /// Deletes it.
    Delete,
    /// Deletes it and creates it under another name.
    Rename,
    /// Another limit.
    Limit(Limit),
    /// Other `protectOperations`; none is the default.
    Operations(Vec<String>),
    /// Makes a node unschedulable and evicts its pods, as `kubectl drain` does, and makes it schedulable again.
    Drain(u8),
    /// Evicts the pod at this place, only to see whether that works.
    Try(u8),
    /// Deletes the pod at this place, and the next one of its name as soon as it is available.
    Twice(u8),
    /// Says of the pod at this place that no budget protects it.
    Exempt(u8),
    /// Labels the pod at this place as unavailable, or takes the label away.
    Label(u8, bool),
    /// Takes this label away from all pods.
    Unlabel,
    /// Another image for the pod at this place.
    Image(u8, u32),
    /// So many hundredths of a processor for the pod at this place.
    Resize(u8, u32),
    /// Creates the guest at this place, with so many replicas and this image; means nothing if it is there.
    Invite(u8, u32, u32),
    /// Scales the guest at this place.
    ScaleGuest(u8, u32),
    /// Deletes the guest at this place.
    Dismiss(u8, Propagation),
    /// A limit and operations under which everything ends.
    Open,
}

/// What becomes of the pods of a Deployment that is deleted, by its `propagationPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Propagation {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}
