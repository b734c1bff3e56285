//! Pods that should have the sidecars of a set and do not: they were made while no webhook answered, or before API
//! servers went by the condition that shows them to it.
//!
//! Only the pod itself decides: it matches as it is labelled now, is not older than the set, and is neither in
//! the list of injected sets nor has the set's containers in another way. Times of creation are whole seconds: a pod of
//! the second in which the set was created counts, for it may have been made after it. Whether the set was the same
//! when the pod was made is not known: one whose selectors were widened since counts pods that were made before it
//! was.

use std::{collections::BTreeSet, sync::Arc};

use kruise_plan_kit::sidecars::{is_in_list, names};
use kruise_views::{Phase, PodView};
use serde_json::Value;

use crate::{sidecars::Sidecars, snapshot::Snapshot};

/// The pods without their sidecars, sorted by namespace and name.
pub(crate) fn find<'a>(snapshot: &Snapshot<'a>, spec: &Value) -> Vec<&'a Arc<PodView>> {
    let mut found = missed(snapshot, spec, PodView::is_active);
    found.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    found
}

/// Uids of such pods that are being deleted and have not ended yet.
pub(crate) fn leaving<'a>(snapshot: &Snapshot<'a>, spec: &Value) -> BTreeSet<&'a str> {
    let is_leaving = |pod: &PodView| pod.deleting && !matches!(pod.phase, Phase::Succeeded | Phase::Failed);
    let found = missed(snapshot, spec, is_leaving);
    found.into_iter().map(|pod| &*pod.uid).collect()
}

fn missed<'a>(
    snapshot: &Snapshot<'a>,
    spec: &Value,
    counts: impl Fn(&PodView) -> bool,
) -> Vec<&'a Arc<PodView>> {
    let set = snapshot.set;
    let injects = !set.spec.containers.is_empty() || !set.spec.init_containers.is_empty();
    let Some(existed) = set.metadata.creation_timestamp else {
        return Vec::new();
    };
    if !injects || set.spec.injection_strategy.paused || set.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let sidecars = Sidecars::of(spec);
    snapshot
        .not_injected
        .iter()
        .filter(|pod| counts(pod) && pod.created.is_some_and(|created| created >= existed))
        .filter(|pod| is_meant(snapshot, pod) && !has_containers(pod, &sidecars))
        .collect()
}

fn is_meant(snapshot: &Snapshot<'_>, pod: &PodView) -> bool {
    let set = snapshot.set;
    let list = pod.annotations.get(names::INJECTED_LIST).unwrap_or_default();
    let selector = set.spec.selector.as_ref();
    let base = set.metadata.annotations.get(names::CANARY_BASE).filter(|base| {
        !base.is_empty()
            && set
                .metadata
                .annotations
                .get(names::CANARY)
                .is_some_and(|is| is == "true")
    });
    !is_in_list(list, &set.metadata.name)
        // A pod that has the base of a canary was made while the canary was not injected.
        && !base.is_some_and(|base| is_in_list(list, base))
        && selector.is_some_and(|selector| !selector.is_empty() && selector.matches_by(|key| pod.labels.get(key)))
        && (set.spec.namespace_selector.is_none() || (snapshot.in_namespace)(&pod.namespace))
        && !(snapshot.has_canary)(pod)
}

/// Are all containers of the set there, whoever put them there?
fn has_containers(pod: &PodView, sidecars: &Sidecars) -> bool {
    let mut names = sidecars.containers().peekable();
    names.peek().is_some() && names.all(|name| pod.image_of(name).is_some())
}

/// How many pods are without the sidecars that they should have.
pub fn uninjected(snapshot: &Snapshot<'_>) -> usize {
    if snapshot.not_injected.is_empty() {
        return 0;
    }
    let spec = serde_json::to_value(&snapshot.set.spec).unwrap_or_default();
    find(snapshot, &spec).len()
}
