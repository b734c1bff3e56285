//! *"Only the leader writes."* Who has not renewed its lease within the deadline, or has given it back, sends nothing
//! more. What was sent before may still arrive.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::{
    process::{Process, ProcessId},
    verdict::Violation,
    write::Write,
};

/// The leader must renew its lease within this time or stop.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(20);

/// Who leads.
#[derive(Debug, Default)]
pub struct Leader {
    /// Who wrote its name into the lease last.
    pub holder: Option<ProcessId>,
    /// When each process last sent a renewal that was accepted; `None` after it gave the lease back.
    renewed: BTreeMap<ProcessId, Option<Instant>>,
    /// Newest version of pods that each component wrote.
    wrote: BTreeMap<String, u64>,
    /// Who must lead to write.
    controllers: Vec<&'static str>,
}

impl Leader {
    /// Nobody leads yet. These components write only while their process leads.
    pub fn of(controllers: Vec<&'static str>) -> Self {
        Self {
            controllers,
            ..Self::default()
        }
    }

    /// Takes a write of the lease. Who begins to lead must know all that others wrote.
    pub fn take(&mut self, write: &Write<'_>, processes: &mut BTreeMap<ProcessId, Process>) {
        let holder = write.body["spec"]["holderIdentity"].as_str().unwrap_or_default();
        if holder.is_empty() {
            self.holder = None;
            self.renewed.insert(write.process, None);
            return;
        }
        if self.holder != Some(write.process)
            && let Some(process) = processes.get_mut(&write.process)
        {
            for (component, version) in &self.wrote {
                process.remembers(component, *version);
            }
        }
        self.holder = Some(write.process);
        self.renewed.insert(write.process, Some(write.sent.at));
    }

    /// Notes the version of a write to pods.
    pub fn note(&mut self, component: &str, version: u64) {
        self.wrote.insert(component.to_owned(), version);
    }

    /// Judges a write of a controller.
    pub fn judge(&self, write: &Write<'_>) -> Option<Violation> {
        if !self.controllers.contains(&write.component) || write.resource == "events" {
            return None;
        }
        let renewed = self.renewed.get(&write.process).copied().flatten();
        let leads = renewed.is_some_and(|at| write.sent.at.duration_since(at) <= RENEW_DEADLINE);
        let what = format!(
            "{} wrote {} {} without leading",
            write.process, write.resource, write.name
        );
        (!leads).then_some(Violation {
            oracle: "only the leader writes",
            what,
        })
    }
}
