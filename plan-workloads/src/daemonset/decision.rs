//! What decisions are made from.

use kruise_api::daemonset::DaemonSet;
use kruise_plan_kit::{
    Memory,
    fit::Placement,
    rollout::{Pod, Rollout},
};

use super::{limits::Limits, places::Places, snapshot::Options};

/// What decisions are made from, each part read once.
pub(super) struct Decision<'p> {
    pub(super) set: &'p DaemonSet,
    pub(super) options: Options,
    pub(super) limits: Limits,
    pub(super) places: Places<'p>,
    pub(super) placement: &'p Placement,
    pub(super) rollout: Rollout<'p>,
    pub(super) memory: &'p Memory,
}

impl<'p> Decision<'p> {
    /// The pods that can be acted on.
    pub(super) fn active(&self) -> impl Iterator<Item = Pod<'p>> {
        let members = self.places.members();
        let active = members.filter(|member| member.is_living() && !member.orphan);
        active.map(|member| member.pod.clone())
    }
}
