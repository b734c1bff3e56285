//! Oracles: what judges managers while a scenario is played.
//!
//! Each oracle is written from the documentation of a kind, and knows nothing of how a manager decides. A write is
//! judged by what its sender could know: of every object, the version that it must know
//! ([`super::process::Sent::floors`]) or any later one. A write is a violation only if it would be one under each
//! of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::leader::Leader;

// All that oracles read.
pub use super::{
    mirror::{Log, Mirror},
    object::Object,
    process::{Process, ProcessId},
    report::Counters,
    resource::{CLAIMS, CONFIGMAPS, JOBS, NAMESPACES, NODES, PODS, REVISIONS, Resource},
    runtimes::RuntimeCall,
    verdict::Violation,
    write::Write,
};

/// What judges a subject in one play.
pub trait Oracles: Send {
    /// Judges a write of the subject's own controller that the API server accepted.
    fn judge(&mut self, _write: &Write<'_>, _mirror: &Mirror) -> Option<Violation> {
        None
    }

    /// Judges a write of a component that belongs to no subject.
    fn judge_other(&mut self, _write: &Write<'_>, _mirror: &Mirror) -> Option<Violation> {
        None
    }

    /// The first difference from the state that must be reached after the last edit and the last fault. `read` is the
    /// object at the path that the subject reads, or null.
    fn unfinished(&self, mirror: &Mirror, now: Timestamp, read: &Value) -> Result<(), String>;

    /// Did enough happen for the scenario to count, beyond the writes that it must have?
    fn counts(&self, _counters: &Counters) -> bool {
        true
    }

    /// How many writes are, about, under way, if that can be estimated from the objects.
    fn writes_to_come(&self, _mirror: &Mirror) -> Option<usize> {
        None
    }

    /// Judges the creation of a pod, or a change of a claim, when it is sent, whatever becomes of it.
    fn judge_sent(&mut self, _write: &Write<'_>, _mirror: &Mirror) -> Option<Violation> {
        None
    }

    /// Judges a call of a container runtime that an agent makes, whatever becomes of it.
    fn judge_call(&mut self, _call: &RuntimeCall<'_>, _mirror: &Mirror) -> Option<Violation> {
        None
    }

    /// A pod has this name.
    fn name_is_used(&mut self, _name: &str) {}

    /// Judges pods that were created, whoever created them.
    fn judge_newborn(&mut self, _mirror: &Mirror) -> Option<Violation> {
        None
    }

    /// A process begins to lead.
    fn begins_to_lead(&mut self, _process: ProcessId) {}
}

/// The oracles of all subjects of a scenario, and of the lease.
pub struct Judges {
    leader: Leader,
    subjects: Vec<Judge>,
}

/// A subject of a scenario, and what judges it.
pub struct Judge {
    /// The last part of its controller's user agent.
    pub component: Option<&'static str>,
    /// Is it a pod of its workload?
    pub owns: fn(&Object, &Mirror) -> bool,
    /// Must its controller take its own writes of pods into account in all that it decides later?
    pub remembers_pods: bool,
    /// The path of an object that its end conditions need and that no manager watches.
    pub reads: Option<&'static str>,
    /// So many writes of resources are needed for a scenario to count.
    pub least: &'static [(Resource, u32)],
    /// Is what it starts with large enough for the scenario to count?
    pub is_large: bool,
    /// Its oracles.
    pub oracles: Box<dyn Oracles>,
}

impl Judges {
    /// Those of subjects. Only leaders may write as one of `controllers`.
    pub fn new(controllers: Vec<&'static str>, subjects: Vec<Judge>) -> Self {
        Self {
            leader: Leader::of(controllers),
            subjects,
        }
    }

    /// Who holds the lease.
    pub fn leader(&self) -> Option<ProcessId> {
        self.leader.holder
    }

    /// The subjects, with the oracles of each.
    pub fn each(&self) -> impl Iterator<Item = &Judge> {
        self.subjects.iter()
    }

    /// Is it a pod of a subject's workload?
    pub fn own(&self, pod: &Object, mirror: &Mirror) -> bool {
        self.each().any(|one| (one.owns)(pod, mirror))
    }

    /// Did enough happen for the scenario to count, as far as the subjects are concerned?
    pub fn count(&self, counters: &Counters) -> bool {
        self.each().all(|one| {
            let mut least = one.least.iter();
            one.is_large
                && least.all(|(of, count)| counters.written(of.plural) >= *count)
                && one.oracles.counts(counters)
        })
    }

    fn each_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn Oracles>> {
        self.subjects.iter_mut().map(|one| &mut one.oracles)
    }

    /// Judges an accepted write.
    pub fn judge(
        &mut self,
        write: &Write<'_>,
        mirror: &Mirror,
        processes: &mut BTreeMap<ProcessId, Process>,
    ) -> Option<Violation> {
        if write.is_lease() {
            let before = self.leader.holder;
            self.leader.take(write, processes);
            if self.leader.holder == Some(write.process) && before != self.leader.holder {
                self.each_mut().for_each(|one| one.begins_to_lead(write.process));
            }
            return None;
        }
        let is_of = |one: &Judge| one.component == Some(write.component);
        let has_owner = self.each().any(is_of);
        let mut verdict = self.leader.judge(write);
        let mut remembers = false;
        for one in &mut self.subjects {
            if is_of(one) {
                verdict = verdict.or_else(|| one.oracles.judge(write, mirror));
                remembers |= one.remembers_pods;
            } else if !has_owner {
                verdict = verdict.or_else(|| one.oracles.judge_other(write, mirror));
            }
        }
        if remembers && write.resource == "pods" {
            self.learn(write, mirror, processes);
        }
        verdict
    }

    /// Judges pods that were created.
    pub fn judge_newborn(&mut self, mirror: &Mirror) -> Option<Violation> {
        self.each_mut().find_map(|one| one.judge_newborn(mirror))
    }

    /// Judges the creation of a pod, or a change of a claim, when it is sent.
    pub fn judge_sent(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        self.each_mut().find_map(|one| one.judge_sent(write, mirror))
    }

    /// Judges a call of a container runtime that an agent makes.
    pub fn judge_call(&mut self, call: &RuntimeCall<'_>, mirror: &Mirror) -> Option<Violation> {
        self.each_mut().find_map(|one| one.judge_call(call, mirror))
    }

    /// A pod has this name.
    pub fn name_is_used(&mut self, name: &str) {
        self.each_mut().for_each(|one| one.name_is_used(name));
    }

    /// A component knows what it wrote itself, unless it had given up waiting for the answer.
    fn learn(&mut self, write: &Write<'_>, mirror: &Mirror, processes: &mut BTreeMap<ProcessId, Process>) {
        let Some(change) = mirror.of(PODS).changes.last() else {
            return;
        };
        self.leader.note(write.component, change.version);
        if let Some(process) = processes.get_mut(&write.process)
            && !write.sent.is_given_up()
        {
            process.remembers(write.component, change.version);
        }
    }
}
