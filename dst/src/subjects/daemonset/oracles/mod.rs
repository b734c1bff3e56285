//! Oracles of DaemonSets, written from their specification and that of in-place updates.

mod bursts;
mod change;
mod create;
mod end;
mod fit;
mod known;
mod report;
mod spec;

use super::start::{CONTROLLER, DAEMONSETS, Start};
use crate::rules::belief::{Memory, created};
use crate::rules::lifecycle;
use crate::rules::pod_writes;
use crate::rules::prelude::*;
use crate::subjects::nodes::{Names, Newest, judge_names, judge_succession};
use bursts::{Bursts, Kind};
use change::Act;
use known::Known;
use spec::Spec;

/// Least of nodes at first for a scenario to count.
const LEAST: u8 = 5;
/// Writes, about, that it takes to update a pod, with its share of those of the status.
const UPDATE: u32 = 5;
/// Writes that each rollout takes once.
const REST: u32 = 5;

/// What judges the DaemonSet of a scenario.
pub struct DaemonSetOracles {
    start: Start,
    /// Has it at any time two pods on a node?
    surges: bool,
    memory: Memory,
    names: Names,
    newest: Newest,
    bursts: Bursts,
}

impl DaemonSetOracles {
    /// For a DaemonSet that starts like this. `surges`: may it have two pods on a node at any time?
    pub fn new(start: Start, surges: bool) -> Self {
        Self {
            start,
            surges,
            memory: Memory::default(),
            names: Names::new(),
            newest: Newest::new(),
            bursts: Bursts::default(),
        }
    }

    /// A pod that a hook holds does not return.
    fn judge_phase(
        write: &Write<'_>,
        pods: [&Object; 2],
        known: &Known<'_>,
        mirror: &Mirror,
    ) -> Option<Violation> {
        let set = mirror.of(DAEMONSETS).objects.get(&*known.uid)?.last()?;
        let pod = known.pod(&pods[0].uid)?;
        lifecycle::judge(write, pods, &pod.seen, &set.value()["spec"]["lifecycle"], || {
            false
        })
    }

    fn judge_pod(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if let Some(new) = created(write, mirror) {
            // Pods that the same plan deletes are decided at the same time.
            let known = Known::of(write, mirror, new.owner(), &self.memory.created);
            never!(write, "revisions before pods",
                !create::has_revision(new, mirror) => "there is no {}", new.label(REVISION));
            return create::judge(write, new, &known, mirror, self.surges).or_else(|| {
                self.bursts
                    .judge(write, Kind::Creates, (&new.name, new.version), &known)
            });
        }
        let pods = write.pod(mirror)?;
        let known = Known::of(write, mirror, pods[0].owner(), &self.memory.wrote);
        let kind = match change::act(write, pods[0], pods[1]) {
            Some(Act::Removes) => Some(Kind::Removes),
            Some(Act::Updates) => Some(Kind::Updates),
            None => None,
        };
        Self::judge_phase(write, pods, &known, mirror)
            .or_else(|| change::judge(write, pods, &known, mirror))
            .or_else(|| {
                self.bursts
                    .judge(write, kind?, (&pods[1].name, pods[1].version), &known)
            })
    }
}

impl Oracles for DaemonSetOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let mut verdict =
            pod_writes::judge_pods(write, mirror, DAEMONSETS).or_else(|| report::judge(write, mirror));
        if write.component == CONTROLLER {
            let succession = judge_succession(write, mirror, &mut self.newest);
            verdict = verdict.or(succession).or_else(|| self.judge_pod(write, mirror));
            self.memory.remember(write, mirror);
        }
        verdict
    }

    fn unfinished(&self, mirror: &Mirror, now: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror, now)
    }

    fn judge_sent(&mut self, write: &Write<'_>, _: &Mirror) -> Option<Violation> {
        if write.component != CONTROLLER || write.resource != "pods" || write.method != Method::Post {
            return None;
        }
        judge_names(write, &mut self.names)
    }

    fn owns(&self, pod: &Object, mirror: &Mirror) -> bool {
        let set = mirror.of(DAEMONSETS).now().next();
        set.is_some_and(|set| pod.owner() == &*set.uid)
    }

    fn counts(&self, _: &Counters) -> bool {
        self.start.nodes >= LEAST
    }

    /// Those of the rollout.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<u32> {
        Some(match outdated(mirror) {
            0 => 0,
            pods => REST + pods * UPDATE,
        })
    }
}

/// Pods that the DaemonSet is still to update.
fn outdated(mirror: &Mirror) -> u32 {
    let Some(set) = mirror.of(DAEMONSETS).now().next() else {
        return 0;
    };
    let spec = Spec::of(set);
    if spec.on_delete {
        return 0;
    }
    let nodes = mirror.of(NODES).now();
    let desired = nodes.filter(|node| fit::runs(spec.template, node)).count() as i64;
    let hash = spec.hash(mirror);
    let pods = mirror.of(PODS).now();
    let updated = pods.filter(|pod| pod.owner() == &*set.uid && pod.label(REVISION) == hash);
    (desired - spec.partition(desired) - updated.count() as i64).max(0) as u32
}
