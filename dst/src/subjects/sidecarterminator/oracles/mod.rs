//! Oracles of sidecars that end with their main containers, written from the specification.

mod end;
mod known;
mod pods;
mod requests;
mod stops;

use super::start::CONTROLLER;
use crate::rules::prelude::*;
use crate::subjects::containerrecreaterequest::{REQUESTS, Stops};

/// Least of writes of requests for a scenario to count.
const WRITES: u32 = 12;

/// What judges the terminations of a scenario.
#[derive(Default)]
pub struct SidecarTerminatorOracles {
    stops: Stops,
}

impl Oracles for SidecarTerminatorOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if write.component != CONTROLLER {
            return None;
        }
        requests::judge(write, mirror).or_else(|| pods::judge(write, mirror))
    }

    fn judge_call(&mut self, call: &RuntimeCall<'_>, mirror: &Mirror) -> Option<Violation> {
        stops::judge(call, mirror).or_else(|| self.stops.judge(call, mirror))
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror)
    }

    fn owns(&self, pod: &Object, _: &Mirror) -> bool {
        pod.label("app") == "report"
    }

    fn counts(&self, counters: &Counters) -> bool {
        counters.written(REQUESTS.plural) >= WRITES
    }

    /// A pod has a request with an event, which its agent reports on three times, and which is released.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<u32> {
        let running = mirror.of(PODS).now().filter(|pod| pod.is_active());
        Some(u32::try_from(running.count() * 7).unwrap_or(u32::MAX))
    }
}
