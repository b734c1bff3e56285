//! Oracles of StatefulSets, written from their specification and that of in-place updates.

mod adoption;
mod change;
mod claims;
mod create;
mod end;
mod hooks;
mod known;
mod report;
pub mod spec;

use jiff::Timestamp;
use serde_json::Value;

use known::{Known, Wrote};
use spec::{Gates, Spec};

use super::start::{CONTROLLER, STATEFULSETS, Start};
use crate::engine::oracles::{Counters, Mirror, Object, Oracles, PODS, Violation, Write};
use crate::subjects::labels::REVISION;
use crate::subjects::pod_writes;

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
    /// All that a process wrote of pods, and what it created.
    wrote: Wrote,
    created: Wrote,
}

impl StatefulSetOracles {
    /// For a StatefulSet that starts like this.
    pub fn new(start: Start) -> Self {
        Self {
            gates: Gates::of(&start),
            start,
            wrote: Wrote::new(),
            created: Wrote::new(),
        }
    }

    fn judge_pod(&self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let known = |uid: &str| Known::of(write, mirror, uid, self.gates, &self.wrote);
        if let Some(new) = create::created(write, mirror) {
            // Pods that the same plan updates are decided after those that it creates.
            let known = Known::of(write, mirror, new.owner(), self.gates, &self.created);
            return create::judge(write, new, &known, mirror);
        }
        let pods = write.pod(mirror)?;
        let known = known(pods[0].owner());
        adoption::judge(write, pods, mirror)
            .or_else(|| claims::judge_deletion(write, pods[0], &known, mirror))
            .or_else(|| hooks::judge(write, pods, &known, mirror))
            .or_else(|| change::judge(write, pods, &known, mirror))
    }

    fn judge_claim(&self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let uids = mirror.of(STATEFULSETS).objects.keys();
        let known: Vec<Known<'_>> = uids
            .map(|uid| Known::of(write, mirror, uid, self.gates, &self.wrote))
            .collect();
        claims::judge(write, &known, mirror)
    }

    /// What a process wrote itself it must know.
    fn remember(&mut self, write: &Write<'_>, mirror: &Mirror) {
        let versions = mirror.of(PODS).changed_at(write.marks.of(PODS));
        if let Some(written) = versions.and_then(|versions| versions.last())
            && write.resource == "pods"
        {
            let what = (write.process, written.version);
            self.wrote.insert(written.uid.clone(), what);
            if create::created(write, mirror).is_some() {
                self.created.insert(written.uid.clone(), what);
            }
        }
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
            self.remember(write, mirror);
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
