//! How users edit SidecarSets.

use crate::rules::prelude::*;

/// What a user does to the SidecarSet at a place.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// Creates it; means nothing if it is there.
    Create(u8),
    /// Deletes it.
    Delete(u8),
    /// Another image of its cold container.
    Image(u8, u32),
    /// Another image of its hot container.
    HotImage(u8, u32),
    /// Its hot container is removed, if it has a cold one besides.
    Drop(u8),
    /// Another value of a variable, which no pod takes in place.
    Env(u8, u32),
    /// `partition`.
    Partition(u8, String),
    /// `maxUnavailable`.
    MaxUnavailable(u8, String),
    /// `updateStrategy.paused`.
    Paused(u8, bool),
    /// Only pods that a user annotated are upgraded, or all.
    Selector(u8, bool),
    /// `updateStrategy.type`: whether pods are upgraded at all.
    Updates(u8, bool),
    /// `injectionStrategy.paused`.
    InjectionPaused(u8, bool),
    /// New pods get the revision that is the latest now, or the current specification again.
    Pinned(u8, bool),
    /// Whether the namespace has the label that SidecarSets may select.
    Namespace(bool),
}
