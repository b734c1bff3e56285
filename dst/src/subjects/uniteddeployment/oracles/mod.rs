//! Oracles of UnitedDeployments, written from their specification.

mod end;
mod truth;
mod writes;

use super::start::{CONTROLLER, UNITED};
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::CLONESETS;

/// Least of writes of workloads, their status included, for a scenario to count.
const WORKLOADS: u32 = 20;
/// And of writes of the status of the UnitedDeployment.
const REPORTS: u32 = 8;

/// What judges the UnitedDeployment of a scenario.
pub struct UnitedDeploymentOracles;

impl Oracles for UnitedDeploymentOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let is_its = write.component == CONTROLLER;
        is_its.then(|| writes::judge(write, mirror)).flatten()
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror)
    }

    fn owns(&self, pod: &Object, mirror: &Mirror) -> bool {
        mirror.of(CLONESETS).objects.contains_key(pod.owner())
    }

    fn counts(&self, counters: &Counters) -> bool {
        counters.written(CLONESETS.plural) >= WORKLOADS && counters.written(UNITED.plural) >= REPORTS
    }

    /// It writes none.
    fn remembers_pods(&self) -> bool {
        false
    }
}
