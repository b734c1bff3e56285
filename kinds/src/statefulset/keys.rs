//! Keys: the StatefulSets that a change of an object enqueues.

use std::sync::Arc;

use kruise_api::statefulset::{KIND, StatefulSet};
use kruise_frame::caches::owners;
use kruise_views::{ClaimView, PodView, StorageClassView};
use kube_cache::{Delta, ObjectKey};

use super::by_name::{set_of_pod, sets_of_claim};
use kruise_runtime::parsed::Parsed;

/// Finds a StatefulSet in the cache.
pub(super) type FindSet<'a> = &'a dyn Fn(&ObjectKey) -> Option<Arc<Parsed<StatefulSet>>>;

/// The StatefulSets that control the pod, before or after the change, and the one whose name it has. That one may
/// adopt a pod without a controller, and waits for the name of a pod with another one.
pub(super) fn of_pod(delta: &Delta<PodView>, find: FindSet<'_>) -> Vec<ObjectKey> {
    let mut keys: Vec<ObjectKey> = owners(&KIND, delta).collect();
    let named = delta.latest().and_then(|pod| {
        let key = ObjectKey::new(&*pod.namespace, set_of_pod(&pod.name)?);
        let is_news = !keys.contains(&key) && holder_changed(delta) && find(&key).is_some();
        is_news.then_some(key)
    });
    keys.extend(named);
    keys
}

/// Whether the change is one that a StatefulSet sees that does not control the pod.
fn holder_changed(delta: &Delta<PodView>) -> bool {
    let (Some(old), Some(new)) = (&delta.old, &delta.new) else {
        return true;
    };
    let seen = |pod: &PodView| (pod.uid.clone(), pod.controller.clone(), pod.deleting);
    // The labels of a pod decide whether it is adopted.
    let may_be_adopted = new.controller.is_none() && old.labels != new.labels;
    may_be_adopted || seen(old) != seen(new)
}

/// The StatefulSets with a claim template that the claim may be of, if what plans read of the claim changed.
pub(super) fn of_claim(delta: &Delta<ClaimView>, find: FindSet<'_>) -> Vec<ObjectKey> {
    let Some(claim) = delta.latest().filter(|_| claim_changed(delta)) else {
        return Vec::new();
    };
    let keys = sets_of_claim(&claim.name).filter_map(|(template, set)| {
        let key = ObjectKey::new(&*claim.namespace, set);
        let found = find(&key)?;
        let set = found.object.as_ref().ok()?;
        let is_named = |other: &serde_json::Value| {
            other
                .pointer("/metadata/name")
                .is_some_and(|name| *name == *template)
        };
        let has_template = set.spec.volume_claim_templates.iter().any(is_named);
        has_template.then_some(key)
    });
    keys.collect()
}

fn claim_changed(delta: &Delta<ClaimView>) -> bool {
    let (Some(old), Some(new)) = (&delta.old, &delta.new) else {
        return true;
    };
    let same_version = ClaimView {
        resource_version: new.resource_version.clone(),
        ..ClaimView::clone(old)
    };
    same_version != **new
}

/// The StatefulSets that resize their claims, if volumes of the class can grow since the change or cannot any more.
pub(super) fn of_class(delta: &Delta<StorageClassView>, sets: &[Arc<Parsed<StatefulSet>>]) -> Vec<ObjectKey> {
    let expands = |class: &Arc<StorageClassView>| class.expands;
    if delta.old.as_ref().map(expands) == delta.new.as_ref().map(expands) {
        return Vec::new();
    }
    let resizes = |set: &&Arc<Parsed<StatefulSet>>| {
        let strategy = set
            .object
            .as_ref()
            .map(|set| &set.spec.volume_claim_update_strategy);
        strategy.is_ok_and(|strategy| strategy.kind == "OnPodRollingUpdate")
    };
    let sets = sets.iter().filter(resizes);
    sets.map(|set| ObjectKey::of(&**set)).collect()
}
