//! SidecarSet: how an event becomes a key, what a plan is made from, how sets that share pods take turns, and what is
//! remembered of repairs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use kruise_api::sidecarset::SidecarSet;
use kruise_plan_kit::{
    EventNote, Memory, Plan, ResourceId, Target, events,
    sidecars::{Matcher, canary_of, names},
};
use kruise_plan_sidecars::{Explain, Observed, Repairs, Turns, learn, plan, uninjected};
use kruise_runtime::{
    events::{EventSink, ObjectRef},
    metrics::Metrics,
    worker::{Outcome, Planner},
};
use kruise_views::{NamespaceView, PodView, RevisionView};
use kube_cache::{Cached, Delta, ObjectKey, Version};
use serde_json::Value;

use super::{
    caches::{Caches, PODS_BY_SIDECARSET},
    sidecars::CachedSidecarSet,
    uninjected::is_in_reach,
};

/// Name in metrics, logs, user agent and events.
pub const NAME: &str = "sidecarset-controller";

/// Plans one SidecarSet from the caches.
pub struct SidecarSets {
    /// What is seen.
    pub caches: Caches,
    /// `apiVersion` on the wire.
    pub api_version: String,
    /// Where revisions are kept.
    pub namespace: String,
    /// Where events go.
    pub events: EventSink,
    /// Counters.
    pub metrics: Metrics,
    /// Whose turn it is to write which pod.
    pub turns: Mutex<Turns>,
    /// Are sidecars injected at all? Where they are not, no pod is missed.
    pub injects: bool,
    /// What was tried for pods without sidecars, by set; and the uid of the set that tried it.
    pub repairs: Mutex<BTreeMap<ObjectKey, (String, Repairs)>>,
}

impl Planner for SidecarSets {
    type Key = ObjectKey;

    fn plan(&self, key: &ObjectKey, memory: &Memory, now: Timestamp) -> Outcome {
        let Some(cached) = self.caches.sidecars.sets.snapshot().get(key) else {
            self.forget(key);
            return Outcome::Gone;
        };
        let set = match SidecarSet::from_json(&cached.set.object) {
            Ok(set) => set,
            Err(error) => {
                // Which pods it is for is not known.
                self.metrics.pods.forget(&key.name);
                self.turns().forget(&key.name);
                let note = EventNote {
                    reason: &events::INVALID_SPEC,
                    message: format!("the specification cannot be read: {error}"),
                };
                return Outcome::Plan(Box::new(Plan {
                    events: vec![note],
                    ..Plan::default()
                }));
            }
        };
        let mut world = World::observe(&self.caches, &self.namespace, &cached, &set);
        if !self.injects {
            world.strangers.clear();
        }
        let uid = &set.metadata.uid;
        let tried = self.repairs().get(key).filter(|(of, _)| of == uid).cloned();
        let tried = tried.map(|(_, repairs)| repairs).unwrap_or_default();
        let look = Look {
            set: &set,
            api_version: &self.api_version,
            namespace: &self.namespace,
            memory,
            repairs: &tried,
            explain: Explain::No,
        };
        let mut repairs = tried.clone();
        let plan = world.look(&look, |observed| {
            let mut plan = plan(observed, now);
            self.turns().admit(&set.metadata.name, &mut plan);
            learn(&mut repairs, observed, &plan, now);
            let missed = uninjected(observed);
            self.metrics.pods.uninjected(&set.metadata.name, missed);
            plan
        });
        self.repairs().insert(key.clone(), (uid.clone(), repairs));
        Outcome::Plan(Box::new(plan))
    }

    fn observed(&self, resource: ResourceId) -> Option<Version> {
        match resource {
            // In the manager's namespace, whichever one the workloads are in that are watched.
            ResourceId::REVISIONS => self.caches.sidecars.revisions.observed(),
            other => self.caches.observed(other),
        }
    }

    fn present(&self, resource: ResourceId, uid: &str) -> bool {
        match resource {
            ResourceId::REVISIONS => self.caches.sidecars.has_revision(uid),
            other => self.caches.present(other, uid),
        }
    }

    fn version(&self, target: &Target, uid: &str) -> Option<Version> {
        self.caches.version(target, uid)
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let sets = self.caches.sidecars.sets.snapshot();
        sets.iter().map(|set| ObjectKey::of(&**set)).collect()
    }

    fn overdue(&self, key: &ObjectKey) {
        self.metrics.leaked("", &key.name);
    }

    fn emit(&self, key: &ObjectKey, note: EventNote) {
        let Some(set) = self.caches.sidecars.sets.snapshot().get(key) else {
            return;
        };
        let about = ObjectRef {
            api_version: self.api_version.clone(),
            kind: "SidecarSet".into(),
            namespace: String::new(),
            name: set.metadata.name.clone(),
            uid: set.metadata.uid.clone(),
            resource_version: set.metadata.resource_version.clone(),
        };
        self.events.emit(about, note);
    }
}

impl SidecarSets {
    fn repairs(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, (String, Repairs)>> {
        self.repairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, key: &ObjectKey) {
        self.turns().forget(&key.name);
        self.repairs().remove(key);
        self.caches.sidecars.uninjected.forget(&key.name);
        self.metrics.pods.forget(&key.name);
    }
}

/// Everything that belongs to one set, at one instant of each cache.
pub struct World {
    pods: Vec<Arc<PodView>>,
    /// Pods that may be meant and do not have its sidecars.
    strangers: Vec<Arc<PodView>>,
    /// Which pods get a canary of it instead.
    canaries: Vec<Matcher>,
    revisions: Vec<Arc<RevisionView>>,
    /// Names of the namespaces that its selector matches; not looked at without one.
    namespaces: BTreeSet<String>,
    /// Names of all sets, sorted.
    sets: Vec<String>,
}

impl World {
    fn observe(caches: &Caches, namespace: &str, cached: &CachedSidecarSet, set: &SidecarSet) -> Self {
        let pods = caches
            .pods
            .snapshot()
            .by_index(&PODS_BY_SIDECARSET, &set.metadata.name);
        let namespaces = if set.spec.namespace_selector.is_some() {
            caches.sidecars.namespaces.snapshot().list("")
        } else {
            Vec::new()
        };
        let mut strangers = caches.sidecars.uninjected.of(&cached.set, &caches.pods);
        if !strangers.is_empty() {
            let snapshot = caches.sidecars.namespaces.snapshot();
            strangers.retain(|pod| {
                let of_pod = snapshot.get(&ObjectKey::new("", &*pod.namespace));
                *pod.namespace != *namespace && is_in_reach(&pod.namespace, of_pod.as_deref())
            });
        }
        let sets = caches.sidecars.sets.snapshot().list("");
        let canaries = sets
            .iter()
            .filter(|other| other.set.base.as_ref() == Some(&set.metadata.name));
        let canaries = canaries.map(|canary| canary.set.matcher.clone()).collect();
        let sets = sets.iter().map(|set| set.metadata.name.clone()).collect();
        let revisions = caches.sidecars.revisions_in(namespace);
        Self {
            strangers,
            canaries,
            ..Self::new(set, pods, revisions, namespaces, sets)
        }
    }

    /// From objects in hand: keeps the revisions that carry the set's name and are its own, or nobody's.
    pub fn new(
        set: &SidecarSet,
        pods: Vec<Arc<PodView>>,
        mut revisions: Vec<Arc<RevisionView>>,
        namespaces: Vec<Arc<NamespaceView>>,
        mut sets: Vec<String>,
    ) -> Self {
        revisions.retain(|revision| {
            let owner = revision.owner_uid.as_deref();
            revision.labels.get(names::SET_NAME) == Some(&set.metadata.name)
                && owner.is_none_or(|uid| uid == set.metadata.uid)
        });
        sets.sort_unstable();
        let selector = set.spec.namespace_selector.as_ref();
        let matches = |namespace: &&Arc<NamespaceView>| {
            selector.is_some_and(|selector| selector.matches_by(|key| namespace.labels().get(key)))
        };
        let namespaces = namespaces.iter().filter(matches);
        Self {
            namespaces: namespaces.map(|namespace| namespace.name().to_owned()).collect(),
            pods,
            strangers: Vec::new(),
            canaries: Vec::new(),
            revisions,
            sets,
        }
    }

    /// With the pods that may be meant and do not have the sidecars of the set, of a cluster with all these sets.
    #[must_use]
    pub fn with_strangers(
        mut self,
        set: &SidecarSet,
        manager_namespace: &str,
        mut pods: Vec<Arc<PodView>>,
        namespaces: &[Arc<NamespaceView>],
        sets: &[Arc<Value>],
    ) -> Self {
        pods.retain(|pod| {
            let of_pod = namespaces
                .iter()
                .find(|namespace| *namespace.name() == *pod.namespace);
            *pod.namespace != *manager_namespace && is_in_reach(&pod.namespace, of_pod.map(|found| &**found))
        });
        let is_canary = |other: &&Arc<Value>| canary_of(other) == Some(&*set.metadata.name);
        self.canaries = sets
            .iter()
            .filter(is_canary)
            .map(|canary| Matcher::of(canary))
            .collect();
        self.strangers = pods;
        self
    }

    /// Is there a canary of the set for this pod?
    fn has_canary(&self, pod: &PodView) -> bool {
        let matches = |canary: &Matcher| canary.matches_pod(|key| pod.labels.get(key));
        self.canaries.iter().any(matches)
    }

    /// Lets `look` see it.
    pub fn look<T>(&self, at: &Look<'_>, look: impl FnOnce(&Observed<'_>) -> T) -> T {
        let is_set = |name: &str| self.sets.binary_search_by(|have| have.as_str().cmp(name)).is_ok();
        let observed = Observed {
            set: at.set,
            api_version: at.api_version,
            namespace: at.namespace,
            pods: &self.pods,
            strangers: &self.strangers,
            has_canary: &|pod| self.has_canary(pod),
            repairs: at.repairs,
            revisions: &self.revisions,
            in_namespace: &|name| self.namespaces.contains(name),
            is_set: &is_set,
            memory: at.memory,
            explain: at.explain,
        };
        look(&observed)
    }
}

/// Which set is looked at, and with what in mind.
pub struct Look<'l> {
    /// The set.
    pub set: &'l SidecarSet,
    /// `apiVersion` on the wire.
    pub api_version: &'l str,
    /// Where revisions are kept.
    pub namespace: &'l str,
    /// What the last execution taught.
    pub memory: &'l Memory,
    /// What was tried for pods without sidecars.
    pub repairs: &'l Repairs,
    /// Is it to be explained?
    pub explain: Explain,
}

/// The sets that a change of a pod concerns: those injected, before and after.
pub fn sets_of_pod(delta: &Delta<PodView>) -> Vec<ObjectKey> {
    let mut sets: Vec<ObjectKey> = delta
        .old
        .iter()
        .chain(&delta.new)
        .flat_map(|pod| injected(pod))
        .map(|name| ObjectKey::new("", name))
        .collect();
    sets.sort();
    sets.dedup();
    sets
}

/// Names of the sets injected into a pod.
pub fn injected(pod: &PodView) -> impl Iterator<Item = &str> {
    let list = pod.annotations.get(names::INJECTED_LIST).unwrap_or_default();
    list.split(',').filter(|name| !name.is_empty())
}

/// The set that a change of a revision concerns.
pub fn set_of_revision(revision: &RevisionView) -> Option<ObjectKey> {
    let name = revision.labels.get(names::SET_NAME)?;
    Some(ObjectKey::new("", name))
}

/// The sets that a change of a namespace may concern: those that look at labels, if its labels are other ones now. A new
/// one may have pods that were seen before it; one that is gone has none.
pub fn sets_of_namespace(delta: &Delta<NamespaceView>, sets: &[Arc<CachedSidecarSet>]) -> Vec<ObjectKey> {
    let Some(new) = &delta.new else {
        return Vec::new();
    };
    if delta.old.as_ref().is_some_and(|old| old.labels() == new.labels()) {
        return Vec::new();
    }
    let sets = sets.iter().filter(|set| set.set.matcher.namespaces.is_some());
    sets.map(|set| ObjectKey::of(&**set)).collect()
}

#[cfg(test)]
mod tests {
    use std::{io, time::Duration};

    use http::{Request, Response};
    use http_body_util::Full;
    use kruise_plan_kit::{Chain, Intent, Precondition, Wave, Write};
    use kruise_runtime::{Client, Clock, client::Settings};
    use kube_cache::Event;
    use kube_client::client::Body;
    use prometheus_client::registry::Registry;
    use serde_json::json;

    use super::*;
    use crate::manager::sidecars::tests::fill_with;

    /// Nobody answers it.
    fn client() -> Client {
        let service = tower::service_fn(|_: Request<Body>| async {
            Err::<Response<Full<bytes::Bytes>>, _>(io::Error::from(io::ErrorKind::ConnectionRefused))
        });
        let settings = Settings {
            user_agent: "test".into(),
            timeout: Duration::from_secs(1),
            rate: None,
            host: "here".into(),
            observer: None,
            clock: Clock::starting_at(Timestamp::UNIX_EPOCH),
        };
        Client::new(kube_client::Client::new(service, "default"), settings)
    }

    /// A controller that sees the set `logs` and a pod without its sidecars; and what it counts.
    fn sets(injects: bool) -> (SidecarSets, Registry) {
        let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
            "metadata": {"name": "logs", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "log", "image": "log:1"}]}});
        let caches = Caches::new(Some("v1beta1"));
        fill_with(&caches.sidecars, &[set], &[], &[]);
        let pod = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "p", "resourceVersion": "1",
            "labels": {"app": "web"}, "creationTimestamp": "2026-01-01T01:00:00Z"}});
        let (page, version) = (vec![serde_json::from_value(pod).unwrap()], Version::new(1));
        for event in [Event::ListStarted, Event::Page(page), Event::ListDone { version }] {
            caches.pods.apply(event).unwrap();
        }
        let mut registry = Registry::default();
        let sets = SidecarSets {
            caches,
            api_version: "apps.kruise.io/v1beta1".into(),
            namespace: "system".into(),
            events: EventSink::spawn(client(), "test").0,
            metrics: Metrics::register(&mut registry),
            turns: Mutex::default(),
            injects,
            repairs: Mutex::default(),
        };
        (sets, registry)
    }

    fn counted(registry: &Registry) -> Option<String> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix("kruise_sidecarset_uninjected_pods{"))?;
        line.split_once(' ').map(|(_, count)| count.to_owned())
    }

    fn look(sets: &SidecarSets) {
        let now = "2026-01-01T02:00:00Z".parse().unwrap();
        let outcome = sets.plan(&ObjectKey::new("", "logs"), &Memory::default(), now);
        assert!(matches!(outcome, Outcome::Plan(_)));
    }

    #[tokio::test]
    async fn where_nothing_is_injected_no_pod_is_missed() {
        for (injects, pods) in [(true, "1"), (false, "0")] {
            let (sets, registry) = sets(injects);
            look(&sets);
            assert_eq!(counted(&registry).as_deref(), Some(pods));
        }
    }

    /// Makes the set `logs` one that cannot be read.
    fn break_logs(sets: &SidecarSets) {
        let broken = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
            "metadata": {"name": "logs", "uid": "u0", "resourceVersion": "200"}, "spec": {"containers": 1}});
        let broken = serde_json::from_value(broken).unwrap();
        sets.caches.sidecars.sets.apply(Event::Modified(broken)).unwrap();
        look(sets);
    }

    #[tokio::test]
    async fn a_set_that_cannot_be_read_counts_no_pods() {
        let (sets, registry) = sets(true);
        look(&sets);
        break_logs(&sets);
        assert_eq!(counted(&registry), None);
    }

    #[tokio::test]
    async fn what_another_set_of_the_name_has_tried_does_not_count() {
        let (sets, _) = sets(true);
        let key = ObjectKey::new("", "logs");
        let tried = Repairs::since(Timestamp::UNIX_EPOCH);
        for (of, kept) in [("u0", true), ("before", false)] {
            sets.repairs().insert(key.clone(), (of.to_owned(), tried.clone()));
            look(&sets);
            let (of, repairs) = sets.repairs().get(&key).cloned().unwrap();
            assert_eq!(of, "u0");
            assert_eq!(repairs == tried, kept);
        }
    }

    /// A plan that deletes a pod.
    fn deletion() -> Plan {
        let write = Write::Delete {
            intent: Intent::DeletePod,
            target: Target {
                resource: ResourceId::PODS,
                namespace: "shop".into(),
                name: "web".into(),
            },
            precondition: Precondition::UidAndVersion("p".into(), "1".into()),
        };
        Plan {
            chains: vec![Chain::alone(Wave::Pods, write, "")],
            ..Plan::default()
        }
    }

    #[tokio::test]
    async fn a_set_that_is_gone_or_cannot_be_read_keeps_no_pod_from_others() {
        let (sets, _) = sets(true);
        let may_write = |set: &str| {
            let mut plan = deletion();
            sets.turns().admit(set, &mut plan);
            !plan.chains.is_empty()
        };
        assert!(may_write("gone") && !may_write("other"));
        let outcome = sets.plan(
            &ObjectKey::new("", "gone"),
            &Memory::default(),
            Timestamp::UNIX_EPOCH,
        );
        assert!(matches!(outcome, Outcome::Gone));
        assert!(may_write("other"));
        sets.turns().forget("other");
        assert!(may_write("logs") && !may_write("other"));
        break_logs(&sets);
        assert!(may_write("other"));
    }

    #[tokio::test]
    async fn the_version_of_a_pod_is_known_by_its_uid_and_of_nothing_else() {
        let (sets, _) = sets(true);
        let target = |resource| Target {
            resource,
            namespace: "shop".into(),
            name: "web".into(),
        };
        let version = |resource, uid| sets.version(&target(resource), uid);
        assert_eq!(version(ResourceId::PODS, "p"), Some(Version::new(1)));
        assert_eq!(version(ResourceId::PODS, "q"), None);
        assert_eq!(version(ResourceId::CLAIMS, "p"), None);
    }

    fn read<T: serde::de::DeserializeOwned>(object: &serde_json::Value) -> Arc<T> {
        Arc::new(serde_json::from_value(object.clone()).unwrap())
    }

    #[test]
    fn revisions_are_seen_in_the_managers_namespace_whichever_one_is_watched_for_workloads() {
        let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet",
                         "metadata": {"name": "s", "uid": "u"}, "spec": {}});
        let revision = json!({"metadata": {"name": "s-1", "namespace": "system", "labels": {names::SET_NAME: "s"}},
                              "revision": 1, "data": {"spec": {}}});
        let caches = Caches::new(Some("v1alpha1"));
        fill_with(&caches.sidecars, std::slice::from_ref(&set), &[], &[revision]);
        let cached: Arc<CachedSidecarSet> = read(&set);
        let world = World::observe(&caches, "system", &cached, &SidecarSet::from_json(&set).unwrap());
        let found: Vec<_> = world
            .revisions
            .iter()
            .map(|one| (&*one.name, one.number, &*one.data))
            .collect();
        assert_eq!(found, [("s-1", 1, r#"{"spec":{}}"#)]);
        assert!(caches.sidecars.has_revision("u0") && !caches.sidecars.has_revision("u1"));
    }

    #[test]
    fn sets_that_look_at_namespaces_hear_of_new_ones_and_of_other_labels() {
        let selector = json!({"matchLabels": {"a": "b"}});
        let set = |name: &str, spec| read(&json!({"metadata": {"name": name}, "spec": spec}));
        let sets = [
            set(
                "some",
                json!({"selector": selector, "namespaceSelector": selector}),
            ),
            set("all", json!({"selector": selector})),
        ];
        let namespace = |team: &str| read(&json!({"metadata": {"name": "n", "labels": {"team": team}}}));
        let told = |old, new| sets_of_namespace(&Delta { old, new }, &sets);
        let some = [ObjectKey::new("", "some")];
        assert_eq!(told(None, Some(namespace("x"))), some);
        assert_eq!(told(Some(namespace("x")), Some(namespace("y"))), some);
        assert_eq!(told(Some(namespace("x")), Some(namespace("x"))), []);
        assert_eq!(told(Some(namespace("x")), None), []);
    }
}
