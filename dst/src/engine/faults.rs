//! Faults that are active.

use std::time::Duration;

use tokio::time::Instant;

use super::{process::ProcessId, scenario::LastingFault};

/// Faults that are active, and until when.
#[derive(Debug, Default)]
pub struct Faults {
    active: Vec<(Instant, LastingFault)>,
    /// The process that is cut off as long as the fault lasts.
    isolated: Option<ProcessId>,
    /// So many percent of all requests fail, whatever else is active.
    pub failing: u8,
    /// The leader dies after so many more writes.
    pub crash_after: Option<u32>,
}

impl Faults {
    /// No fault is active. Of all requests, this percentage fails.
    pub fn new(failing: u8) -> Self {
        Self {
            failing,
            ..Self::default()
        }
    }

    /// A fault begins. One that isolates somebody isolates the leader.
    pub fn begin(&mut self, fault: &LastingFault, lasts: Duration, leader: Option<ProcessId>) {
        if *fault == LastingFault::Isolated {
            self.isolated = leader;
        }
        self.active.push((Instant::now() + lasts, fault.clone()));
    }

    /// Faults that are active now, and how long they still last.
    pub fn now(&self) -> impl Iterator<Item = (Duration, &LastingFault)> {
        let now = Instant::now();
        let active = self.active.iter().filter(move |(until, _)| *until > now);
        active.map(move |(until, fault)| (*until - now, fault))
    }

    /// What the first of the active faults that matters means.
    pub fn find<R>(&self, find: impl Fn(&LastingFault) -> Option<R>) -> Option<R> {
        self.now().find_map(|(_, fault)| find(fault))
    }

    /// Is this the process that is cut off, while it is?
    pub fn isolates(&self, process: ProcessId) -> bool {
        self.isolated == Some(process)
    }

    /// How long a process is still cut off.
    pub fn isolated_for(&self, process: ProcessId) -> Option<Duration> {
        let mut now = self.now();
        let left = now.find(|(_, fault)| **fault == LastingFault::Isolated);
        left.filter(|_| self.isolates(process)).map(|(left, _)| left)
    }
}
