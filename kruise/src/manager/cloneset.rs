//! CloneSet: what it watches, how an event becomes a key, what a plan is made from.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use kruise_api::cloneset::CloneSet;
use kruise_plan_kit::{EventNote, Memory, Plan, ResourceId, Target, events};
use kruise_plan_workloads::cloneset::{Claims, Explain, Observed, Options, plan};
use kruise_runtime::{
    events::{EventSink, ObjectRef},
    metrics::Metrics,
    worker::{Outcome, Planner},
};
use kruise_views::{ClaimView, ImageJobView, NodeView, OwnerView, PodView, RevisionView};
use kube_cache::{Cached, Delta, ObjectKey, Version};

use super::caches::{CLAIMS_BY_OWNER, Caches, PODS_BY_OWNER, PULL_JOBS_BY_OWNER};

/// Name in metrics, logs, user agent and events.
pub const NAME: &str = "cloneset-controller";

/// Plans one CloneSet from the caches.
pub struct CloneSets {
    /// What is seen.
    pub caches: Caches,
    /// `apiVersion` on the wire.
    pub api_version: String,
    /// Gates and flags.
    pub options: Options,
    /// Where events go.
    pub events: EventSink,
    /// Counters.
    pub metrics: Metrics,
}

impl Planner for CloneSets {
    type Key = ObjectKey;

    fn plan(&self, key: &ObjectKey, memory: &Memory, now: Timestamp) -> Outcome {
        let Some(cached) = self.caches.sets.snapshot().get(key) else {
            return Outcome::Gone;
        };
        match &cached.set {
            Ok(set) => {
                let world = World::observe(&self.caches, set);
                Outcome::Plan(Box::new(world.plan(
                    set,
                    &self.api_version,
                    self.options,
                    memory,
                    Explain::No,
                    now,
                )))
            }
            Err(error) => {
                let message = format!("the specification cannot be read: {error}");
                let note = EventNote {
                    reason: &events::INVALID_SPEC,
                    message,
                };
                Outcome::Plan(Box::new(Plan {
                    events: vec![note],
                    ..Plan::default()
                }))
            }
        }
    }

    fn observed(&self, resource: ResourceId) -> Option<Version> {
        self.caches.observed(resource)
    }

    fn present(&self, resource: ResourceId, uid: &str) -> bool {
        self.caches.present(resource, uid)
    }

    fn version(&self, target: &Target, uid: &str) -> Option<Version> {
        self.caches.version(target, uid)
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let sets = self.caches.sets.snapshot();
        sets.iter().map(|set| ObjectKey::of(&**set)).collect()
    }

    fn overdue(&self, key: &ObjectKey) {
        self.metrics.leaked(&key.namespace, &key.name);
    }

    fn emit(&self, key: &ObjectKey, note: EventNote) {
        let Some(set) = self.caches.sets.snapshot().get(key) else {
            return;
        };
        let owner = ObjectRef {
            api_version: self.api_version.clone(),
            kind: "CloneSet".into(),
            namespace: set.metadata.namespace.clone(),
            name: set.metadata.name.clone(),
            uid: set.metadata.uid.clone(),
            resource_version: set.metadata.resource_version.clone(),
        };
        self.events.emit(owner, note);
    }
}

/// Everything that belongs to one set, at one instant of each cache.
pub struct World {
    pods: Vec<Arc<PodView>>,
    claims: Claims,
    revisions: Vec<Arc<RevisionView>>,
    pull_jobs: Vec<Arc<ImageJobView>>,
    nodes: BTreeMap<Box<str>, Arc<NodeView>>,
}

impl World {
    /// Reads the caches.
    pub fn observe(caches: &Caches, set: &CloneSet) -> Self {
        let claims = caches
            .claims
            .snapshot()
            .by_index(&CLAIMS_BY_OWNER, &set.metadata.uid);
        let snapshot = caches.pods.snapshot();
        let pods = snapshot.by_index(&PODS_BY_OWNER, &set.metadata.uid);
        let namespace = &set.metadata.namespace;
        let exists = |pod: &str| snapshot.get(&ObjectKey::new(namespace.as_str(), pod)).is_some();
        let claims = Claims::new(set, claims, exists);
        drop(snapshot);
        let revisions = caches.revisions.snapshot().list(&set.metadata.namespace);
        let spreads = set
            .spec
            .template
            .pointer("/spec/topologySpreadConstraints")
            .is_some();
        let nodes = if spreads {
            caches.nodes.snapshot().list("")
        } else {
            Vec::new()
        };
        let pull_jobs = caches
            .pull_jobs
            .snapshot()
            .by_index(&PULL_JOBS_BY_OWNER, &set.metadata.uid);
        Self::new(set, pods, claims, revisions, nodes).with_pull_jobs(pull_jobs)
    }

    /// From objects in hand: keeps the revisions that are the set's, or that nobody controls and its selector matches.
    pub fn new(
        set: &CloneSet,
        pods: Vec<Arc<PodView>>,
        claims: Claims,
        mut revisions: Vec<Arc<RevisionView>>,
        nodes: Vec<Arc<NodeView>>,
    ) -> Self {
        revisions.retain(|revision| match revision.owner_uid.as_deref() {
            Some(uid) => uid == set.metadata.uid,
            None => set.spec.selector.matches_by(|key| revision.labels.get(key)),
        });
        let nodes = nodes.into_iter().map(|node| (node.name().into(), node)).collect();
        Self {
            pods,
            claims,
            revisions,
            pull_jobs: Vec::new(),
            nodes,
        }
    }

    /// With the set's jobs that pull images.
    #[must_use]
    pub fn with_pull_jobs(mut self, jobs: Vec<Arc<ImageJobView>>) -> Self {
        self.pull_jobs = jobs;
        self
    }

    /// Plans.
    pub fn plan(
        &self,
        set: &CloneSet,
        api_version: &str,
        options: Options,
        memory: &Memory,
        explain: Explain,
        now: Timestamp,
    ) -> Plan {
        let node = |name: &str| self.nodes.get(name).map(|node| &**node);
        let observed = Observed {
            set,
            api_version,
            pods: &self.pods,
            claims: &self.claims,
            revisions: &self.revisions,
            pull_jobs: &self.pull_jobs,
            node: &node,
            options,
            memory,
            explain,
        };
        plan(&observed, now)
    }
}

/// The sets that a change of a pod concerns: its owner before and after.
pub fn owners_of_pod(delta: &Delta<PodView>) -> impl Iterator<Item = ObjectKey> {
    owners_of(delta, |pod| pod.controller.as_deref())
}

/// The sets that a change of a claim concerns.
pub fn owners_of_claim(delta: &Delta<ClaimView>) -> impl Iterator<Item = ObjectKey> {
    owners_of(delta, |claim| claim.controller.as_deref())
}

/// The sets that a change of a job that pulls images concerns.
pub fn owners_of_pull_job(delta: &Delta<ImageJobView>) -> impl Iterator<Item = ObjectKey> {
    owners_of(delta, |job| job.controller.as_deref())
}

fn owners_of<T: Cached>(
    delta: &Delta<T>,
    controller: impl Fn(&T) -> Option<&OwnerView>,
) -> impl Iterator<Item = ObjectKey> {
    let key = |object: &Arc<T>| {
        let owner = controller(object)?;
        let ours = &*owner.kind == "CloneSet" && &*owner.group == kruise_api::names::APPS_GROUP;
        ours.then(|| ObjectKey::new(object.namespace(), owner.name.clone()))
    };
    let (old, new) = (delta.old.as_ref().and_then(key), delta.new.as_ref().and_then(key));
    let moved = if old == new { None } else { old };
    new.into_iter().chain(moved)
}
