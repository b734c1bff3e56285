//! Runs of the command, as users and oracles know them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::start::Order;
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::CLONESETS;

/// A run.
#[derive(Clone, Debug)]
pub struct Run {
    /// How it was started.
    pub order: Order,
    /// Ids of the containers that it restarts, by uid of the pod, when it began. Only pods whose containers had all
    /// started.
    first: BTreeMap<Arc<str>, Vec<String>>,
    /// Requests that it is known to have created. Counted in every play, also in one that is not judged.
    requested: usize,
    is_over: bool,
}

/// The runs of one play.
#[derive(Clone, Default)]
pub struct Runs(Arc<Mutex<BTreeMap<ProcessId, Run>>>);

impl Runs {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ProcessId, Run>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run begins.
    pub fn begin(&self, process: ProcessId, order: &Order, mirror: &Mirror) {
        let containers = order.containers();
        let pods = pods(mirror).filter_map(|pod| Some((pod.uid.clone(), ids(pod, &containers)?)));
        let run = Run {
            order: order.clone(),
            first: pods.collect(),
            requested: 0,
            is_over: false,
        };
        self.lock().insert(process, run);
    }

    /// A run says that it has created a request.
    pub fn requests(&self, process: ProcessId) {
        if let Some(run) = self.lock().get_mut(&process) {
            run.requested += 1;
        }
    }

    /// Requests of all runs.
    pub fn requested(&self) -> usize {
        self.lock().values().map(|run| run.requested).sum()
    }

    /// A run has ended, or was interrupted.
    pub fn end(&self, process: ProcessId) {
        if let Some(run) = self.lock().get_mut(&process) {
            run.is_over = true;
        }
    }

    /// The run of a process.
    pub fn of(&self, process: ProcessId) -> Option<Run> {
        self.lock().get(&process).cloned()
    }

    /// Runs that go on.
    pub fn open(&self) -> Vec<ProcessId> {
        let runs = self.lock();
        let open = runs.iter().filter(|(_, run)| !run.is_over);
        open.map(|(process, _)| *process).collect()
    }
}

impl Run {
    /// *"Ends when all run anew"*: what a run that succeeded promises.
    pub fn judge_success(&self, process: ProcessId, mirror: &Mirror) -> Option<Violation> {
        let containers = self.order.containers();
        let is_old = |pod: &&Arc<Object>| {
            let (Some(first), Some(now)) = (self.first.get(&pod.uid), ids(pod, &containers)) else {
                return false;
            };
            first.iter().zip(&now).any(|(first, now)| first == now)
        };
        never!(Violation::of, "a restart that succeeds has restarted every pod",
            some old in pods(mirror).find(is_old) => "{process} has succeeded, and {} runs what it ran before", old.name);
        None
    }
}

/// The active pods of the CloneSet.
fn pods(mirror: &Mirror) -> impl Iterator<Item = &Arc<Object>> {
    let pods = mirror
        .only(CLONESETS)
        .into_iter()
        .flat_map(|set| mirror.owned(PODS, set));
    pods.filter(|pod| pod.is_active() && pod.label("app") == "web")
}

/// Ids of these containers of a pod, if all have started.
fn ids(pod: &Object, containers: &[String]) -> Option<Vec<String>> {
    let id = |name: &String| {
        let id = text(&pod.container_status(name.as_str())["containerID"]);
        (!id.is_empty()).then(|| id.to_owned())
    };
    containers.iter().map(id).collect()
}
