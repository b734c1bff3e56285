//! The parts of a rollout, each read once from the specification.

use go_compat::{IntOrString, Rounding};
use kruise_api::{
    names,
    statefulset::{InPlaceUpdateStrategy, StatefulSetSpec},
};
use kruise_plan_kit::rollout::{
    self, Budget, Policy, Strategy,
    images::{AheadOf, ImagesAhead},
};

use super::{
    limits::Limits,
    snapshot::{Options, Snapshot},
};

/// Nodes that pull at a time, by default.
const PARALLELISM: i32 = 1;
/// Seconds that one pull may take, by default.
const TIMEOUT: i32 = 300;

fn in_place(spec: &StatefulSetSpec) -> Option<&InPlaceUpdateStrategy> {
    let rolling = spec.update_strategy.rolling_update.as_ref()?;
    Some(&rolling.in_place_update_strategy)
}

/// Which pods may change, how, and in which order.
pub(super) fn strategy(spec: &StatefulSetSpec) -> Strategy<'_> {
    let rolling = spec.update_strategy.rolling_update.as_ref();
    let policy = rolling.map_or("", |rolling| &rolling.pod_update_policy);
    let grace = in_place(spec).map_or(0, |strategy| strategy.grace_period_seconds);
    Strategy {
        on_delete: spec.update_strategy.kind == "OnDelete",
        paused: rolling.is_some_and(|rolling| rolling.paused),
        policy: Policy::of(policy),
        grace_seconds: grace.max(0),
        priority: None,
        scatter: &[],
    }
}

/// How many pods there are to be, and may be missing.
pub(super) fn budget(limits: Limits) -> Budget {
    Budget {
        replicas: limits.replicas,
        partition: limits.partition,
        max_unavailable: limits.max_unavailable,
        at_once: limits.max_unavailable,
    }
}

/// Feature gates.
pub(super) fn options(options: Options) -> rollout::Options {
    rollout::Options {
        restart_labels: true,
        short_hash: false,
        goes_back: false,
        environment_from_metadata: options.environment_from_metadata,
        vertical_scaling: options.vertical_scaling,
        recreate_for_claims: false,
        template_hash: false,
    }
}

/// How nodes pull images ahead of a rollout; `None` unless they are asked to. The fields of the specification come
/// before the annotations.
pub(super) fn images<'a>(snapshot: &Snapshot<'a>, limits: Limits) -> Option<ImagesAhead<'a>> {
    let spec = &snapshot.set.spec;
    let strategy = in_place(spec);
    let annotation = |key: &str| {
        let value = snapshot.set.metadata.annotations.get(key)?;
        Some(
            value
                .parse()
                .map_or_else(|_| IntOrString::String(value.clone()), IntOrString::Int),
        )
    };
    let number = |key: &str| match annotation(key)? {
        IntOrString::Int(number) => Some(number),
        IntOrString::String(_) => None,
    };
    let parallelism = strategy
        .and_then(|strategy| strategy.image_pre_download_parallelism.clone())
        .or_else(|| annotation(names::PREDOWNLOAD_PARALLELISM));
    let timeout = strategy
        .and_then(|strategy| strategy.image_pre_download_timeout_seconds)
        .or_else(|| number(names::PREDOWNLOAD_TIMEOUT));
    let wanted = strategy
        .and_then(|strategy| strategy.image_pre_download_min_updated_ready_pods)
        .map(IntOrString::Int)
        .or_else(|| annotation(names::PREDOWNLOAD_MIN_READY));
    let wanted = wanted.map_or(0, |wanted| wanted.scaled_b(limits.replicas, Rounding::Up));
    snapshot.options.images_ahead.then(|| ImagesAhead {
        jobs: snapshot.pull_jobs,
        selector: &spec.selector,
        template: &spec.template,
        change: AheadOf::InPlace,
        parallelism: parallelism.and_then(nodes).unwrap_or(PARALLELISM),
        timeout_seconds: timeout.filter(|&seconds| seconds >= 0).unwrap_or(TIMEOUT),
        min_updated_ready: usize::try_from(wanted).unwrap_or(0),
        taken_names: &snapshot.memory.taken_names,
    })
}

/// A number of nodes as a job may have it. A percentage is none.
fn nodes(value: IntOrString) -> Option<i32> {
    let count = match value {
        IntOrString::Int(count) => Some(count),
        IntOrString::String(text) => text.parse().ok(),
    };
    count.filter(|&count| count >= 0)
}
