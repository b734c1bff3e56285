//! Oracles of StatefulSets, written from their specification and that of in-place updates.

mod adoption;
mod change;
mod claims;
mod create;
mod end;
mod known;
mod report;
pub mod spec;

use super::start::{STATEFULSETS, Start};
use crate::rules::belief::Memory;
use crate::rules::lifecycle;
use crate::rules::pod_writes;
use crate::rules::prelude::*;
use crate::rules::settled::{each_takes, rollout};
use known::{Known, Pod};
use spec::{Gates, Spec};

/// What judges the StatefulSet of a scenario.
pub struct StatefulSetOracles {
    gates: Gates,
    /// Does a hook hold its pods before they are updated?
    has_hook: bool,
    memory: Memory,
}

impl StatefulSetOracles {
    /// For a StatefulSet that starts like this.
    pub fn new(start: &Start) -> Self {
        Self {
            gates: Gates::of(start),
            has_hook: start.hook,
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
        let set = mirror.last(STATEFULSETS, &known.uid)?;
        let Pod { seen, ordinal } = known.pod(pods[0])?;
        let may_return = || {
            let is_wanted = |spec: &Spec<'_>| spec.rank(*ordinal).is_some();
            let is_left = |spec: &Spec<'_>| !spec.updates() || seen.may_be(|pod| !pod.has_label(SPECIFIED));
            known.specs.iter().any(|spec| is_wanted(spec) && is_left(spec))
        };
        lifecycle::judge(write, pods, seen, &set.spec()["lifecycle"], may_return)
    }

    fn judge_pod(&self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let known = |uid: &str| Known::of(write, mirror, uid, self.gates, &self.memory.wrote);
        if let Some(new) = write.created(mirror, PODS) {
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
        let of = |uid: &Arc<str>| Known::of(write, mirror, uid, self.gates, &self.memory.wrote);
        let known: Vec<Known<'_>> = mirror.of(STATEFULSETS).objects.keys().map(of).collect();
        claims::judge(write, &known, mirror)
    }
}

impl Oracles for StatefulSetOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let verdict = self
            .judge_other(write, mirror)
            .or_else(|| report::judge(write, mirror))
            .or_else(|| self.judge_pod(write, mirror))
            .or_else(|| self.judge_claim(write, mirror));
        self.memory.remember(write, mirror);
        verdict
    }

    fn judge_other(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        pod_writes::judge_pods(write, mirror, STATEFULSETS)
    }

    fn unfinished(&self, mirror: &Mirror, now: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror, now, self.gates)
    }

    fn judge_sent(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        claims::judge_sent(write, mirror)
    }

    /// Those of the rollout.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<usize> {
        Some(rollout(mirror, STATEFULSETS, each_takes(self.has_hook), |set| {
            let spec = Spec::of(set, self.gates);
            let wanted = if spec.on_delete {
                0
            } else {
                spec.replicas - spec.partition
            };
            let revision = spec.update_revision(mirror);
            (wanted, move |pod: &Object| pod.label(REVISION) == revision)
        }))
    }
}
