//! What the manager sees of the cluster: one watch for each resource, shared by all controllers.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    sync::Arc,
    time::Duration,
};

use anyhow::bail;
use kruise_api::names::LAUNCH_BARRIER_LABEL;
use kruise_plan_kit::{
    ResourceId, Target,
    injected::{Bug, is_injected},
};
use kruise_runtime::{
    follow::{Scope, follow},
    freshness::Followed,
};
use kruise_views::{BarrierView, ClaimView, ImageJobView, NodeView, PodView, RevisionView};
use kube_cache::{Cached, Delta, Index, ObjectKey, SharedInformer, Version};
use serde::de::DeserializeOwned;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

use super::{
    config::Config,
    objects::CachedCloneSet,
    process::Host,
    sidecars::{SidecarCaches, SidecarHandlers},
    sidecarset::injected,
};

/// Pods by the uid of their controlling owner.
pub const PODS_BY_OWNER: Index<PodView> = Index::new("owner", |pod| {
    pod.controller.iter().map(|owner| owner.uid.clone()).collect()
});
/// Pods by the names of the SidecarSets injected into them.
pub const PODS_BY_SIDECARSET: Index<PodView> =
    Index::new("sidecarset", |pod| injected(pod).map(Into::into).collect());
/// Claims by the uid of their controlling owner.
pub const CLAIMS_BY_OWNER: Index<ClaimView> = Index::new("owner", |claim| {
    claim.controller.iter().map(|owner| owner.uid.clone()).collect()
});
/// Jobs that pull images, by the uid of their controlling owner.
pub const PULL_JOBS_BY_OWNER: Index<ImageJobView> = Index::new("owner", |job| {
    job.controller.iter().map(|owner| owner.uid.clone()).collect()
});
const PULL_JOBS_BY_UID: Index<ImageJobView> = Index::new("uid", |job| vec![job.uid.clone()]);
const CLAIMS_BY_UID: Index<ClaimView> = Index::new("uid", |claim| vec![claim.uid.clone()]);
const PODS_BY_UID: Index<PodView> = Index::new("uid", |pod| vec![pod.uid.clone()]);
const BARRIERS_BY_UID: Index<BarrierView> = Index::new("uid", |barrier| vec![barrier.uid.clone()]);
const REVISIONS_BY_UID: Index<RevisionView> = Index::new("uid", |revision| vec![revision.uid.clone()]);

/// The informers.
#[derive(Clone)]
pub struct Caches {
    /// CloneSets in the version on the wire.
    pub sets: SharedInformer<CachedCloneSet>,
    /// All pods.
    pub pods: SharedInformer<PodView>,
    /// All claims.
    pub claims: SharedInformer<ClaimView>,
    /// Barriers of pods; no other ConfigMaps.
    pub barriers: SharedInformer<BarrierView>,
    /// All revisions.
    pub revisions: SharedInformer<RevisionView>,
    /// Jobs that pull images; empty unless they are watched.
    pub pull_jobs: SharedInformer<ImageJobView>,
    /// Nodes: where they stand.
    pub nodes: SharedInformer<NodeView>,
    /// SidecarSets, and what their injection asks besides.
    pub sidecars: SidecarCaches,
}

/// What is watched of `apps.kruise.io`.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// The version on the wire.
    pub clonesets: &'a str,
    /// Are there decisions about ImagePullJobs?
    pub pull_jobs: bool,
}

/// What to do with each change.
pub struct Handlers {
    /// A CloneSet changed.
    pub set: Box<dyn FnMut(Delta<CachedCloneSet>) + Send>,
    /// A pod changed.
    pub pod: Box<dyn FnMut(Delta<PodView>) + Send>,
    /// A claim changed.
    pub claim: Box<dyn FnMut(Delta<ClaimView>) + Send>,
    /// A job that pulls images changed.
    pub pull_job: Box<dyn FnMut(Delta<ImageJobView>) + Send>,
    /// A barrier changed.
    pub barrier: Box<dyn FnMut(Delta<BarrierView>) + Send>,
    /// A revision changed.
    pub revision: Box<dyn FnMut(Delta<RevisionView>) + Send>,
    /// A SidecarSet, or what it depends on, changed.
    pub sidecars: SidecarHandlers,
}

impl Caches {
    /// Empty caches, of SidecarSets in the version that is served.
    pub fn new(sidecarsets: Option<&'static str>) -> Self {
        Self {
            sets: SharedInformer::new([]),
            pods: SharedInformer::new([PODS_BY_OWNER, PODS_BY_UID, PODS_BY_SIDECARSET]),
            claims: SharedInformer::new([CLAIMS_BY_OWNER, CLAIMS_BY_UID]),
            barriers: SharedInformer::new([BARRIERS_BY_UID]),
            revisions: SharedInformer::new([REVISIONS_BY_UID]),
            pull_jobs: SharedInformer::new([PULL_JOBS_BY_OWNER, PULL_JOBS_BY_UID]),
            nodes: SharedInformer::new([]),
            sidecars: SidecarCaches::new(sidecarsets),
        }
    }

    /// Starts the watches and returns once every first list is in. The pod list is at least as new as the lists of
    /// their owners and their claims, so that no owner is planned without pods it already has, and no claim is taken for
    /// one without a pod.
    pub async fn start(
        &self,
        host: &Host,
        config: &Config,
        watched: Watched<'_>,
        handlers: Handlers,
        stop: watch::Receiver<bool>,
    ) -> anyhow::Result<Watches> {
        let patience = config.cache_sync_timeout;
        let mut watches = Watches::default();
        let all = |path: String| Scope { path, selector: None };
        let scope = |group: &str, plural: &str| {
            all(match &config.namespace {
                Some(namespace) => format!("{group}/namespaces/{namespace}/{plural}"),
                None => format!("{group}/{plural}"),
            })
        };
        let system = &config.webhook.namespace;
        self.sidecars
            .start(&mut watches, host, system, handlers.sidecars, &stop);
        let group = format!("/apis/apps.kruise.io/{}", watched.clonesets);
        let sets = scope(&group, "clonesets");
        spawn(&mut watches, host, sets, &self.sets, handlers.set, stop.clone());
        let revisions = scope("/apis/apps/v1", "controllerrevisions");
        spawn(
            &mut watches,
            host,
            revisions,
            &self.revisions,
            handlers.revision,
            stop.clone(),
        );
        spawn(
            &mut watches,
            host,
            all("/api/v1/nodes".into()),
            &self.nodes,
            Box::new(drop),
            stop.clone(),
        );
        let claims = scope("/api/v1", "persistentvolumeclaims");
        spawn(
            &mut watches,
            host,
            claims,
            &self.claims,
            handlers.claim,
            stop.clone(),
        );
        if watched.pull_jobs {
            let jobs = scope(&group, "imagepulljobs");
            spawn(
                &mut watches,
                host,
                jobs,
                &self.pull_jobs,
                handlers.pull_job,
                stop.clone(),
            );
            synced(&self.pull_jobs, "imagepulljobs", patience).await?;
        }
        let barriers = Scope {
            selector: Some(format!(
                "labelSelector={}%3Dtrue",
                LAUNCH_BARRIER_LABEL.replace('/', "%2F")
            )),
            ..scope("/api/v1", "configmaps")
        };
        spawn(
            &mut watches,
            host,
            barriers,
            &self.barriers,
            handlers.barrier,
            stop.clone(),
        );
        let owners = synced(&self.sets, "clonesets", patience).await?;
        let claims = synced(&self.claims, "persistentvolumeclaims", patience).await?;
        if !is_injected(Bug::StaleListTrusted) {
            self.pods.require(owners.max(claims));
        }
        spawn(
            &mut watches,
            host,
            scope("/api/v1", "pods"),
            &self.pods,
            handlers.pod,
            stop,
        );
        synced(&self.pods, "pods", patience).await?;
        synced(&self.revisions, "controllerrevisions", patience).await?;
        synced(&self.nodes, "nodes", patience).await?;
        synced(&self.barriers, "configmaps", patience).await?;
        self.sidecars.synced(patience).await?;
        Ok(watches)
    }

    /// Newest version of a resource that the cache shows.
    pub fn observed(&self, resource: ResourceId) -> Option<Version> {
        match resource {
            ResourceId::PODS => self.pods.observed(),
            ResourceId::REVISIONS => self.revisions.observed(),
            ResourceId::CLONESETS => self.sets.observed(),
            ResourceId::CLAIMS => self.claims.observed(),
            ResourceId::SIDECARSETS => self.sidecars.sets.observed(),
            ResourceId::IMAGE_PULL_JOBS => self.pull_jobs.observed(),
            ResourceId::CONFIG_MAPS => self.barriers.observed(),
            _ => None,
        }
    }

    /// Version of an object as the cache shows it; only known of pods, which others change, too.
    pub fn version(&self, target: &Target, uid: &str) -> Option<Version> {
        if target.resource != ResourceId::PODS {
            return None;
        }
        let key = ObjectKey::new(&*target.namespace, &*target.name);
        let pod = self.pods.snapshot().get(&key)?;
        (*pod.uid == *uid).then(|| pod.resource_version.parse().ok())?
    }

    /// Is an object with this uid in the cache and not on its way out?
    pub fn present(&self, resource: ResourceId, uid: &str) -> bool {
        match resource {
            ResourceId::PODS => self
                .pods
                .snapshot()
                .by_index(&PODS_BY_UID, uid)
                .iter()
                .any(|pod| !pod.deleting),
            ResourceId::REVISIONS => !self
                .revisions
                .snapshot()
                .by_index(&REVISIONS_BY_UID, uid)
                .is_empty(),
            ResourceId::CLAIMS => self
                .claims
                .snapshot()
                .by_index(&CLAIMS_BY_UID, uid)
                .iter()
                .any(|claim| !claim.deleting),
            ResourceId::IMAGE_PULL_JOBS => self
                .pull_jobs
                .snapshot()
                .by_index(&PULL_JOBS_BY_UID, uid)
                .iter()
                .any(|job| !job.deleting),
            ResourceId::CONFIG_MAPS => !self
                .barriers
                .snapshot()
                .by_index(&BARRIERS_BY_UID, uid)
                .is_empty(),
            _ => false,
        }
    }
}

/// Follows a resource in a task of its own.
pub(super) fn spawn<T: Cached + DeserializeOwned + Send + Sync + 'static>(
    watches: &mut Watches,
    host: &Host,
    scope: Scope,
    informer: &SharedInformer<T>,
    on_delta: Box<dyn FnMut(Delta<T>) + Send>,
    stop: watch::Receiver<bool>,
) {
    let (client, informer, jitter) = (host.client.clone(), informer.clone(), host.jitter.clone());
    let refresh = Arc::new(Notify::new());
    let followed = Followed::new(scope.clone(), informer.clone(), refresh.clone());
    watches.followed.push(followed);
    watches.tasks.spawn(async move {
        follow(&client, &scope, &informer, &refresh, on_delta, || jitter(), stop).await;
    });
}

/// The watches, and what they keep up to date.
#[derive(Default)]
pub struct Watches {
    /// One for each resource, for as long as the process runs.
    pub tasks: JoinSet<()>,
    /// The caches.
    pub followed: Vec<Followed>,
}

/// Gives uniform random numbers.
pub type Jitter = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The standard library seeds each hasher state with fresh entropy, which is all that spreading retries needs.
pub(super) fn jitter() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Waits for the first list.
pub(super) async fn synced<T: Cached>(
    informer: &SharedInformer<T>,
    what: &str,
    patience: Duration,
) -> anyhow::Result<Version> {
    let poll = async {
        loop {
            if let Some(version) = informer.synced_version() {
                return version;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    match tokio::time::timeout(patience, poll).await {
        Ok(version) => Ok(version),
        Err(_) => {
            bail!("the first list of {what} did not arrive within {patience:?}; may the manager list them?")
        }
    }
}
