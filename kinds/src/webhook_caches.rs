//! The caches that webhooks read: SidecarSets, labels of namespaces, revisions of SidecarSets, budgets,
//! PersistentPodStates, PodProbeMarkers, WorkloadSpreads.
//!
//! Every replica serves webhooks, so every replica has these caches. They stay empty if their kind is not served.

use std::{
    collections::BTreeSet,
    future::pending,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use kruise_admission::{
    Options,
    deletion::dependants::Dependants,
    disruption::{self, EVICTIONS, Evictions},
    lookup::{Belief, Lookup, LookupResult, ObjectName, Pod, Revision, StoredKind},
    manifests::{MUTATE_POD, PODS_OF_SETS},
    pod::sidecars::{Reach, Set, Sets, condition},
    widening::StoredSoon,
};
use kruise_api::{
    meta::{ObjectMeta, StringMap},
    names::agent::{LABEL as AGENT_LABEL, READS_PODS},
    persistentpodstate::{KIND as POD_STATE, PersistentPodState},
    podprobemarker::{KIND as PROBE_MARKER, PodProbeMarker},
    podunavailablebudget::{KIND as BUDGET, PodUnavailableBudget},
    sidecarset::KIND as SIDECARSET,
    workloadspread::{KIND as SPREAD, WorkloadSpread},
};
use kruise_frame::{
    caches::NAMESPACES,
    lookup::{Cache, Cached, newest},
    workloads::Workloads,
};
use kruise_plan_kit::workloads::{Wanted, Workload};
use kruise_runtime::{
    Served,
    caches::{CacheId, Caches, Held},
};
use kruise_server::{
    configuration::{
        ConditionalWebhook, DesiredCondition,
        widening::{KEPT, Widened},
    },
    webhook_controller::{Conditional, Phase},
};
use kruise_views::{Labels, NamespaceView, NodeView, PodView, WorkloadView};
use kube_cache::{ObjectKey, SharedInformer};
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{
    probes::POD_PROBE_MARKERS,
    sidecarset::{CachedRevision, CachedSidecarSet, SET_REVISIONS, SIDECARSETS},
};
use crate::charges::Newest;

mod awaited;
mod needed;

use crate::persistentpodstate::cached::POD_STATES;
use crate::podunavailablebudget::cached::BUDGETS;
use crate::workloadspread::cached::SPREADS;
use awaited::{Awaited, CachedObject};
use kruise_runtime::parsed::Parsed;
use needed::Needed;

/// The webhook for new pods whose match condition is derived from the SidecarSets, budgets, PersistentPodStates,
/// PodProbeMarkers and WorkloadSpreads.
pub fn conditional_webhook() -> ConditionalWebhook {
    ConditionalWebhook {
        name: PODS_OF_SETS.into(),
        path: MUTATE_POD.into(),
        condition: "matches-a-set-or-budget".into(),
        in_place: false,
    }
}

/// The webhook for evictions, whose match condition is derived from the budgets and WorkloadSpreads.
pub fn webhook_of_evictions() -> ConditionalWebhook {
    ConditionalWebhook {
        name: EVICTIONS.into(),
        path: disruption::PATH.into(),
        condition: "where-a-budget-is".into(),
        in_place: true,
    }
}

/// The caches that webhooks read. Cloning shares them.
#[derive(Clone)]
pub struct WebhookCaches {
    served: Arc<Served>,
    /// SidecarSets.
    pub sidecarsets: SharedInformer<CachedSidecarSet>,
    /// Namespaces.
    pub namespaces: SharedInformer<NamespaceView>,
    /// Revisions of SidecarSets, in the manager's namespace.
    pub revisions: SharedInformer<CachedRevision>,
    sorted: Arc<SortedSets>,
    desired: watch::Sender<DesiredCondition>,
    /// SidecarSets that are about to be stored.
    awaited: Awaited,
    /// PodProbeMarkers that are about to be stored.
    awaited_markers: Awaited,
    /// When the last widening expires that the configuration has.
    widened_until: watch::Sender<Option<Instant>>,
    /// Budgets.
    pub budgets: Newest<PodUnavailableBudget>,
    /// WorkloadSpreads; none if their gate is off.
    pub spreads: Newest<WorkloadSpread>,
    /// PersistentPodStates; `None` if they are not served.
    pod_states: Option<SharedInformer<Parsed<Arc<PersistentPodState>>>>,
    /// PodProbeMarkers; `None` unless new pods have their probes in annotations.
    probe_markers: Option<SharedInformer<Parsed<Arc<PodProbeMarker>>>>,
    /// Match condition for evictions.
    evictions: watch::Sender<DesiredCondition>,
}

/// The objects that can be read, of one namespace or of all; `None` before the first list is complete. Without a
/// cache there are none.
fn readable<T: Send + Sync + 'static>(
    cache: Option<&SharedInformer<Parsed<Arc<T>>>>,
    namespace: Option<&str>,
) -> Option<Vec<Arc<T>>> {
    let Some(cache) = cache else {
        return Some(Vec::new());
    };
    cache.synced_version()?;
    let snapshot = cache.snapshot();
    let cached = match namespace {
        Some(namespace) => snapshot.list(namespace),
        None => snapshot.iter().cloned().collect(),
    };
    let readable = cached.iter().filter_map(|one| one.object.as_ref().ok());
    Some(readable.cloned().collect())
}

/// Has a cache an object of which this holds? `None` before the first list is complete, and without a cache.
fn holds<T: Held>(
    cache: Option<&SharedInformer<T>>,
    key: &ObjectKey,
    holds: impl Fn(&T) -> bool,
) -> Option<bool> {
    let cache = cache.filter(|cache| cache.synced_version().is_some())?;
    Some(cache.snapshot().get(key).is_some_and(|one| holds(&one)))
}

/// All SidecarSets sorted by name. They are sorted again at the first read after a change.
struct SortedSets {
    current: Mutex<Option<Arc<Sets>>>,
    changed: watch::Sender<()>,
}

impl WebhookCaches {
    /// Declares the caches of the webhooks with these options.
    pub fn new(caches: &mut Caches, served: &Arc<Served>, options: &Options) -> Self {
        let is_served = served.version(kruise_api::sidecarset::RESOURCE).is_some();
        let budgets = Newest::new(caches, served, true);
        let spreads = Newest::new(caches, served, options.workload_spread);
        let has_pod_states = served.version(kruise_api::persistentpodstate::RESOURCE).is_some();
        let has_probes =
            options.serverless_probes && served.version(kruise_api::podprobemarker::RESOURCE).is_some();
        let webhook_caches = Self {
            served: served.clone(),
            sidecarsets: caches.informer_if(is_served, &SIDECARSETS),
            namespaces: caches.informer_if(is_served, &NAMESPACES),
            revisions: caches.informer_if(is_served, &SET_REVISIONS),
            sorted: Arc::new(SortedSets {
                current: Mutex::new(None),
                changed: watch::channel(()).0,
            }),
            desired: watch::channel(
                if is_served || has_pod_states || has_probes || budgets.are_served() || spreads.are_served() {
                    DesiredCondition::default()
                } else {
                    // Nothing needs the webhook, and no pod may depend on it.
                    DesiredCondition::Absent
                },
            )
            .0,
            awaited: Awaited::default(),
            awaited_markers: Awaited::default(),
            widened_until: watch::channel(None).0,
            budgets,
            spreads,
            pod_states: has_pod_states.then(|| caches.informer(&POD_STATES)),
            probe_markers: has_probes.then(|| caches.informer(&POD_PROBE_MARKERS)),
            evictions: watch::channel(DesiredCondition::default()).0,
        };
        let sorted = webhook_caches.sorted.clone();
        caches.on_change(&SIDECARSETS, move |_| sorted.invalidate());
        webhook_caches.sorted.follow(caches, &POD_STATES);
        webhook_caches.sorted.follow(caches, &POD_PROBE_MARKERS);
        webhook_caches.sorted.follow(caches, &SPREADS);
        webhook_caches.sorted.follow(caches, &BUDGETS);
        webhook_caches
    }

    fn is_served(&self) -> bool {
        self.served.version(kruise_api::sidecarset::RESOURCE).is_some()
    }

    /// The PersistentPodStates of one namespace or of all; see [`readable`].
    fn pod_states(&self, namespace: Option<&str>) -> Option<Vec<Arc<PersistentPodState>>> {
        readable(self.pod_states.as_ref(), namespace)
    }

    /// The PodProbeMarkers of one namespace or of all; see [`readable`].
    fn probe_markers(&self, namespace: Option<&str>) -> Option<Vec<Arc<PodProbeMarker>>> {
        readable(self.probe_markers.as_ref(), namespace)
    }

    /// All SidecarSets sorted by name; `None` before the first list is complete.
    pub fn sorted_sets(&self) -> Option<Arc<Sets>> {
        if !self.is_served() {
            return Some(Arc::default());
        }
        self.sidecarsets.synced_version()?;
        let mut current = self.sorted.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_none() {
            let sets = self.sidecarsets.snapshot().list("");
            *current = Some(Arc::new(Sets::new(sets.iter().map(|cached| cached.set.clone()))));
        }
        current.clone()
    }

    /// Notes an object whose review allows it to be stored. Pods wait for SidecarSets and PodProbeMarkers: one that
    /// is created before its budget is known is linked by the controller of the budget.
    pub fn is_reviewed(&self, object: &StoredSoon) {
        if let Some(awaited) = self.awaited_of(&object.kind) {
            awaited.add(object);
        }
    }

    /// Where objects of a kind are noted that pods wait for; `None` if they do not.
    fn awaited_of(&self, kind: &str) -> Option<&Awaited> {
        if kind == SIDECARSET.kind {
            Some(&self.awaited)
        } else if kind == PROBE_MARKER.kind {
            Some(&self.awaited_markers)
        } else {
            None
        }
    }

    /// Does the cache of its kind have an object whose review widened a condition, or a later state of it? `None`
    /// if that cannot be told.
    pub fn has_stored(&self, object: &StoredSoon) -> Option<bool> {
        let key = ObjectKey::new(object.namespace.as_str(), object.name.as_str());
        let has = |metadata: &ObjectMeta| CachedObject::of(metadata).has(object);
        let kind = object.kind.as_str();
        if kind == SIDECARSET.kind {
            holds(Some(&self.sidecarsets), &key, |one| has(&one.metadata))
        } else if kind == BUDGET.kind {
            holds(Some(&self.budgets.cache), &key, |one| has(&one.metadata))
        } else if kind == SPREAD.kind {
            holds(Some(&self.spreads.cache), &key, |one| has(&one.metadata))
        } else if kind == POD_STATE.kind {
            holds(self.pod_states.as_ref(), &key, |one| has(&one.metadata))
        } else if kind == PROBE_MARKER.kind {
            holds(self.probe_markers.as_ref(), &key, |one| has(&one.metadata))
        } else {
            None
        }
    }

    /// Notes the widenings that a webhook configuration has now. The objects that they are for are about to be stored.
    pub fn conditions_are_widened(&self, widened: &[Widened], now: Timestamp) {
        let left = |one: &Widened| Duration::try_from(one.until.duration_since(now)).unwrap_or_default();
        for one in widened.iter().filter(|one| one.webhook == PODS_OF_SETS) {
            let Some(awaited) = self.awaited_of(&one.object.kind) else {
                continue;
            };
            let object = StoredSoon {
                kind: one.object.kind.clone(),
                namespace: one.object.namespace.clone(),
                name: one.object.name.clone(),
                uid: one.object.uid.clone(),
                generation: one.object.generation,
            };
            awaited.add_after(&object, KEPT.saturating_sub(left(one)));
        }
        if let Some(left) = widened.iter().map(left).max() {
            self.widened_until.send_replace(Some(Instant::now() + left));
        }
    }

    /// True if a SidecarSet was reviewed a moment ago and is not in the cache yet.
    fn lacks_reviewed_sets(&self) -> bool {
        let cached =
            |key: &ObjectKey| Some(CachedObject::of(&self.sidecarsets.snapshot().get(key)?.metadata));
        self.awaited.are_missing("", cached)
    }

    /// True if a PodProbeMarker of the namespace was reviewed a moment ago and is not in the cache yet.
    fn lacks_reviewed_markers(&self, namespace: &str) -> bool {
        let Some(markers) = &self.probe_markers else {
            return false;
        };
        let cached = |key: &ObjectKey| Some(CachedObject::of(&markers.snapshot().get(key)?.metadata));
        self.awaited_markers.are_missing(namespace, cached)
    }

    /// The webhooks whose match conditions are derived. Only the leader derives them.
    pub fn conditional_webhooks(&self) -> Vec<Conditional> {
        vec![
            Conditional {
                phase: Phase::Mutating,
                webhook: conditional_webhook(),
                desired: self.desired.subscribe(),
            },
            Conditional {
                phase: Phase::Validating,
                webhook: webhook_of_evictions(),
                desired: self.evictions.subscribe(),
            },
        ]
    }

    /// Derives the match conditions from the SidecarSets, budgets, PersistentPodStates, PodProbeMarkers and
    /// WorkloadSpreads at every change, until `stop` turns true. Only the leader runs it. A condition becomes
    /// narrower only after a minute, and is published again when widenings have expired. `open` learns of each
    /// webhook whether it is called for the whole cluster, whenever that changes.
    pub async fn derive_match_conditions(
        self,
        open: impl Fn(&'static str, Phase, bool),
        mut stop: watch::Receiver<bool>,
    ) {
        let mut are_open = [false; 2];
        let mut changes = self.sorted.changed.subscribe();
        let mut widened = self.widened_until.subscribe();
        let mut pods = Needed::new(condition);
        let mut evictions = Needed::new(disruption::condition);
        widened.mark_changed();
        loop {
            changes.mark_unchanged();
            if widened.has_changed().unwrap_or(false)
                && let Some(until) = *widened.borrow_and_update()
            {
                pods.is_widened(until);
                evictions.is_widened(until);
            }
            if let Some((of_pods, of_evictions)) = self.reaches() {
                publish(&self.desired, pods.update(of_pods, Instant::now()));
                publish(&self.evictions, evictions.update(of_evictions, Instant::now()));
                let webhooks = [
                    (PODS_OF_SETS, Phase::Mutating, &self.desired),
                    (EVICTIONS, Phase::Validating, &self.evictions),
                ];
                for (was_open, (name, phase, desired)) in are_open.iter_mut().zip(webhooks) {
                    let is_open =
                        matches!(&*desired.borrow(), DesiredCondition::Expression(text) if text == "true");
                    if is_open != *was_open {
                        *was_open = is_open;
                        open(name, phase, is_open);
                    }
                }
            }
            let next = async {
                match pods.next().into_iter().chain(evictions.next()).min() {
                    Some(next) => sleep_until(next).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                // No errors: `self` holds the senders.
                _ = changes.changed() => {}
                _ = widened.changed() => widened.mark_changed(),
                () = next => {}
            }
        }
    }

    /// What the webhooks are needed for; `None` before the first lists are complete.
    fn reaches(&self) -> Option<(BTreeSet<Reach>, BTreeSet<Evictions>)> {
        let sets = self.sorted_sets()?;
        let budgets = match self.budgets.cache.synced_version() {
            Some(_) => self.budgets.cache.snapshot().iter().cloned().collect(),
            None if self.budgets.are_served() => return None,
            None => Vec::new(),
        };
        let (states, markers) = (self.pod_states(None)?, self.probe_markers(None)?);
        let spreads = self.spreads.all()?;
        let mut pods = Reach::of_all(&sets);
        pods.extend(states.iter().filter_map(|state| Reach::of_pod_state(state)));
        pods.extend(markers.iter().flat_map(|marker| Reach::of_probe_marker(marker)));
        pods.extend(
            budgets
                .iter()
                .filter_map(|one| Reach::of_budget(one.object.as_ref().ok()?)),
        );
        pods.extend(spreads.iter().filter_map(|spread| Reach::of_spread(spread)));
        let of_budgets = budgets.iter().map(|budget| &budget.metadata.namespace);
        let of_spreads = spreads.iter().map(|spread| &spread.metadata.namespace);
        let evictions = of_budgets
            .chain(of_spreads)
            .map(|namespace| Evictions::in_namespace(namespace));
        Some((pods, evictions.collect()))
    }

    /// One object of a kind, as far as it is cached.
    fn one(&self, kind: StoredKind, name: &ObjectName) -> Cached {
        if kind == StoredKind::of::<PodUnavailableBudget>() {
            self.budgets.get(name)
        } else if kind == StoredKind::of::<WorkloadSpread>() {
            self.spreads.get(name)
        } else {
            Cached::Absent
        }
    }

    /// All objects of a kind in a namespace, unless one was reviewed a moment ago and is not in the cache yet.
    fn all(&self, kind: StoredKind, namespace: &str) -> Cached {
        if kind == StoredKind::of::<Set>() {
            if self.lacks_reviewed_sets() {
                return Cached::Absent;
            }
            listed(self.sorted_sets().map(LookupResult::all::<Set>))
        } else if kind == StoredKind::of::<PodUnavailableBudget>() {
            self.budgets.of_namespace(namespace)
        } else if kind == StoredKind::of::<PersistentPodState>() {
            let states = self.pod_states(Some(namespace));
            listed(states.map(LookupResult::all::<PersistentPodState>))
        } else if kind == StoredKind::of::<PodProbeMarker>() {
            if self.lacks_reviewed_markers(namespace) {
                return Cached::Absent;
            }
            let markers = self.probe_markers(Some(namespace));
            listed(markers.map(LookupResult::all::<PodProbeMarker>))
        } else if kind == StoredKind::of::<WorkloadSpread>() {
            self.spreads.of_namespace(namespace)
        } else {
            Cached::Absent
        }
    }

    /// A revision of a SidecarSet, as it is stored.
    pub fn revision(&self, namespace: &str, wanted: &Revision) -> Option<Value> {
        let snapshot = self.revisions.snapshot();
        match wanted {
            Revision::Named(name) => {
                let found = snapshot.get(&ObjectKey::new(namespace, name.as_str()))?;
                Some(found.object.clone())
            }
            Revision::Newest(labels) => {
                let found = snapshot.list(namespace).into_iter().filter(|one| {
                    let mut labels = labels.iter();
                    labels.all(|(key, value)| one.metadata.labels.get(*key) == Some(value))
                });
                newest(found.map(|one| one.object.clone()).collect())
            }
        }
    }
}

fn publish(to: &watch::Sender<DesiredCondition>, (desired, is_due): (DesiredCondition, bool)) {
    to.send_if_modified(|current| {
        let differs = *current != desired;
        if differs {
            *current = desired;
        }
        differs || is_due
    });
}

/// The cache of the lookups of reviews.
#[derive(Clone)]
pub struct ReviewCache {
    /// SidecarSets, namespaces and revisions.
    pub webhook_caches: WebhookCaches,
    /// Pods, which CloneSets name in `podsToDelete`.
    pub pods: SharedInformer<PodView>,
    /// Nodes.
    pub nodes: SharedInformer<NodeView>,
    /// Workloads; `None` if only the server knows them.
    pub workloads: Option<Workloads>,
    /// Namespace of the manager, where revisions of SidecarSets are.
    pub namespace: String,
}

impl Cache for ReviewCache {
    fn get(&self, lookup: &Lookup) -> Cached {
        let at = |name: &str| ObjectKey::new("", name);
        match lookup {
            Lookup::One(kind, name) => self.webhook_caches.one(*kind, name),
            Lookup::All(kind, namespace) => self.webhook_caches.all(*kind, namespace),
            Lookup::NamespaceLabels(name) => {
                let namespace = self.webhook_caches.namespaces.snapshot().get(&at(name));
                cached(namespace.map(|namespace| labels(namespace.labels())))
            }
            Lookup::NodeLabels(name) => {
                let node = self.nodes.snapshot().get(&at(name));
                cached(node.map(|node| labels(node.labels())))
            }
            Lookup::PodOwner { namespace, name } => {
                self.pod(&ObjectKey::new(namespace.as_str(), name.as_str()))
            }
            Lookup::Revision(wanted) => {
                let revision = self.webhook_caches.revision(&self.namespace, wanted);
                cached(revision.map(LookupResult::Object))
            }
            Lookup::Dependants(Dependants::ActivePods { namespace }) => self.active_pods(namespace),
            Lookup::Pod(name) => {
                let key = ObjectKey::new(name.namespace.as_str(), name.name.as_str());
                cached(self.pods.snapshot().get(&key).map(LookupResult::View))
            }
            Lookup::Owner { namespace, workload } => {
                let workloads = self.workloads.as_ref();
                let view = workloads.and_then(|found| found.cached_view(namespace, workload));
                let owner = |view: Arc<WorkloadView>| view.controller.as_deref().map(Workload::from);
                cached(view.map(|view| LookupResult::Owner(owner(view))))
            }
            Lookup::Workloads {
                namespace,
                controller,
            } => {
                let workloads = self.workloads.as_ref();
                let owners = workloads.and_then(|found| found.cached_owners(namespace, controller));
                cached(owners.map(LookupResult::Workloads))
            }
            Lookup::Wanted {
                namespace,
                pod,
                belief,
            } => {
                let wanted = match &self.workloads {
                    Some(found) => found.cached_wanted(namespace, pod, *belief),
                    None => (*belief == Belief::Uncached).then(|| Wanted::Yes(Vec::new())),
                };
                cached(wanted.map(LookupResult::Wanted))
            }
            Lookup::NamespaceEnds(name) => {
                let namespace = self.webhook_caches.namespaces.snapshot().get(&at(name));
                cached(namespace.map(|namespace| LookupResult::Ends(namespace.is_terminating())))
            }
            Lookup::BlindAgent(node) if self.pods.synced_version().is_some() => {
                let [key, value] = AGENT_LABEL;
                let pods = self.pods.snapshot().list(&self.namespace);
                let mut agents = pods
                    .iter()
                    .filter(|pod| pod.node.as_deref() == Some(node) && pod.labels.get(key) == Some(value));
                let is_blind = agents.any(|pod| pod.labels.get(READS_PODS).is_none());
                Cached::Found(LookupResult::Has(is_blind))
            }
            Lookup::Replicas { namespace, workload } => {
                let workloads = self.workloads.as_ref();
                let view = workloads.and_then(|found| found.cached_view(namespace, workload));
                let replicas = view.and_then(|view| view.replicas);
                cached(replicas.map(|replicas| LookupResult::Replicas(Some(replicas))))
            }
            // These have no cache.
            Lookup::Live(..)
            | Lookup::Setting(_)
            | Lookup::Path(_)
            | Lookup::Dependants(_)
            | Lookup::LivePod(_)
            | Lookup::BlindAgent(_)
            | Lookup::Workload { .. }
            | Lookup::PodTemplate { .. }
            | Lookup::DryRunCreate { .. } => Cached::Absent,
        }
    }
}

impl ReviewCache {
    /// After the first list, a pod that is not in the cache does not exist. Asking the server would cost a request
    /// for each name, and most pods of a long list are deleted already.
    fn pod(&self, key: &ObjectKey) -> Cached {
        match self.pods.snapshot().get(key) {
            Some(pod) => Cached::Found(LookupResult::Pod(owner(&pod))),
            None if self.pods.synced_version().is_some() => Cached::Found(LookupResult::NotFound),
            None => Cached::Absent,
        }
    }

    /// That there are none is for the server to say: a pod may be newer than the cache, or in a namespace that is
    /// not cached.
    fn active_pods(&self, namespace: &str) -> Cached {
        let pods = self.pods.snapshot().list(namespace);
        match pods.iter().filter(|pod| pod.is_active()).count() {
            0 => Cached::Absent,
            number => Cached::Found(LookupResult::Count(Ok(number as u64))),
        }
    }
}

fn cached(result: Option<LookupResult>) -> Cached {
    result.map_or(Cached::Absent, Cached::Found)
}

/// What all of a kind is looked up in: there is an answer once the first list is complete.
fn listed(result: Option<LookupResult>) -> Cached {
    result.map_or(Cached::NotSynced, Cached::Found)
}

fn labels(labels: &Labels) -> LookupResult {
    let labels = labels
        .iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    LookupResult::Labels(labels.collect::<StringMap>())
}

fn owner(pod: &PodView) -> Pod {
    Pod {
        controller: pod.controller.as_ref().map(|owner| owner.uid.to_string()),
        deleting: pod.deleting,
    }
}

impl SortedSets {
    /// Notes when an object comes or goes. Which pods it is about does not change meanwhile, and its status may
    /// change all the time.
    fn follow<T: Held>(self: &Arc<Self>, caches: &Caches, id: &CacheId<T>) {
        let this = self.clone();
        caches.on_change(id, move |delta| {
            if delta.old.is_none() || delta.new.is_none() {
                this.changed.send_replace(());
            }
        });
    }

    fn invalidate(&self) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.changed.send_replace(());
    }
}

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
