//! Oracles of PersistentPodStates, written from their specification.
//!
//! They read the API server's own record. A write of the controller is judged by what it may have believed, and a new pod by
//! what the webhook may have known, whichever replica reviewed it.

mod births;
mod end;
mod record;
mod wanted;

use super::start::{STATES, WORKLOAD};
use crate::rules::moments::{self, Births};
use crate::rules::prelude::*;
use crate::subjects::statefulset::oracles::spec::Gates;
use crate::subjects::statefulset::start::STATEFULSETS;
use wanted::Wanted;

/// How far anybody may lag behind what others write.
const LAG: SignedDuration = SignedDuration::from_secs(90);

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

/// A write of a PersistentPodState.
struct Change<'a> {
    /// What was stored before; none if it was created.
    before: Option<&'a Object>,
    /// What is stored now. Of one that was deleted, what was stored last.
    after: &'a Object,
}

impl<'a> Change<'a> {
    /// Nothing if the write changed nothing that is stored.
    fn of(write: &Write<'_>, mirror: &'a Mirror) -> Option<Self> {
        let change = write.change(mirror, STATES)?;
        Some(Self {
            before: change.before().filter(|_| write.method != Method::Post),
            after: change.after,
        })
    }

    /// The versions of an object that the writer may have taken for the newest.
    fn recent<'v>(&self, versions: &'v [Arc<Object>]) -> &'v [Arc<Object>] {
        moments::since(versions, moments::before(self.after.at, LAG), self.after.version)
    }
}

/// *"A workload whose annotations ask for it gets a PersistentPodState of its own name. What the workload does not control is
/// never written."*
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

/// Is it about the pods of the StatefulSet?
fn is_for_workload(state: &Object) -> bool {
    let target = &state.spec()["targetRef"];
    let group = text(&target["apiVersion"])
        .split_once('/')
        .map(|(group, _)| group);
    target["kind"] == STATEFULSETS.kind && target["name"] == WORKLOAD && group == Some(STATEFULSETS.group)
}

/// What is recorded of a pod; null if nothing is.
fn record<'s>(state: &'s Object, pod: &str) -> &'s Value {
    &state.status()["podStates"][pod]
}

/// The ordinal in the name of a pod.
fn ordinal(pod: &str) -> Option<i64> {
    pod.rsplit_once('-').and_then(|(_, number)| number.parse().ok())
}
