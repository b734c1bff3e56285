//! ImagePullJob: the registration of its controller, and the reconciler.
//!
//! The input of a plan is [`Inputs`].

pub mod cached;
mod explain;
mod inputs;
mod keys;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use go_compat::flags::Kind as Type;
use kruise_api::definition::Kind;
use kruise_api::imagepulljob::KIND;
use kruise_frame::{
    caches::PODS,
    flags::{Limit, flag},
    registration::{Controls, Grant, Registration, Setup, Wiring},
};
use kruise_plan_kit::{Explain, Plan, ResourceId, events};
use kruise_runtime::{
    Served,
    metrics::objects::Spec,
    worker::{KindReconciler, Round},
};
use kruise_views::{PodView, SecretView};
use kube_cache::{Delta, ObjectKey, SharedInformer};

use super::images::{CachedNodeImage, CachedPullJob, IMAGE_PULL_JOBS, JOBS_BY_WAIT, NODE_IMAGES, SECRETS};
use kruise_api::imagepulljob::ImagePullJob;

pub use inputs::{Inputs, Orders};

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<ImagePullJobs>("imagepulljob-controller", 3)
    .reconciles(
        &KIND,
        "imagepulljob-workers",
        "ImagePullJobs handled side by side",
    )
    .reviewed(&kruise_admission::kinds::imagepulljob::WEBHOOKS)
    .emits(&[
        kruise_plan_nodes::imagepulljob::reasons::ALL,
        &[&events::PULL_IMAGE_FAILED],
    ])
    .gated(&["ImagePullJobGate"])
    .flagged(&[flag(
        KEPT_SECONDS,
        Type::Int,
        "300",
        "seconds that a node keeps a tag of an ImagePullJob beyond the time that the job may take",
    )])
    .limited(&[Limit {
        flag: KEPT_SECONDS,
        least: 0,
        most: 2_678_400,
    }])
    .watching(&[
        ResourceId::PODS,
        kruise_api::cloneset::RESOURCE,
        kruise_api::statefulset::RESOURCE,
    ])
    .granted(&[
        // `patch` for the finalizer.
        Grant::on(kruise_api::imagepulljob::RESOURCE, &["delete", "patch"]),
        Grant::on(kruise_api::nodeimage::RESOURCE, &["patch"]),
        Grant::on(ResourceId::SECRETS, &[]),
        Grant::on(ResourceId::SECRETS, &["create", "delete", "patch"]).in_agent_namespace(),
    ])
    .measured(&OVERDUE, &[])
    .explained(explain::explain);

/// Flag: how long nodes keep tags.
const KEPT_SECONDS: &str = "default-ttlseconds-for-always-nodeimage";

const OVERDUE: Spec = Spec::overdue_writes("imagepulljob_expectation_leakage");

/// Reconciles one ImagePullJob from the caches.
pub struct ImagePullJobs {
    jobs: SharedInformer<CachedPullJob>,
    nodes: SharedInformer<CachedNodeImage>,
    pods: SharedInformer<PodView>,
    secrets: SharedInformer<SecretView>,
    orders: Orders,
    served: Arc<Served>,
    agent_namespace: String,
    /// Whether the manager watches the namespace of the copies.
    sees_copies: bool,
    kept_seconds: i64,
    /// Jobs whose specification was changed after their end.
    changed_after_end: Mutex<BTreeSet<ObjectKey>>,
}

impl Controls for ImagePullJobs {
    fn new(setup: &mut Setup<'_>) -> Self {
        let config = setup.parts.config;
        Self {
            jobs: setup.cache(&IMAGE_PULL_JOBS),
            nodes: setup.cache(&NODE_IMAGES),
            pods: setup.cache(&PODS),
            secrets: setup.cache(&SECRETS),
            orders: Orders::new(setup),
            served: setup.parts.served.clone(),
            agent_namespace: config.agent_namespace.clone(),
            sees_copies: config
                .namespace
                .as_ref()
                .is_none_or(|watched| *watched == config.agent_namespace),
            kept_seconds: config.int_flag(KEPT_SECONDS),
            changed_after_end: Mutex::default(),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.maps(&IMAGE_PULL_JOBS, Self::of_job);
        wiring.maps(&NODE_IMAGES, |this, delta| {
            keys::of_node(delta, &|key| this.waiting(key))
        });
        wiring.maps(&PODS, |this, delta| keys::of_pod(delta, &|key| this.waiting(key)));
        wiring.maps(&SECRETS, |this, delta| {
            keys::of_secret(delta, &this.agent_namespace, &|key| this.waiting(key))
        });
    }
}

impl ImagePullJobs {
    /// The jobs that wait for this.
    fn waiting(&self, key: &str) -> Vec<Arc<CachedPullJob>> {
        self.jobs.snapshot().by_index(&JOBS_BY_WAIT, key)
    }

    /// The job, of which it is remembered whether it was changed after its end.
    fn of_job(&self, delta: &Delta<CachedPullJob>) -> Option<ObjectKey> {
        let key = ObjectKey::of(&**delta.latest()?);
        let mut changed = self
            .changed_after_end
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if delta.new.is_none() {
            changed.remove(&key);
        } else if keys::is_changed_after_end(delta) {
            changed.insert(key.clone());
        }
        Some(key)
    }

    fn is_changed_after_end(&self, key: &ObjectKey) -> bool {
        let changed = self
            .changed_after_end
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        changed.contains(key)
    }
}

impl KindReconciler for ImagePullJobs {
    type Object = Arc<ImagePullJob>;

    const KIND: &'static Kind = &KIND;

    fn objects(&self) -> &SharedInformer<CachedPullJob> {
        &self.jobs
    }

    fn served(&self) -> &Served {
        &self.served
    }

    fn plan(&self, job: &Self::Object, round: Round<'_>) -> Option<Plan> {
        // Without NodeImages there are no nodes, and jobs would wait for them until their end.
        self.served.version(kruise_api::nodeimage::RESOURCE)?;
        let options = (round.api_version, self.options());
        let inputs = self.read_inputs(job, round.now);
        let changed = self.is_changed_after_end(round.key);
        Some(inputs.plan(job, options, changed, round.memory, Explain::No, round.now))
    }
}
