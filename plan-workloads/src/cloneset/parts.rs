//! The parts of a plan, each read once from the snapshot.

use go_compat::{IntOrString, Rounding};
use jiff::Timestamp;
use kruise_api::cloneset::{CloneSetSpec, InPlaceUpdateStrategy, RollingUpdate};
use kruise_plan_kit::{
    Owner,
    ledger::Charges,
    rollout::{
        self, Budget, Policy, Strategy,
        images::{AheadOf, ImagesAhead},
    },
};

use super::{numbers::Limits, snapshot::Snapshot};

/// Nodes that pull at a time, by default.
const PARALLELISM: i32 = 1;
/// Seconds that one pull may take, by default.
const TIMEOUT: i32 = 300;

fn in_place(spec: &CloneSetSpec) -> Option<&InPlaceUpdateStrategy> {
    let rolling = spec.update_strategy.rolling_update.as_ref()?;
    rolling.in_place_update_strategy.as_ref()
}

/// Which pods may change, how, and in which order.
pub(super) fn strategy(spec: &CloneSetSpec) -> Strategy<'_> {
    let rolling = spec.update_strategy.rolling_update.as_ref();
    let policy = rolling.map_or("", |rolling| &rolling.pod_update_policy);
    let grace = in_place(spec).map_or(0, |strategy| strategy.grace_period_seconds);
    Strategy {
        on_delete: spec.update_strategy.kind == "OnDelete",
        paused: rolling.is_some_and(|rolling| rolling.paused),
        policy: Policy::of(policy),
        grace_seconds: grace.max(0),
        priority: rolling.and_then(|rolling| rolling.priority_strategy.as_ref()),
        scatter: rolling.map_or(&[], |rolling| &rolling.scatter_strategy),
    }
}

/// How many pods there are to be, and may be missing.
pub(super) fn budget(spec: &CloneSetSpec, limits: Limits) -> Budget {
    let none = RollingUpdate::default();
    let rolling = spec.update_strategy.rolling_update.as_ref().unwrap_or(&none);
    let default = IntOrString::String("20%".into());
    let at_once = rolling.max_unavailable.as_ref().unwrap_or(&default);
    Budget {
        replicas: limits.replicas,
        partition: limits.partition,
        max_unavailable: limits.max_unavailable,
        at_once: at_once.scaled_b(limits.replicas, Rounding::Down),
    }
}

/// What its pods are charged to.
pub(super) fn charges<'a>(
    snapshot: &Snapshot<'a>,
    owner: &Owner<'_>,
    limits: Limits,
    now: Timestamp,
) -> Charges<'a> {
    let is_top = snapshot.set.metadata.controller().is_none();
    Charges::new(snapshot.budgets, now)
        .of_workload(owner.workload(), limits.replicas)
        .unwanted(is_top && limits.replicas == 0)
}

/// Feature gates.
pub(super) fn options(snapshot: &Snapshot<'_>) -> rollout::Options {
    let options = snapshot.options;
    rollout::Options {
        restart_labels: true,
        short_hash: options.short_hash,
        goes_back: options.partition_rollback,
        environment_from_metadata: options.environment_from_metadata,
        vertical_scaling: options.vertical_scaling,
        recreate_for_claims: options.recreate_for_claims,
        template_hash: true,
    }
}

/// How nodes pull images ahead of a rollout; `None` unless they are asked to.
pub(super) fn images<'a>(snapshot: &Snapshot<'a>) -> Option<ImagesAhead<'a>> {
    let spec = &snapshot.set.spec;
    let strategy = in_place(spec);
    let parallelism = strategy.and_then(|strategy| strategy.image_pre_download_parallelism.as_ref());
    let timeout = strategy.and_then(|strategy| strategy.image_pre_download_timeout_seconds);
    let wanted = strategy.and_then(|strategy| strategy.image_pre_download_min_updated_ready_pods);
    snapshot.options.images_ahead.then(|| ImagesAhead {
        jobs: snapshot.pull_jobs,
        selector: &spec.selector,
        template: &spec.template,
        change: AheadOf::InPlace,
        parallelism: parallelism.and_then(nodes).unwrap_or(PARALLELISM),
        timeout_seconds: timeout.filter(|&seconds| seconds >= 0).unwrap_or(TIMEOUT),
        min_updated_ready: usize::try_from(wanted.unwrap_or(0)).unwrap_or(0),
        taken_names: &snapshot.memory.taken_names,
    })
}

/// A number of nodes as a job may have it. Conversion lets a percentage through, which no job takes.
fn nodes(value: &IntOrString) -> Option<i32> {
    let count = match value {
        IntOrString::Int(count) => Some(*count),
        IntOrString::String(text) => text.parse().ok(),
    };
    count.filter(|&count| count >= 0)
}
