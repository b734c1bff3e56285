//! Oracles of UnitedDeployments, written from their specification.

mod end;
mod truth;
mod writes;

use crate::rules::prelude::*;

/// What judges the UnitedDeployment of a scenario.
pub struct UnitedDeploymentOracles;

impl Oracles for UnitedDeploymentOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        writes::judge(write, mirror)
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror)
    }
}
