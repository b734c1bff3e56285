//! Which of the nodes without a pod get one.

use kruise_plan_kit::injected::is_injected;

use super::{create::NewPods, decision::Decision, limits::is_rolling, places::Place};

/// Why a node gets no pod yet.
pub(super) const WITHHELD: &str =
    "gets no pod yet: partitionedScaling leaves as many nodes without one as the partition says";

/// Nodes without a pod, in name order.
pub(super) struct Creations<'d> {
    /// Get one.
    pub(super) due: Vec<&'d Place<'d>>,
    /// Get none, because of the partition.
    pub(super) withheld: Vec<&'d Place<'d>>,
}

fn is_empty(place: &Place<'_>) -> bool {
    let twice = is_injected("NodePodTwice");
    place.members.iter().all(|member| twice && member.is_leaving())
}

impl Decision<'_> {
    /// Divides the nodes without a pod.
    ///
    /// The partition holds back first pods only. First pods are created in name order, so a node with a lower name
    /// than one that has a pod had one, or joined. Of the others, as many had one as the status reports more than
    /// there are.
    pub(super) fn creations(&self, new_pods: &NewPods<'_>) -> Creations<'_> {
        let empty = self.places.eligible().filter(|place| is_empty(place));
        let mut all = Creations {
            due: Vec::new(),
            withheld: Vec::new(),
        };
        let Some(mut room) = self.room_for_first() else {
            all.due = empty.collect();
            return all;
        };
        let mut occupied = self.places.eligible().filter(|place| !place.members.is_empty());
        let last = occupied.next_back().map(|place| place.name);
        let mut lost = self.lost();
        for place in empty {
            let had_one = last.is_some_and(|last| place.name < last) || self.is_refused(new_pods, place);
            if had_one || lost > 0 || room > 0 {
                // Whichever it is, its pod will be one of those that the partition allows.
                (lost, room) = (lost - 1, room - 1);
                all.due.push(place);
            } else {
                all.withheld.push(place);
            }
        }
        all
    }

    /// Did the server refuse the pod of this node when it was last asked?
    pub(super) fn is_refused(&self, new_pods: &NewPods<'_>, place: &Place<'_>) -> bool {
        let refused = &self.memory.refused_names;
        !refused.is_empty() && refused.contains(&new_pods.name(place.name))
    }

    /// How many first pods the partition allows; `None` is no limit.
    fn room_for_first(&self) -> Option<i64> {
        let limits = self.limits;
        let spec = &self.set.spec;
        let is_limited = spec.scale_strategy.partitioned_scaling && !is_injected("FirstPodsUnlimited");
        if !is_rolling(spec) || !is_limited || limits.partition == 0 {
            return None;
        }
        let has_new = |place: &&Place<'_>| place.members.iter().any(|member| member.pod.updated);
        let updated = self.places.eligible().filter(has_new).count() as i64;
        let kept = limits.partition.min(limits.desired);
        Some((i64::from(limits.desired) - updated - i64::from(kept)).max(0))
    }

    /// How many pods are gone since the last report, not counting those whose nodes are gone, or are to have none
    /// any more.
    ///
    /// The number of nodes does not show that a node is to have none if another one joined meanwhile: that of
    /// misscheduled pods does.
    fn lost(&self) -> i64 {
        let status = &self.set.status;
        let has_pod = |place: &&Place<'_>| !place.members.is_empty();
        let current = self.places.eligible().filter(has_pod).count() as i64;
        let left = i64::from(status.desired_number_scheduled) - i64::from(self.limits.desired);
        let misscheduled = self.places.misscheduled().count() as i64;
        let stranded = misscheduled - i64::from(status.number_misscheduled);
        let gone = left.max(stranded).max(0);
        (i64::from(status.current_number_scheduled) - current - gone).max(0)
    }
}
