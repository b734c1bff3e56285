//! When a brief history has shown enough: as soon as it counts, with what managers are still to write.

use crate::{
    cluster::State,
    history::{History, Start, Watched},
    oracle::Spec,
    report::RICH,
};

/// Writes of pods by SidecarSets that a brief history with such sets waits for.
const UPGRADES: u32 = 6;

/// Writes, about, until all is as it should be, where nothing tells better: with SidecarSets, the first time.
pub const SETTLING: u32 = 50;

/// Writes, about, that it takes to update a pod, with its share of those of the set's status: on average of 1,200 times
/// that histories settled 6.5, and 8.5 where a hook holds the pods.
const UPDATE: [u32; 2] = [6, 8];
/// And those that come on top once.
const REST: u32 = 5;

impl State {
    /// Whether what is left of a history need not happen, because it counts when so many more writes are made.
    pub fn is_enough(&self, history: &History, more: u32) -> bool {
        let upgrades = if history.sidecars.is_some() { UPGRADES } else { 0 };
        let writes = RICH.writes.saturating_sub(more);
        history.brief
            && self.counters.upgrades >= upgrades
            && self.counters.are_at_least(history.set.replicas, writes)
    }

    /// Whether it need not happen because of what is under way. `settling` is what the history wrote when it settled the
    /// last time.
    pub fn will_be_enough(&self, history: &History, settling: u32) -> bool {
        let more = || match history.sidecars {
            Some(_) => settling,
            None => self.writes_of_rollout(&history.set),
        };
        // What else it needs is told sooner.
        self.is_enough(history, RICH.writes) && self.is_enough(history, more())
    }

    /// Writes, about, until the rollout of the CloneSet is complete.
    fn writes_of_rollout(&self, start: &Start) -> u32 {
        match self.outdated() {
            0 => 0,
            pods => REST + pods * UPDATE[usize::from(start.hook)],
        }
    }

    /// Pods that the CloneSet is still to update.
    fn outdated(&self) -> u32 {
        let Some(set) = self.mirror.of(Watched::Sets).now().next() else {
            return 0;
        };
        let spec = Spec::of(set);
        if spec.on_delete {
            return 0;
        }
        let is_updated = spec.is_updated(&self.mirror);
        let pods = self.mirror.of(Watched::Pods).now();
        let updated = pods.filter(|pod| pod.owner() == &*set.uid && is_updated(pod));
        (spec.replicas - spec.partition - updated.count() as i64).max(0) as u32
    }
}
