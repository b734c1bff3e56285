//! The parts of a rollout, each read once from the specification.

use std::collections::BTreeMap;

use go_compat::{IntOrString, Rounding};
use kruise_api::{daemonset::DaemonSetSpec, names};
use kruise_plan_kit::rollout::{
    self, Budget, Policy, Strategy,
    images::{AheadOf, ImagesAhead},
};
use serde_json::Value;

use super::{
    limits::{Limits, is_rolling},
    places::Places,
    snapshot::{Options, Snapshot},
};

/// Nodes that pull at a time, by default.
const PARALLELISM: i32 = 1;
/// Seconds that one pull may take, by default.
const TIMEOUT: i32 = 300;

/// Which pods may change, how, and in which order.
pub(super) fn strategy(spec: &DaemonSetSpec) -> Strategy<'_> {
    let rolling = spec.update_strategy.rolling_update.as_ref();
    let kind = rolling.map_or("", |rolling| &rolling.kind);
    Strategy {
        on_delete: !is_rolling(spec),
        paused: rolling.is_some_and(|rolling| rolling.paused),
        policy: Policy::of(if kind == "InPlaceIfPossible" { kind } else { "" }),
        grace_seconds: 0,
        priority: None,
        scatter: &[],
    }
}

/// How many pods there are to be, and may be missing.
pub(super) fn budget(limits: Limits) -> Budget {
    Budget {
        replicas: limits.desired,
        partition: limits.partition,
        max_unavailable: limits.max_unavailable,
        at_once: limits.max_unavailable.max(limits.max_surge),
    }
}

/// Feature gates.
pub(super) fn options(options: Options) -> rollout::Options {
    rollout::Options {
        short_hash: true,
        restart_labels: false,
        goes_back: false,
        environment_from_metadata: options.environment_from_metadata,
        vertical_scaling: options.vertical_scaling,
        recreate_for_claims: false,
        template_hash: false,
    }
}

/// How nodes pull images ahead of a rollout; `None` unless they are asked to.
pub(super) fn images<'a>(
    snapshot: &Snapshot<'a>,
    places: &Places<'_>,
    limits: Limits,
) -> Option<ImagesAhead<'a>> {
    let spec = &snapshot.set.spec;
    let annotation = |key: &str| snapshot.set.metadata.annotations.get(key);
    let number = |key: &str| {
        let number: i32 = annotation(key)?.parse().ok()?;
        Some(number).filter(|&number| number >= 0)
    };
    let wanted = annotation(names::PREDOWNLOAD_MIN_READY).map_or(0, |text| {
        let value = text
            .parse()
            .map_or_else(|_| IntOrString::String(text.clone()), IntOrString::Int);
        value.scaled_b(limits.desired, Rounding::Up)
    });
    snapshot.options.images_ahead.then(|| ImagesAhead {
        jobs: snapshot.pull_jobs,
        selector: &spec.selector,
        template: &spec.template,
        change: AheadOf::Images(awaited(&spec.template, places)),
        parallelism: number(names::PREDOWNLOAD_PARALLELISM).unwrap_or(PARALLELISM),
        timeout_seconds: number(names::PREDOWNLOAD_TIMEOUT).unwrap_or(TIMEOUT),
        min_updated_ready: usize::try_from(wanted).unwrap_or(0),
        taken_names: &snapshot.memory.taken_names,
    })
}

/// The images of the template that some pod of an older revision does not have, by container.
fn awaited(template: &Value, places: &Places<'_>) -> BTreeMap<String, String> {
    let containers = template.pointer("/spec/containers").and_then(Value::as_array);
    let text =
        |container: &Value, member: &str| container.get(member).and_then(Value::as_str).map(str::to_owned);
    let all = containers.into_iter().flatten();
    let all = all.filter_map(|container| Some((text(container, "name")?, text(container, "image")?)));
    let is_awaited = |(name, image): &(String, String)| {
        let mut old = places
            .members()
            .filter(|member| member.is_living() && !member.pod.updated);
        old.any(|member| member.pod.view.image_of(name) != Some(image))
    };
    all.filter(is_awaited).collect()
}
