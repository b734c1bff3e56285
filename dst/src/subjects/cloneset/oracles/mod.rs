//! Oracles of CloneSets, written from their specification and that of in-place updates.

mod availability;
mod end;
mod hooks;
mod names;
mod order;
mod partition;
mod progressing;
mod report;
mod size;
mod spec;

use super::draft::CLONESETS;
use super::start::Start;
use crate::rules::pod_writes;
use crate::rules::prelude::*;
use names::Names;
use spec::Spec;

/// Least of replicas at first for a scenario to count.
const REPLICAS: u32 = 5;
/// Writes, about, that it takes to update a pod, with its share of those of the status: on average of 1,200 times that
/// scenarios settled 6.5, and 8.5 where a hook holds the pods.
const UPDATE: [u32; 2] = [6, 8];
/// Writes that each rollout takes once.
const REST: u32 = 5;

/// What judges the CloneSet of a scenario.
pub struct CloneSetOracles {
    start: Start,
    names: Names,
}

impl CloneSetOracles {
    /// For a CloneSet that starts like this.
    pub fn new(start: Start) -> Self {
        Self {
            start,
            names: Names::default(),
        }
    }
}

impl Oracles for CloneSetOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let verdict = pod_writes::judge(write, mirror, CLONESETS)
            .or_else(|| progressing::judge(write, mirror))
            .or_else(|| report::judge(write, mirror));
        verdict.or_else(|| {
            let known = spec::knowledge(write, mirror).filter(|_| write.resource == "pods")?;
            size::judge(write, &known, mirror, self.start.rolls_back)
                .or_else(|| partition::judge(write, &known, mirror, self.start.rolls_back))
                .or_else(|| order::judge(write, &known, mirror))
                .or_else(|| hooks::judge(write, &known, mirror))
                .or_else(|| availability::judge(write, &known, mirror))
        })
    }

    fn unfinished(&self, mirror: &Mirror, now: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror, now, self.start.rolls_back)
    }

    fn owns(&self, pod: &Object, mirror: &Mirror) -> bool {
        let set = mirror.of(CLONESETS).now().next();
        set.is_some_and(|set| pod.owner() == &*set.uid)
    }

    fn counts(&self, _: &Counters) -> bool {
        self.start.replicas >= REPLICAS
    }

    /// Those of the rollout.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<u32> {
        Some(match outdated(mirror) {
            0 => 0,
            pods => REST + pods * UPDATE[usize::from(self.start.hook)],
        })
    }

    fn judge_sent(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let creates = write.resource == "pods" && write.method == Method::Post;
        creates.then(|| self.names.sent(write, mirror)).flatten()
    }

    fn name_is_used(&mut self, name: &str) {
        self.names.is_used(name);
    }
}

/// Pods that the CloneSet is still to update.
fn outdated(mirror: &Mirror) -> u32 {
    let Some(set) = mirror.of(CLONESETS).now().next() else {
        return 0;
    };
    let spec = Spec::of(set);
    if spec.on_delete {
        return 0;
    }
    let is_updated = spec.is_updated(mirror);
    let pods = mirror.of(PODS).now();
    let updated = pods.filter(|pod| pod.owner() == &*set.uid && is_updated(pod));
    (spec.replicas - spec.partition - updated.count() as i64).max(0) as u32
}
