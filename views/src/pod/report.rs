//! How far what a node reports of a pod can be believed.

use jiff::{SignedDuration, Timestamp};

use super::wire::{Condition, Container, ContainerStatus};

/// From the first run of a startup probe to the report of it: a second because times are in whole seconds, and two
/// for the report.
const REPORT: i64 = 3;
/// `periodSeconds` of a probe that does not say.
const PERIOD: i64 = 10;

/// Does the node report the generation that it has seen? A `status.observedGeneration` alone does not say so: the
/// API server sets it when it binds a pod, whatever the node does. Only the kubelet writes this condition.
pub(super) fn reports_generations(conditions: &[Condition]) -> bool {
    let mut conditions = conditions.iter();
    conditions.any(|one| &*one.kind == "ContainersReady" && one.observed_generation.is_some())
}

/// When the last of the containers that began anew, and that are said to be ready, has run its startup probe. Only
/// kubelets that report generations are in doubt.
pub(super) fn trusted_at(
    conditions: &[Condition],
    containers: &[Container],
    statuses: &[ContainerStatus],
) -> Option<Timestamp> {
    let restarted = statuses.iter().filter(|one| one.restart_count > 0 && one.ready);
    let probed = restarted.filter_map(|status| {
        let container = containers.iter().find(|one| one.name == status.name)?;
        let probe = container.startup_probe.as_ref()?;
        let period = probe
            .period_seconds
            .filter(|period| *period > 0)
            .unwrap_or(PERIOD);
        let settles = SignedDuration::from_secs(period.saturating_add(REPORT));
        status.started_at()?.checked_add(settles).ok()
    });
    let latest = probed.max()?;
    reports_generations(conditions).then_some(latest)
}
