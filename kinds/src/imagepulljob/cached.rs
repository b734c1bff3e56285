//! The cache of ImagePullJobs as the workloads read them whose images they pull.

use kruise_api::imagepulljob::RESOURCE;
use kruise_runtime::caches::CacheId;
use kruise_views::ImageJobView;
use kube_cache::Index;

/// Jobs that pull images, by the uid of their controlling owner.
pub const PULL_JOBS_BY_OWNER: Index<ImageJobView> = Index::new("owner", |job| {
    job.controller.iter().map(|owner| owner.uid.clone()).collect()
});
/// Jobs that pull images.
pub const PULL_JOBS: CacheId<ImageJobView> =
    CacheId::of("imagepulljobs", RESOURCE).indexed(&[PULL_JOBS_BY_OWNER]);
