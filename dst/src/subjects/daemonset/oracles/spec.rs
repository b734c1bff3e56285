//! A DaemonSet's specification as its documentation explains it.

use crate::rules::belief;
use crate::rules::prelude::*;
use crate::rules::template::same_template;

/// `burstReplicas` where nobody says otherwise.
const BURST: i64 = 250;

/// What a version of a DaemonSet demands. Percentages are of the nodes that are to have a pod now.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec<'a> {
    /// Updates only where somebody deletes a pod?
    pub on_delete: bool,
    /// No updates?
    pub paused: bool,
    /// In place where possible?
    pub in_place: bool,
    /// Seconds until a ready pod counts.
    pub min_ready_seconds: i64,
    /// Are pods created at first only as far as the partition allows?
    pub partitioned_scaling: bool,
    /// The pod template.
    pub template: &'a Value,
    max_unavailable: &'a Value,
    max_surge: &'a Value,
    partition: &'a Value,
    selector: &'a Value,
    burst: &'a Value,
}

impl<'a> Spec<'a> {
    /// Reads a DaemonSet.
    pub fn of(set: &'a Object) -> Self {
        let spec = set.spec();
        let strategy = &spec["updateStrategy"];
        let rolling = &strategy["rollingUpdate"];
        Self {
            on_delete: strategy["type"] == "OnDelete",
            paused: rolling["paused"] == true,
            in_place: rolling["rollingUpdateType"] == "InPlaceIfPossible",
            min_ready_seconds: number(&spec["minReadySeconds"]),
            partitioned_scaling: spec["scaleStrategy"]["partitionedScaling"] == true,
            template: &spec["template"],
            max_unavailable: &rolling["maxUnavailable"],
            max_surge: &rolling["maxSurge"],
            partition: &rolling["partition"],
            selector: &rolling["selector"],
            burst: &spec["burstReplicas"],
        }
    }

    /// May pods be updated that nobody deletes?
    pub fn updates(&self) -> bool {
        !self.paused && !self.on_delete
    }

    /// Is there a new pod beside the old one while a node is updated?
    pub fn surges(&self) -> bool {
        !self.on_delete && rounded_up(self.max_surge, 1, 0) > 0
    }

    /// Nodes that may have two pods while they are updated.
    pub fn max_surge(&self, desired: i64) -> i64 {
        rounded_up(self.max_surge, desired, 0)
    }

    /// Nodes that may be without an available pod while they are updated.
    pub fn max_unavailable(&self, desired: i64) -> i64 {
        let unavailable = rounded_up(self.max_unavailable, desired, 0);
        let surge = self.max_surge(desired);
        if unavailable == 0 && surge == 0 {
            1
        } else {
            unavailable
        }
    }

    /// Nodes that keep their old pods.
    pub fn partition(&self, desired: i64) -> i64 {
        rounded_down(self.partition, desired, 0).clamp(0, desired.max(0))
    }

    /// Creations, deletions and updates in place in one step, of each.
    pub fn burst(&self, desired: i64) -> i64 {
        rounded_down(self.burst, desired, BURST).max(1)
    }

    /// Is a node one of those that are updated?
    pub fn selects(&self, node: &Object) -> bool {
        matches(self.selector, node)
    }

    /// Are only some nodes updated?
    pub fn has_selector(&self) -> bool {
        self.selector["matchLabels"].is_object()
    }

    /// Is this revision one of this template?
    pub fn is_revision(&self, revision: &Object) -> bool {
        same_template(&revision.value()["data"]["spec"]["template"], self.template)
    }

    /// The hash of this template's revision, or `""`.
    pub fn hash<'m>(&self, mirror: &'m Mirror) -> &'m str {
        let revisions = mirror.of(REVISIONS);
        let gone = revisions.objects.values().filter_map(|versions| versions.last());
        let mut all = revisions.now().chain(gone);
        let found = all.find(|one| self.is_revision(one));
        found.map_or("", |one| one.label(REVISION))
    }

    /// Its numbers.
    pub fn brief(&self) -> String {
        format!(
            "maxUnavailable {} maxSurge {} partition {} selector {} burst {} paused {} onDelete {} inPlace {} \
             minReady {} partitionedScaling {}",
            self.max_unavailable,
            self.max_surge,
            self.partition,
            self.selector["matchLabels"],
            self.burst,
            self.paused,
            self.on_delete,
            self.in_place,
            self.min_ready_seconds,
            self.partitioned_scaling,
        )
    }
}

/// The revision with a hash, though it may be gone.
pub fn revision<'m>(mirror: &'m Mirror, hash: &str) -> Option<&'m Object> {
    belief::revision(mirror, |one| one.label(REVISION) == hash)
}
