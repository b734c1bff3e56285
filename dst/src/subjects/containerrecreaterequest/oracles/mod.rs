//! Oracles of ContainerRecreateRequests, written from their specification.

mod end;
mod known;
mod pods;
mod reports;
mod requests;
mod stops;

use super::start::{CONTROLLER, REQUESTS};
use crate::rules::prelude::*;
pub use stops::Stops;

/// Least of writes of requests for a scenario to count.
const WRITES: u32 = 12;
/// Most writes of a request beside its status: one that holds it back, one that releases it.
const MOST: u32 = 2;

/// What judges the requests of a scenario.
#[derive(Default)]
pub struct ContainerRecreateRequestOracles {
    /// How often each request, by its uid, was written beside its status.
    written: BTreeMap<String, u32>,
    stops: Stops,
}

impl Oracles for ContainerRecreateRequestOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if write.component != CONTROLLER {
            return reports::judge(write, mirror);
        }
        pods::judge(write, mirror)
            .or_else(|| requests::judge(write, mirror))
            .or_else(|| self.judge_number(write, mirror))
    }

    fn judge_call(&mut self, call: &RuntimeCall<'_>, mirror: &Mirror) -> Option<Violation> {
        self.stops.judge(call, mirror)
    }

    fn unfinished(&self, mirror: &Mirror, now: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror, now)
    }

    fn owns(&self, pod: &Object, _: &Mirror) -> bool {
        pod.label("app") == "cart"
    }

    fn counts(&self, counters: &Counters) -> bool {
        counters.written(REQUESTS.plural) >= WRITES
    }

    /// Each open request is held back, reported on four times, ended and released, and its containers have events.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<u32> {
        let open = mirror
            .of(REQUESTS)
            .now()
            .filter(|request| !known::has_ended(request));
        Some(u32::try_from(open.count() * 9).unwrap_or(u32::MAX))
    }
}

impl ContainerRecreateRequestOracles {
    /// Is a request written no more often than it needs?
    fn judge_number(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let is_main = write.resource == REQUESTS.plural
            && write.method == Method::Patch
            && write.subresource.is_empty();
        if !is_main {
            return None;
        }
        let [_, after] = write.both(mirror, REQUESTS)?;
        let count = self.written.entry(after.uid.to_string()).or_default();
        *count += 1;
        never!(write, "a request is written as often as it needs", *count > MOST => "the {count}. time");
        None
    }
}
