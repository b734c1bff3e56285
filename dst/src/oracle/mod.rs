//! Who watches that nothing forbidden happens.
//!
//! Each oracle is written from the specification of CloneSets and of in-place updates, and knows nothing of how the
//! manager decides. What a manager does is judged by what it could know: of every object, the version it must know of
//! at least (see `Process::floors`) or any later one; of sets likewise. An action is a violation only if it would be
//! one under each of them.

mod availability;
mod batches;
mod claims;
mod end;
mod environment;
mod guards;
mod hooks;
mod knowledge;
mod leader;
mod names;
mod order;
mod partition;
mod progressing;
mod readiness;
mod report;
mod resources;
pub mod sidecars;
mod size;
mod spec;
mod write;

use std::collections::BTreeMap;

use leader::Leader;
use names::Names;

use crate::{
    history::Watched,
    mirror::Mirror,
    network::{Process, ProcessId},
};

pub use knowledge::{Knowledge, Seen};
pub use spec::Spec;
pub use write::Write;

/// Something that must not happen, happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which oracle says so.
    pub oracle: &'static str,
    /// What it saw.
    pub what: String,
}

/// All oracles that judge writes.
#[derive(Debug, Default)]
pub struct Oracles {
    leader: Leader,
    names: Names,
    sidecars: sidecars::Oracle,
    /// Do managers bring pods back when the partition grows?
    pub goes_back: bool,
}

impl Oracles {
    /// Who holds the lease.
    pub fn leader(&self) -> Option<ProcessId> {
        self.leader.holder
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
                self.sidecars.begins(write.process);
            }
            return None;
        }
        let verdict = self.leader.judge(write);
        if write.component == "sidecarset-controller" {
            return verdict.or_else(|| self.sidecars.judge(write, mirror));
        }
        let verdict = verdict.or_else(|| guards::judge(write, mirror));
        let verdict = verdict.or_else(|| claims::judge(write, mirror));
        let verdict = verdict
            .or_else(|| readiness::judge(write, mirror))
            .or_else(|| resources::judge(write, mirror))
            .or_else(|| environment::judge(write, mirror))
            .or_else(|| batches::judge(write, mirror))
            .or_else(|| progressing::judge(write, mirror))
            .or_else(|| report::judge(write, mirror));
        let verdict = verdict.or_else(|| {
            let known = Knowledge::of(write, mirror).filter(|_| write.resource == "pods")?;
            let verdict = size::judge(write, &known, mirror, self.goes_back);
            verdict
                .or_else(|| partition::judge(write, &known, mirror, self.goes_back))
                .or_else(|| order::judge(write, &known, mirror))
                .or_else(|| hooks::judge(write, &known, mirror))
                .or_else(|| availability::judge(write, &known, mirror))
        });
        self.learn(write, mirror, processes);
        verdict
    }

    /// Judges pods that came to be, whoever made them.
    pub fn judge_newborn(&mut self, mirror: &Mirror) -> Option<Violation> {
        self.sidecars.newborn(mirror)
    }

    /// Judges a creation of a pod that is sent.
    pub fn judge_name(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        self.names.asked(write, mirror)
    }

    /// A name is in use.
    pub fn name_is_used(&mut self, name: &str) {
        self.names.is_used(name);
    }

    /// A manager knows what it wrote itself, unless it had given up waiting for the answer.
    fn learn(&mut self, write: &Write<'_>, mirror: &Mirror, processes: &mut BTreeMap<ProcessId, Process>) {
        if write.resource != "pods" || write.component != "cloneset-controller" {
            return;
        }
        let Some(change) = mirror.of(Watched::Pods).log.last() else {
            return;
        };
        self.leader.note(change.version);
        if let Some(process) = processes
            .get_mut(&write.process)
            .filter(|_| !write.sent.is_given_up())
        {
            process.wrote = process.wrote.max(change.version);
        }
    }
}
