//! Oracles of DaemonSets, written from their specification and that of in-place updates.

mod bursts;
mod change;
mod create;
mod end;
mod known;
mod report;
mod spec;

use super::start::DAEMONSETS;
use crate::rules::belief::Memory;
use crate::rules::lifecycle;
use crate::rules::pod_writes;
use crate::rules::prelude::*;
use crate::rules::settled::rollout;
use crate::subjects::nodes::OnNodes;
use bursts::{Bursts, Kind};
use change::Act;
use known::{Known, runs};
use spec::Spec;

/// What judges the DaemonSet of a scenario.
#[derive(Default)]
pub struct DaemonSetOracles {
    /// Has it at any time two pods on a node?
    surges: bool,
    memory: Memory,
    names: OnNodes,
    bursts: Bursts,
}

impl DaemonSetOracles {
    /// For a DaemonSet that has two pods on a node at some time, or never.
    pub fn new(surges: bool) -> Self {
        Self {
            surges,
            ..Self::default()
        }
    }

    /// A pod that a hook holds does not return.
    fn judge_phase(
        write: &Write<'_>,
        pods: [&Object; 2],
        known: &Known<'_>,
        mirror: &Mirror,
    ) -> Option<Violation> {
        let set = mirror.last(DAEMONSETS, &known.uid)?;
        let pod = known.pod(&pods[0].uid)?;
        lifecycle::judge(write, pods, &pod.seen, &set.spec()["lifecycle"], || false)
    }

    fn judge_pod(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if let Some(new) = write.created(mirror, PODS) {
            // Pods that the same plan deletes are decided at the same time.
            let known = Known::of(write, mirror, new.owner(), &self.memory.created);
            never!(write, "revisions before pods",
                !create::has_revision(new, mirror) => "there is no {}", new.label(REVISION));
            return create::judge(write, new, &known, mirror, self.surges)
                .or_else(|| self.bursts.judge(write, Kind::Creates, new, &known));
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
            .or_else(|| self.bursts.judge(write, kind?, pods[1], &known))
    }
}

impl Oracles for DaemonSetOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let verdict = self
            .judge_other(write, mirror)
            .or_else(|| report::judge(write, mirror));
        let succession = self.names.judge(write, mirror);
        let verdict = verdict.or(succession).or_else(|| self.judge_pod(write, mirror));
        self.memory.remember(write, mirror);
        verdict
    }

    fn judge_other(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        pod_writes::judge_pods(write, mirror, DAEMONSETS)
    }

    fn unfinished(&self, mirror: &Mirror, now: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror, now)
    }

    fn judge_sent(&mut self, write: &Write<'_>, _: &Mirror) -> Option<Violation> {
        self.names.judge_sent(write, super::SUBJECT.component)
    }

    /// Those of the rollout: with its share of those of the status a pod takes about five.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<usize> {
        Some(rollout(mirror, DAEMONSETS, 5, |set| {
            let spec = Spec::of(set);
            let nodes = mirror.of(NODES).now();
            let desired = nodes.filter(|node| runs(spec.template, node)).count() as i64;
            let wanted = if spec.on_delete {
                0
            } else {
                desired - spec.partition(desired)
            };
            let hash = spec.hash(mirror);
            (wanted, move |pod: &Object| pod.label(REVISION) == hash)
        }))
    }
}
