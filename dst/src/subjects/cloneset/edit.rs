//! How users edit a CloneSet.

use super::start::Policy;
use crate::rules::prelude::*;

/// A user's edit of a CloneSet, or of a Deployment in its place.
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
    Partition(String),
    /// No `partition` any more.
    Everywhere,
    /// `maxUnavailable`.
    MaxUnavailable(String),
    /// `maxSurge`.
    MaxSurge(String),
    /// `paused`.
    Paused(bool),
    /// `podUpdatePolicy`.
    Policy(Policy),
    /// `podsToDelete`: the pods at these places in the order of names. True: `replicas` shrinks by as many.
    PodsToDelete(Vec<u8>, bool),
    /// The label `specified-delete` on the pod at this place.
    MarkPod(u8),
    /// So many hundredths of a processor for the container. Never an amount that was before: a manager that dies
    /// between a resize and the write that records it leaves no trace of what the pod had.
    Cpu(u32),
    /// More of a processor than any node has, for the container.
    TooMuch,
    /// So many hundredths of a processor again, after it was too much.
    Enough(u32),
    /// Another value of the annotation that the container reads.
    Config(u32),
    /// No annotation that the container reads any more.
    ConfigGone,
    /// Another image for both containers.
    Both(u32),
    /// `minReadySeconds`.
    MinReady(u32),
    /// `progressDeadlineSeconds`; zero for none.
    Deadline(u32),
    /// Pods are updated when somebody deletes them, or as at first again.
    OnDelete(bool),
    /// Another size in the claim template.
    ClaimSize(u32),
    /// Whether claims are reused.
    Reuse(bool),
}

impl Edit {
    /// Does it end what would keep the CloneSet from its end?
    pub fn is_release(&self) -> bool {
        matches!(
            self,
            Self::Paused(false) | Self::Enough(_) | Self::OnDelete(false) | Self::Everywhere
        )
    }
}
