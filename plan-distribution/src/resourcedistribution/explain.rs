//! The first line of an explanation.

use kruise_api::resourcedistribution::ResourceDistributionStatus;

use super::source::Source;

pub(super) fn summary(source: &Source<'_>, status: &ResourceDistributionStatus, pending: usize) -> String {
    let Source { kind, name, .. } = source;
    let ResourceDistributionStatus {
        desired, succeeded, ..
    } = status;
    let waiting = i32::try_from(pending).unwrap_or(i32::MAX);
    let failed = status.failed - waiting;
    format!(
        "distributes {kind} {name} to {desired} namespaces: {succeeded} have it, {waiting} are about to get it, {failed} cannot"
    )
}
