//! Oracles of WorkloadSpreads.
//!
//! They read the API server's own record of pods, workloads and WorkloadSpreads. New pods are judged when they are
//! stored, whoever created them and whichever replica reviewed them.

mod births;
mod end;
pub mod truth;

use std::sync::atomic::{AtomicBool, Ordering};

use super::start::{SPREADS, Start};
use crate::rules::moments::Births;
use crate::rules::prelude::*;

/// Least of writes of the status for a scenario to count.
const WRITES: u32 = 25;

/// What judges the WorkloadSpread of a scenario.
pub struct SpreadOracles {
    pub start: Start,
    /// The workload was emptied and filled again.
    pub refilled: Arc<AtomicBool>,
    pub births: Births,
    /// When a manager sent the creation of each pod last, by name.
    pub sent: BTreeMap<String, Timestamp>,
}

impl Oracles for SpreadOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        moves(write, mirror, self.start.adaptive)
    }

    fn judge_newborn(&mut self, mirror: &Mirror) -> Option<Violation> {
        let (workload, sent) = (self.start.workload, &self.sent);
        self.births
            .judge(mirror, |pod| births::judge(pod, mirror, workload, sent))
    }

    fn judge_sent(&mut self, write: &Write<'_>, _: &Mirror) -> Option<Violation> {
        if write.resource == "pods" && write.method == Method::Post {
            let name = text(&write.body["metadata"]["name"]);
            self.sent.insert(name.to_owned(), write.now);
        }
        None
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        if self.start.refused {
            // How pods are counted that nobody may put into a subset is not said.
            return Ok(());
        }
        end::unfinished(mirror, self.start.workload, self.refilled.load(Ordering::Relaxed))
    }

    fn counts(&self, counters: &Counters) -> bool {
        self.start.refused || counters.written(SPREADS.plural) >= WRITES
    }

    /// Those of its workload are the most.
    fn writes_to_come(&self, _: &Mirror) -> Option<usize> {
        Some(0)
    }
}

/// *"Pods that no node can take are deleted when their time is over."* Otherwise a controller of WorkloadSpreads
/// changes nothing of a pod but its metadata. `seconds` is how long a pod may wait for a node; zero if none is
/// moved.
fn moves(write: &Write<'_>, mirror: &Mirror, seconds: u32) -> Option<Violation> {
    let [before, after] = write.pod(mirror)?;
    if write.method != Method::Delete {
        never!(write, "pods of a spread get metadata only", before.spec() != after.spec() => "");
        return None;
    }
    let window = mirror.of(PODS).window(&before.uid, write.sent.floors.of(PODS));
    let mut believed = window.iter().filter(|pod| pod.version <= before.version);
    let has_no_node = believed.any(|pod| pod.spec()["nodeName"].is_null());
    // Times of the API have whole seconds.
    let waited = write.now.duration_since(before.created());
    let is_over = seconds > 0 && waited >= SignedDuration::from_secs(i64::from(seconds));
    never!(write, "pods move when no node takes them in time", !has_no_node || !is_over => "after {waited:?}");
    None
}
