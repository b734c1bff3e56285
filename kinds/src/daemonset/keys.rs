//! Keys: the DaemonSets that a change of an object enqueues.

use std::sync::Arc;

use kruise_api::daemonset::{DaemonSet, KIND};
use kruise_frame::caches::owners;
use kruise_views::{NodeView, PodView};
use kube_cache::{Delta, ObjectKey};

use crate::{fits::Verdicts, placing::Placing};
use kruise_runtime::parsed::Parsed;

type Sets = Vec<Arc<Parsed<Placing<DaemonSet>>>>;

/// The DaemonSets that control the pod, before or after the change; if nobody does, those of its namespace that may
/// adopt it.
pub(super) fn of_pod(delta: &Delta<PodView>, sets_in: &dyn Fn(&str) -> Sets) -> Vec<ObjectKey> {
    let mut keys: Vec<ObjectKey> = owners(&KIND, delta).collect();
    let orphan = delta.latest().filter(|pod| pod.controller.is_none());
    if let Some(pod) = orphan.filter(|_| may_be_adopted(delta)) {
        for set in sets_in(&pod.namespace) {
            let selects = set.object.as_ref().is_ok_and(|placing| {
                let selector = &placing.object.spec.selector;
                !selector.is_empty() && selector.matches_by(|key| pod.labels.get(key))
            });
            let key = ObjectKey::of(&*set);
            if selects && !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    keys
}

/// Is the change one that may make somebody adopt the pod, or miss it?
fn may_be_adopted(delta: &Delta<PodView>) -> bool {
    match (&delta.old, &delta.new) {
        (Some(old), Some(new)) => {
            old.controller.is_some() || old.labels != new.labels || old.deleting != new.deleting
        }
        _ => true,
    }
}

/// The DaemonSets that may run on the node, or may not any more, since the change, and those whose rolling update
/// selects it or does not any more. What was found out for one placement holds for all sets that have it.
pub(super) fn of_node(delta: &Delta<NodeView>, all: &dyn Fn() -> Sets) -> Vec<ObjectKey> {
    let Some(mut verdicts) = Verdicts::of(delta) else {
        return Vec::new();
    };
    let sets = all();
    let mut keys = Vec::new();
    for set in &sets {
        let Ok(placing) = &set.object else { continue };
        if verdicts.have_changed(&placing.placement) || is_selected_otherwise(placing, delta) {
            keys.push(ObjectKey::of(&**set));
        }
    }
    keys
}

fn is_selected_otherwise(placing: &Placing<DaemonSet>, delta: &Delta<NodeView>) -> bool {
    let rolling = placing.object.spec.update_strategy.rolling_update.as_ref();
    let Some(selector) = rolling.and_then(|rolling| rolling.selector.as_ref()) else {
        return false;
    };
    let (Some(old), Some(new)) = (&delta.old, &delta.new) else {
        return false;
    };
    let selects = |node: &NodeView| selector.matches_by(|key| node.labels.get(key));
    selects(old) != selects(new)
}
