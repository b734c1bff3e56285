//! The order of decisions.

use jiff::Timestamp;
use kruise_plan_kit::Plan;

use super::snapshot::Snapshot;

/// Decides what a set needs now.
pub fn plan(_snapshot: &Snapshot<'_>, _now: Timestamp) -> Plan {
    Plan::default()
}
