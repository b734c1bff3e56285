//! An index of uninjected pods by SidecarSet, updated with the pod cache. Without it, every reconcile of a
//! SidecarSet would read all pods of the cluster.
//!
//! The index may have pods that are not uninjected, but lacks none that is. Plans check every pod again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use kruise_admission::{manifests, pod::sidecars::Set};
use kruise_plan_kit::sidecars::{is_in_list, names};
use kruise_views::{Labels, NamespaceView, PodView};
use kube_cache::{Delta, ObjectKey, SharedInformer};

/// Pods by the SidecarSet whose selector they match and whose sidecars they lack. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Uninjected {
    by_set: Arc<Mutex<BTreeMap<String, Candidates>>>,
}

#[derive(Debug)]
struct Candidates {
    /// The SidecarSet that they were collected for.
    set: Arc<Set>,
    /// The second in which it was created: it does not apply to pods that are older.
    since: Option<Timestamp>,
    pods: BTreeSet<ObjectKey>,
}

impl Uninjected {
    /// The candidates of a SidecarSet. They are collected from all pods after each change of its selectors, and updated
    /// by [`Uninjected::update`] from then on.
    pub(super) fn of(&self, set: &Arc<Set>, pods: &SharedInformer<PodView>) -> Vec<Arc<PodView>> {
        let mut by_set = self.lock();
        let same = |kept: &Candidates| is_same(&kept.set, set);
        if !by_set.get(&set.name).is_some_and(same) {
            // An event of a pod waits for the lock in `update`, and is applied after this.
            let snapshot = pods.snapshot();
            let since = since(set);
            let candidates = snapshot.iter().filter(|pod| is_candidate(set, since, pod));
            let pods = candidates.map(|pod| ObjectKey::of(&**pod)).collect();
            let set = set.clone();
            by_set.insert(set.name.clone(), Candidates { set, since, pods });
        }
        let snapshot = pods.snapshot();
        let kept = by_set.get(&set.name).map(|kept| &kept.pods);
        kept.into_iter()
            .flatten()
            .filter_map(|key| snapshot.get(key))
            .collect()
    }

    /// Removes a deleted SidecarSet.
    pub(super) fn forget(&self, set: &str) {
        self.lock().remove(set);
    }

    /// Applies a change of a pod. Returns the keys of the SidecarSets that it enqueues.
    pub(super) fn update(&self, delta: &Delta<PodView>) -> Vec<ObjectKey> {
        let mut by_set = self.lock();
        let mut keys = Vec::new();
        let Some(key) = delta
            .new
            .iter()
            .chain(&delta.old)
            .next()
            .map(|pod| ObjectKey::of(&**pod))
        else {
            return keys;
        };
        let is_same = matches!((&delta.old, &delta.new), (Some(old), Some(new)) if is_alike(old, new));
        for (name, kept) in by_set.iter_mut() {
            let is_kept = match &delta.new {
                _ if is_same => kept.pods.contains(&key),
                Some(pod) if is_candidate(&kept.set, kept.since, pod) => {
                    kept.pods.insert(key.clone());
                    true
                }
                _ => kept.pods.remove(&key),
            };
            if is_kept {
                keys.push(ObjectKey::new("", name.as_str()));
            }
        }
        keys
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Candidates>> {
        self.by_set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if nothing changed that [`is_candidate`] reads.
fn is_alike(old: &PodView, new: &PodView) -> bool {
    let list = |pod: &PodView| pod.annotations.get(names::INJECTED_LIST).map(str::to_owned);
    old.uid == new.uid
        && old.is_active() == new.is_active()
        && old.deleting == new.deleting
        && old.labels == new.labels
        && list(old) == list(new)
}

/// True if it is the same SidecarSet with the same selectors.
fn is_same(kept: &Set, set: &Set) -> bool {
    let uid = |set: &Set| set.object.pointer("/metadata/uid").cloned();
    kept.matcher == set.matcher && uid(kept) == uid(set)
}

fn since(set: &Set) -> Option<Timestamp> {
    let since = set.object.pointer("/metadata/creationTimestamp")?;
    since.as_str()?.parse().ok()
}

/// True if the pod may lack the sidecars of the set. A terminating pod counts, because it is unavailable until it is
/// deleted.
fn is_candidate(set: &Set, since: Option<Timestamp>, pod: &PodView) -> bool {
    let list = pod.annotations.get(names::INJECTED_LIST).unwrap_or_default();
    (pod.is_active() || pod.deleting)
        && since.is_none_or(|since| pod.created.is_some_and(|created| created >= since))
        && !is_in_list(list, &set.name)
        && set.matcher.matches_pod(|key| pod.labels.get(key))
        && !is_elsewhere(set, pod)
}

/// True if the set selects a namespace by name, and the pod is in another one. Other labels of namespaces may
/// change, so plans check them.
fn is_elsewhere(set: &Set, pod: &PodView) -> bool {
    let Some(selector) = &set.matcher.namespaces else {
        return false;
    };
    let wanted = selector.match_labels.get(names::NAMESPACE_NAME);
    wanted.is_some_and(|name| **name != *pod.namespace)
}

/// True if the webhook configurations of our manifests select pods of this namespace.
pub(super) fn is_selected_by_webhooks(name: &str, namespace: Option<&NamespaceView>) -> bool {
    let labels = namespace.map(NamespaceView::labels);
    let control_plane = labels.and_then(|labels: &Labels| labels.get(manifests::CONTROL_PLANE));
    manifests::is_in_reach(name, control_plane)
}

#[cfg(test)]
mod tests {
    use kruise_admission::pod::sidecars::Set;
    use kube_cache::Event;
    use serde_json::{Value, json};

    use super::super::cached::PODS_BY_SIDECARSET;
    use super::*;

    fn set(selector: &Value, namespace: Option<&str>) -> Arc<Set> {
        let namespaces = namespace.map(|name| json!({"matchLabels": {"kubernetes.io/metadata.name": name}}));
        Arc::new(Set::new(Arc::new(json!({
            "metadata": {"name": "logs", "uid": "u"},
            "spec": {"selector": {"matchLabels": selector}, "namespaceSelector": namespaces,
                     "containers": [{"name": "log"}]}}))))
    }

    fn pod(version: u64, name: &str, app: &str, injected: &str) -> PodView {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"),
                         "resourceVersion": version.to_string(), "labels": {"app": app},
                         "annotations": {names::INJECTED_LIST: injected}}}))
        .unwrap()
    }

    fn update(kept: &Uninjected, pods: &SharedInformer<PodView>, event: Event<PodView>) -> Vec<String> {
        let deltas = pods.apply(event).unwrap();
        let keys = deltas.iter().flat_map(|delta| kept.update(delta));
        keys.map(|key| key.name.to_string()).collect()
    }

    fn names_of(found: &[Arc<PodView>]) -> Vec<&str> {
        found.iter().map(|pod| &*pod.name).collect()
    }

    #[test]
    fn uninjected_pods_are_tracked_from_the_first_reconcile_on_and_enqueue_their_sidecarset() {
        let pods = SharedInformer::new([PODS_BY_SIDECARSET]);
        pods.apply(Event::ListStarted).unwrap();
        pods.apply(Event::Page(vec![
            pod(1, "a", "web", ""),
            pod(2, "b", "web", "logs"),
            pod(3, "c", "db", ""),
        ]))
        .unwrap();
        pods.apply(Event::ListDone {
            version: "3".parse().unwrap(),
        })
        .unwrap();
        let kept = Uninjected::default();
        assert!(
            update(&kept, &pods, Event::Added(pod(4, "d", "web", ""))).is_empty(),
            "no SidecarSet is tracked yet"
        );
        let logs = set(&json!({"app": "web"}), None);
        assert_eq!(names_of(&kept.of(&logs, &pods)), ["a", "d"]);
        assert_eq!(
            update(&kept, &pods, Event::Added(pod(5, "e", "web", "other"))),
            ["logs"]
        );
        assert!(update(&kept, &pods, Event::Added(pod(6, "f", "web", "logs"))).is_empty());
        assert_eq!(
            update(&kept, &pods, Event::Modified(pod(7, "a", "db", ""))),
            ["logs"]
        );
        assert_eq!(
            update(&kept, &pods, Event::Deleted(pod(8, "d", "web", ""))),
            ["logs"]
        );
        assert_eq!(names_of(&kept.of(&logs, &pods)), ["e"]);
        assert_eq!(
            names_of(&kept.of(&set(&json!({"app": "db"}), None), &pods)),
            ["a", "c"],
            "the selector changed"
        );
        assert!(
            kept.of(&set(&json!({"app": "db"}), Some("office")), &pods)
                .is_empty()
        );
        let dated = json!({"metadata": {"name": "logs", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "log"}]}});
        let dated = Arc::new(Set::new(Arc::new(dated)));
        let created = |version, name, created: &str, deleting: bool| {
            let created = Some(created.parse().unwrap());
            PodView {
                created,
                deleting,
                ..pod(version, name, "web", "")
            }
        };
        kept.forget("logs");
        assert!(
            kept.of(&dated, &pods).is_empty(),
            "without a creation time they count as older than the set"
        );
        let old = created(9, "f", "2025-12-31T23:59:59Z", false);
        assert!(update(&kept, &pods, Event::Modified(old)).is_empty());
        let young = |version, deleting| created(version, "g", "2026-01-01T00:00:00Z", deleting);
        assert_eq!(update(&kept, &pods, Event::Added(young(10, false))), ["logs"]);
        assert_eq!(update(&kept, &pods, Event::Modified(young(11, true))), ["logs"]);
        assert_eq!(
            names_of(&kept.of(&dated, &pods)),
            ["g"],
            "a terminating pod counts"
        );
        kept.forget("logs");
        assert!(update(&kept, &pods, Event::Deleted(pod(12, "c", "db", ""))).is_empty());
    }
}
