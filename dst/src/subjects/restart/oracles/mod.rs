//! Oracles of `kruise restart`, written from its documentation.
//!
//! The command decides by what it has read last: the CloneSet, then the requests that are open, then the pods. So a request that it
//! creates is judged by all that may have been so since then, and by its own requests, of which it must know.

mod limit;
mod open;
mod order;

use kruise::restart::AGENT;

use super::runs::Runs;
use crate::rules::prelude::*;
use crate::subjects::containerrecreaterequest::REQUESTS;
use open::Open;

/// Least of requests for a scenario to count.
const REQUESTED: usize = 5;
/// Writes, about, that a run is still to cause.
const OF_A_RUN: u32 = 40;

/// What judges the runs of a scenario.
pub struct RestartOracles {
    runs: Runs,
    /// Which run created each request, by its uid.
    created: BTreeMap<Arc<str>, ProcessId>,
}

impl RestartOracles {
    /// No run yet.
    pub fn new(runs: Runs) -> Self {
        Self {
            runs,
            created: BTreeMap::new(),
        }
    }
}

impl Oracles for RestartOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if write.component != AGENT {
            return None;
        }
        let violation = |oracle, what: String| {
            let what = format!("{}: {what}", write.process);
            Some(Violation { oracle, what })
        };
        if write.resource != REQUESTS.plural || write.method != Method::Post {
            let what = format!("{:?} {} {}", write.method, write.resource, write.name);
            return violation("a restart creates requests and nothing else", what);
        }
        let request = mirror
            .of(REQUESTS)
            .changed_at(write.marks.of(REQUESTS))?
            .first()?;
        let run = self.runs.of(write.process)?;
        let open = Open {
            mirror,
            created: &self.created,
            process: write.process,
            request,
            floor: write.sent.floors.of(REQUESTS),
        };
        let found = order::unnamed(write, &run.order)
            .or_else(|| order::twice(&open))
            .or_else(|| order::after_failure(write, &open))
            .or_else(|| order::beside_another(&open))
            .or_else(|| limit::exceeded(write, &open));
        self.created.insert(request.uid.clone(), write.process);
        found.and_then(|(oracle, what)| violation(oracle, what))
    }

    fn unfinished(&self, _: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        match self.runs.open().first() {
            Some(process) => Err(format!("{process} goes on")),
            None => Ok(()),
        }
    }

    fn counts(&self, _: &Counters) -> bool {
        self.runs.requested() >= REQUESTED
    }

    fn writes_to_come(&self, _: &Mirror) -> Option<u32> {
        Some(u32::try_from(self.runs.open().len()).unwrap_or(0) * OF_A_RUN)
    }
}
