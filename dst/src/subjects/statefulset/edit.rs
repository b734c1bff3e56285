//! How users edit a StatefulSet.

use crate::rules::prelude::*;
use crate::subjects::cloneset::start::Policy;

/// A user's edit of a StatefulSet, or of what stands in its way.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// Another image: `web:<n>`.
    Image(u32),
    /// Another value of an environment variable, which no pod takes in place.
    Env(u32),
    /// Another template annotation, which pods take in place without a restart.
    Annotation(u32),
    /// `replicas`.
    Scale(u32),
    /// `partition`.
    Partition(u32),
    /// `maxUnavailable`, as text.
    MaxUnavailable(String),
    /// `scaleStrategy.maxUnavailable`, as text; empty for none.
    ScaleMaxUnavailable(String),
    /// `paused`.
    Paused(bool),
    /// `podUpdatePolicy`.
    Policy(Policy),
    /// `reserveOrdinals`.
    Reserve(Vec<String>),
    /// `ordinals.start`.
    First(u32),
    /// `minReadySeconds`.
    MinReady(u32),
    /// Pods are updated when somebody deletes them, or as at first again.
    OnDelete(bool),
    /// The label `specified-delete` on the pod at this place.
    MarkPod(u8),
    /// `persistentVolumeClaimRetentionPolicy`: whether claims are deleted when pods are scaled away, and with the
    /// StatefulSet.
    Retention(bool, bool),
    /// Another size in the claim template, in Gi.
    ClaimSize(u32),
    /// Whether claims may grow: `allowVolumeExpansion` of their class.
    Expansion(bool),
    /// Deletes the StatefulSet.
    Delete(Deletion),
    /// Creates it as at first, once the one before is gone; means nothing if it is there.
    Create,
    /// Somebody creates a pod with the labels and the name of the pod of an ordinal, without an owner.
    Orphan(u32),
    /// Somebody creates a pod with the name of the pod of an ordinal, and labels of its own.
    Foreign(u32),
}

/// How a StatefulSet is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Deletion {
    /// Its pods are deleted later.
    Background,
    /// Its pods are deleted first.
    Foreground,
    /// Its pods stay.
    Orphan,
}
