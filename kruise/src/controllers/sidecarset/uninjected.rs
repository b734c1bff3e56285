//! Pods that SidecarSets may have missed: kept as pods come and change, for nobody can look at all pods of a cluster for
//! each look at a set.
//!
//! What is kept may be wrong in one direction only: pods that are fine may be among it. Planners look at each again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use kruise_admission::{manifests, pod::sidecars::Set};
use kruise_plan_kit::sidecars::{is_in_list, names};
use kruise_views::{Labels, NamespaceView, PodView};
use kube_cache::{Delta, ObjectKey, SharedInformer};

/// Pods by the set whose selector they match and whose sidecars they do not have. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Uninjected {
    by_set: Arc<Mutex<BTreeMap<String, Candidates>>>,
}

#[derive(Debug)]
struct Candidates {
    /// The set that they were collected for.
    set: Arc<Set>,
    /// When it was made: pods that are as old are none of its.
    since: Option<Timestamp>,
    pods: BTreeSet<ObjectKey>,
}

impl Uninjected {
    /// The candidates of a set: collected once for each edit of it, and kept from then on.
    pub(super) fn of(&self, set: &Arc<Set>, pods: &SharedInformer<PodView>) -> Vec<Arc<PodView>> {
        let mut by_set = self.lock();
        let same = |kept: &Candidates| is_same(&kept.set, set);
        if !by_set.get(&set.name).is_some_and(same) {
            // A pod that comes meanwhile waits for the lock, and is added after.
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

    /// Forgets a set that is gone.
    pub(super) fn forget(&self, set: &str) {
        self.lock().remove(set);
    }

    /// Follows a change of a pod; says which sets it concerns.
    pub(super) fn follow(&self, delta: &Delta<PodView>) -> Vec<ObjectKey> {
        let mut by_set = self.lock();
        let mut concerned = Vec::new();
        let Some(key) = delta
            .new
            .iter()
            .chain(&delta.old)
            .next()
            .map(|pod| ObjectKey::of(&**pod))
        else {
            return concerned;
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
                concerned.push(ObjectKey::new("", name.as_str()));
            }
        }
        concerned
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Candidates>> {
        self.by_set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is nothing different of what decides?
fn is_alike(old: &PodView, new: &PodView) -> bool {
    let list = |pod: &PodView| pod.annotations.get(names::INJECTED_LIST).map(str::to_owned);
    old.uid == new.uid
        && old.is_active() == new.is_active()
        && old.labels == new.labels
        && list(old) == list(new)
}

/// Is it the same set, for the same pods?
fn is_same(kept: &Set, set: &Set) -> bool {
    let uid = |set: &Set| set.object.pointer("/metadata/uid").cloned();
    kept.matcher == set.matcher && uid(kept) == uid(set)
}

fn since(set: &Set) -> Option<Timestamp> {
    let since = set.object.pointer("/metadata/creationTimestamp")?;
    since.as_str()?.parse().ok()
}

/// May the set have missed it? One that is being deleted is out of service until it is gone.
fn is_candidate(set: &Set, since: Option<Timestamp>, pod: &PodView) -> bool {
    let list = pod.annotations.get(names::INJECTED_LIST).unwrap_or_default();
    (pod.is_active() || pod.deleting)
        && since.is_none_or(|since| pod.created.is_some_and(|created| created > since))
        && !is_in_list(list, &set.name)
        && set.matcher.matches_pod(|key| pod.labels.get(key))
        && !is_elsewhere(set, pod)
}

/// Does the set name namespaces, and this pod's is none of them? Their labels may change; whoever plans looks at them.
fn is_elsewhere(set: &Set, pod: &PodView) -> bool {
    let Some(selector) = &set.matcher.namespaces else {
        return false;
    };
    let wanted = selector.match_labels.get(names::NAMESPACE_NAME);
    wanted.is_some_and(|name| **name != *pod.namespace)
}

/// Are pods of this namespace shown to webhooks at all, as our manifests have it?
pub(super) fn is_in_reach(name: &str, namespace: Option<&NamespaceView>) -> bool {
    let labels = namespace.map(NamespaceView::labels);
    let control_plane = labels.and_then(|labels: &Labels| labels.get(manifests::CONTROL_PLANE));
    manifests::is_in_reach(name, control_plane)
}

#[cfg(test)]
mod tests {
    use kruise_admission::pod::sidecars::Set;
    use kube_cache::Event;
    use serde_json::{Value, json};

    use super::*;
    use crate::controllers::caches::PODS_BY_SIDECARSET;

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

    fn follow(kept: &Uninjected, pods: &SharedInformer<PodView>, event: Event<PodView>) -> Vec<String> {
        let deltas = pods.apply(event).unwrap();
        let concerned = deltas.iter().flat_map(|delta| kept.follow(delta));
        concerned.map(|key| key.name.to_string()).collect()
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
            follow(&kept, &pods, Event::Added(pod(4, "d", "web", ""))).is_empty(),
            "nobody looked yet"
        );
        let logs = set(&json!({"app": "web"}), None);
        assert_eq!(names_of(&kept.of(&logs, &pods)), ["a", "d"]);
        assert_eq!(
            follow(&kept, &pods, Event::Added(pod(5, "e", "web", "other"))),
            ["logs"]
        );
        assert!(follow(&kept, &pods, Event::Added(pod(6, "f", "web", "logs"))).is_empty());
        assert_eq!(
            follow(&kept, &pods, Event::Modified(pod(7, "a", "db", ""))),
            ["logs"]
        );
        assert_eq!(
            follow(&kept, &pods, Event::Deleted(pod(8, "d", "web", ""))),
            ["logs"]
        );
        assert_eq!(names_of(&kept.of(&logs, &pods)), ["e"]);
        assert_eq!(
            names_of(&kept.of(&set(&json!({"app": "db"}), None), &pods)),
            ["a", "c"],
            "another edit"
        );
        assert!(
            kept.of(&set(&json!({"app": "db"}), Some("office")), &pods)
                .is_empty()
        );
        let dated = json!({"metadata": {"name": "logs", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "log"}]}});
        let dated = Arc::new(Set::new(Arc::new(dated)));
        let born = |version, name, created: &str, leaves: bool| {
            let created = Some(created.parse().unwrap());
            PodView {
                created,
                deleting: leaves,
                ..pod(version, name, "web", "")
            }
        };
        kept.forget("logs");
        assert!(
            kept.of(&dated, &pods).is_empty(),
            "as old as the set, for all that is known"
        );
        let old = born(9, "f", "2026-01-01T00:00:00Z", false);
        assert!(follow(&kept, &pods, Event::Modified(old)).is_empty());
        let young = |version, leaves| born(version, "g", "2026-01-01T00:00:01Z", leaves);
        assert_eq!(follow(&kept, &pods, Event::Added(young(10, false))), ["logs"]);
        assert_eq!(follow(&kept, &pods, Event::Modified(young(11, true))), ["logs"]);
        assert_eq!(names_of(&kept.of(&dated, &pods)), ["g"], "it is on its way out");
        kept.forget("logs");
        assert!(follow(&kept, &pods, Event::Deleted(pod(12, "c", "db", ""))).is_empty());
    }
}
