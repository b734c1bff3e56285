//! Oracles of StatefulSets, written from their specification and that of in-place updates.

mod adoption;
mod change;
mod claims;
mod create;
mod end;
mod known;
mod report;
pub mod spec;

use super::start::{CONTROLLER, STATEFULSETS, Start};
use crate::rules::belief::{Memory, created};
use crate::rules::lifecycle;
use crate::rules::pod_writes;
use crate::rules::prelude::*;
use known::{Known, Pod};
use spec::{Gates, Spec};

/// Least of replicas at first for a scenario to count.
const REPLICAS: u32 = 5;
/// Writes, about, that it takes to update a pod, with its share of those of the status.
const UPDATE: [u32; 2] = [6, 8];
/// Writes that each rollout takes once.
const REST: u32 = 5;

/// What judges the StatefulSet of a scenario.
pub struct StatefulSetOracles {
    start: Start,
    gates: Gates,
    memory: Memory,
}

impl StatefulSetOracles {
    /// For a StatefulSet that starts like this.
    pub fn new(start: Start) -> Self {
        Self {
            gates: Gates::of(&start),
            start,
            memory: Memory::default(),
        }
    }

    /// A pod that a hook holds returns only if it is wanted and nobody requested its deletion.
    fn judge_phase(
        write: &Write<'_>,
        pods: [&Object; 2],
        known: &Known<'_>,
        mirror: &Mirror,
    ) -> Option<Violation> {
        let set = mirror.of(STATEFULSETS).objects.get(&*known.uid)?.last()?;
        let Pod { seen, ordinal } = known.pod(pods[0])?;
        let may_return = || {
            let is_wanted = |spec: &Spec<'_>| spec.rank(*ordinal).is_some();
            let is_left = |spec: &Spec<'_>| !spec.updates() || seen.may_be(|pod| !pod.has_label(SPECIFIED));
            known.specs.iter().any(|spec| is_wanted(spec) && is_left(spec))
        };
        lifecycle::judge(write, pods, seen, &set.value()["spec"]["lifecycle"], may_return)
    }

    fn judge_pod(&self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let known = |uid: &str| Known::of(write, mirror, uid, self.gates, &self.memory.wrote);
        if let Some(new) = created(write, mirror) {
            // Pods that the same plan updates are decided after those that it creates.
            let known = Known::of(write, mirror, new.owner(), self.gates, &self.memory.created);
            return create::judge(write, new, &known, mirror);
        }
        let pods = write.pod(mirror)?;
        let known = known(pods[0].owner());
        adoption::judge(write, pods, mirror)
            .or_else(|| claims::judge_deletion(write, pods[0], &known, mirror))
            .or_else(|| Self::judge_phase(write, pods, &known, mirror))
            .or_else(|| change::judge(write, pods, &known, mirror))
    }

    fn judge_claim(&self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let uids = mirror.of(STATEFULSETS).objects.keys();
        let known: Vec<Known<'_>> = uids
            .map(|uid| Known::of(write, mirror, uid, self.gates, &self.memory.wrote))
            .collect();
        claims::judge(write, &known, mirror)
    }
}

impl Oracles for StatefulSetOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let mut verdict =
            pod_writes::judge_pods(write, mirror, STATEFULSETS).or_else(|| report::judge(write, mirror));
        if write.component == CONTROLLER {
            verdict = verdict
                .or_else(|| self.judge_pod(write, mirror))
                .or_else(|| self.judge_claim(write, mirror));
            self.memory.remember(write, mirror);
        }
        verdict
    }

    fn unfinished(&self, mirror: &Mirror, now: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror, now, self.gates)
    }

    fn judge_sent(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        claims::judge_sent(write, mirror)
    }

    fn owns(&self, pod: &Object, mirror: &Mirror) -> bool {
        let set = mirror.of(STATEFULSETS).now().next();
        set.is_some_and(|set| pod.owner() == &*set.uid)
    }

    fn counts(&self, _: &Counters) -> bool {
        self.start.replicas >= REPLICAS
    }

    /// Those of the rollout.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<u32> {
        Some(match outdated(mirror, self.gates) {
            0 => 0,
            pods => REST + pods * UPDATE[usize::from(self.start.hook)],
        })
    }
}

/// Pods that the StatefulSet is still to update.
fn outdated(mirror: &Mirror, gates: Gates) -> u32 {
    let Some(set) = mirror.of(STATEFULSETS).now().next() else {
        return 0;
    };
    let spec = Spec::of(set, gates);
    if spec.on_delete {
        return 0;
    }
    let revision = spec.update_revision(mirror);
    let pods = mirror.of(PODS).now();
    let updated = pods.filter(|pod| pod.owner() == &*set.uid && pod.label(REVISION) == revision);
    (spec.replicas - spec.partition - updated.count() as i64).max(0) as u32
}
