//! Oracles of PersistentPodStates, written from their specification.
//!
//! They read the API server's own record. A write of the controller is judged by what it may have believed, and a
//! new pod by what the webhook may have known, whichever replica reviewed it.

mod births;
mod end;
mod facts;
mod record;
mod wanted;

use super::start::{STATES, WORKLOAD};
use crate::rules::moments::Births;
use crate::rules::prelude::*;
use crate::subjects::statefulset::oracles::spec::Gates;
use crate::subjects::statefulset::start::STATEFULSETS;
use facts::{Change, is_for_workload};
use wanted::Wanted;

/// What judges the PersistentPodStates of a scenario.
pub struct StateOracles {
    pub gates: Gates,
    pub births: Births,
}

impl Oracles for StateOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        never!(write, "pods, nodes and workloads are only read",
            ![STATES.plural, "events"].contains(&write.resource) => "it is no PersistentPodState");
        let change = Change::of(write, mirror).filter(|_| write.resource != "events")?;
        if write.subresource == "status" {
            record::judge(write, &change, mirror, self.gates)
        } else {
            own(write, &change, mirror)
        }
    }

    fn judge_newborn(&mut self, mirror: &Mirror) -> Option<Violation> {
        self.births.judge(mirror, |pod| births::judge(pod, mirror))
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror, self.gates)
    }

    /// Those of its workload are the most.
    fn writes_to_come(&self, _: &Mirror) -> Option<usize> {
        Some(0)
    }
}

/// *"A workload whose annotations ask for it gets a PersistentPodState of its own name. What the workload does not
/// control is never written."*
fn own(write: &Write<'_>, change: &Change<'_>, mirror: &Mirror) -> Option<Violation> {
    let state = change.before.unwrap_or(change.after);
    let owner = mirror.versions(STATEFULSETS, state.owner());
    let is_its = !owner.is_empty() && is_for_workload(state) && &*state.name == WORKLOAD;
    never!(write, "what somebody else made stays", !is_its => "no workload controls it");
    let believed = change.recent(owner).iter().map(|set| Wanted::by(set));
    let believed: Vec<_> = believed.collect();
    if write.method == Method::Delete {
        never!(write, "what annotations ask for stays", believed.iter().all(Option::is_some) => "it is asked for");
        return None;
    }
    let made = Wanted::of(change.after);
    never!(write, "what is generated is what annotations ask for", !believed.contains(&Some(made)) => "{believed:?}");
    None
}
