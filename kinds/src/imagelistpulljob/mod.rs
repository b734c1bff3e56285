//! ImageListPullJob: the registration of its controller, the cache of lists, and the reconciler.

mod explain;
mod inputs;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kruise_api::definition::Kind;
use kruise_api::imagelistpulljob::{ImageListPullJob, KIND};
use kruise_frame::registration::{Controls, Grant, Registration, Setup, Wiring};
use kruise_plan_kit::{Explain, Plan, events};
use kruise_runtime::{
    Served,
    caches::CacheId,
    metrics::objects::Spec,
    worker::{KindReconciler, Round},
};
use kube_cache::{Delta, Index, ObjectKey, SharedInformer};

use super::images::{CachedPullJob, IMAGE_PULL_JOBS};
use kruise_runtime::parsed::Parsed;

pub use inputs::Inputs;

/// The controller.
pub static REGISTRATION: Registration =
    Registration::of::<ImageListPullJobs>("imagelistpulljob-controller", 3)
        .reconciles_unflagged(&KIND)
        .reviewed(&kruise_admission::kinds::imagelistpulljob::WEBHOOKS)
        .emits(&[
            kruise_plan_nodes::imagelistpulljob::reasons::ALL,
            &[&events::FAILED_CREATE],
        ])
        .gated(&["ImagePullJobGate"])
        .granted(&[
            // `patch` for the label.
            Grant::on(kruise_api::imagelistpulljob::RESOURCE, &["delete", "patch"]),
            Grant::on(kruise_api::imagepulljob::RESOURCE, &["create", "delete", "patch"]),
        ])
        .measured(&OVERDUE, &[])
        .explained(explain::explain);

const OVERDUE: Spec = Spec::overdue_writes("imagelistpulljob_expectation_leakage");

/// ImageListPullJobs. They are listed before their jobs.
const IMAGE_LIST_PULL_JOBS: CacheId<Parsed<ImageListPullJob>> =
    CacheId::of("imagelistpulljobs, whole", kruise_api::imagelistpulljob::RESOURCE)
        .before(&[IMAGE_PULL_JOBS.name]);

/// ImagePullJobs by the uid of the list that controls them.
const JOBS_BY_LIST: Index<CachedPullJob> = Index::new("list", |job| {
    let owner = job.metadata.controller().filter(|owner| owner.kind == KIND.kind);
    owner.map(|owner| owner.uid.as_str().into()).into_iter().collect()
});

/// Reconciles one ImageListPullJob from the caches.
pub struct ImageListPullJobs {
    lists: SharedInformer<Parsed<ImageListPullJob>>,
    jobs: SharedInformer<CachedPullJob>,
    served: Arc<Served>,
}

impl Controls for ImageListPullJobs {
    fn new(setup: &mut Setup<'_>) -> Self {
        Self {
            lists: setup.cache(&IMAGE_LIST_PULL_JOBS),
            jobs: setup.indexed(&IMAGE_PULL_JOBS, &[JOBS_BY_LIST]),
            served: setup.parts.served.clone(),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&IMAGE_LIST_PULL_JOBS);
        wiring.maps(&IMAGE_PULL_JOBS, |_, delta| lists_of(delta));
    }
}

/// The lists that control a job, before and after a change.
fn lists_of(delta: &Delta<CachedPullJob>) -> Vec<ObjectKey> {
    let versions = delta.old.iter().chain(&delta.new);
    let lists = versions.filter_map(|job| {
        let owner = job.metadata.controller()?;
        let is_list = owner.kind == KIND.kind && owner.group() == KIND.group;
        is_list.then(|| ObjectKey::new(job.metadata.namespace.as_str(), owner.name.as_str()))
    });
    let mut keys: Vec<ObjectKey> = lists.collect();
    keys.dedup();
    keys
}

impl KindReconciler for ImageListPullJobs {
    type Object = ImageListPullJob;

    const KIND: &'static Kind = &KIND;

    fn objects(&self) -> &SharedInformer<Parsed<ImageListPullJob>> {
        &self.lists
    }

    fn served(&self) -> &Served {
        &self.served
    }

    fn plan(&self, list: &Self::Object, round: Round<'_>) -> Option<Plan> {
        let jobs = self.jobs.snapshot().by_index(&JOBS_BY_LIST, &list.metadata.uid);
        Some(Inputs::new(list, jobs).plan(list, round.api_version, round.memory, Explain::No, round.now))
    }
}
