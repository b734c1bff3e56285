//! What decisions are made from.

use std::collections::BTreeSet;

use kruise_api::statefulset::StatefulSet;
use kruise_plan_kit::rollout::{Pod, Rollout};
use kruise_views::PodView;

use super::{
    Ordinals,
    claims::Claims,
    limits::Limits,
    members::Members,
    resize::Resize,
    retention::Retention,
    snapshot::{Find, Options},
};

/// What decisions are made from, each part read once.
pub(super) struct Decision<'p> {
    pub(super) set: &'p StatefulSet,
    pub(super) options: Options,
    pub(super) limits: Limits,
    pub(super) ordinals: Ordinals,
    pub(super) members: Members<'p>,
    pub(super) claims: Claims<'p>,
    /// `None` if claims are left alone.
    pub(super) retention: Option<Retention>,
    pub(super) resize: Resize<'p>,
    pub(super) rollout: Rollout<'p>,
    /// Names of pods that the server refused.
    pub(super) refused_names: &'p BTreeSet<String>,
    /// Finds a pod, whosever it is.
    pub(super) find_pod: Find<'p, PodView>,
}

impl Decision<'_> {
    /// The pods that can be acted on.
    pub(super) fn active(&self) -> impl Iterator<Item = Pod<'_>> {
        let members = self.members.all().filter(|member| member.is_active());
        members.map(|member| member.pod.clone())
    }

    /// Those of them that stay.
    pub(super) fn slots(&self) -> impl Iterator<Item = Pod<'_>> {
        let members = self.members.slots.iter().filter(|member| member.is_active());
        members.map(|member| member.pod.clone())
    }
}
