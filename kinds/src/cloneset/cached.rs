//! The cache of CloneSets, and how they are found as workloads of pods.

use kruise_api::{
    cloneset::{CloneSet, KIND, RESOURCE},
    names::APPS_GROUP,
};
use kruise_frame::{caches::PODS, workloads::CachedWorkload};
use kruise_runtime::caches::CacheId;
use kruise_runtime::parsed::Parsed;
use kruise_views::WorkloadView;

/// CloneSets in the served version.
pub const CLONESETS: CacheId<Parsed<CloneSet>> = CacheId::of("clonesets", RESOURCE).before(&[PODS.name]);

/// CloneSets as workloads of pods.
pub struct CloneSetWorkload;

impl CachedWorkload for CloneSetWorkload {
    type Object = Parsed<CloneSet>;

    const CACHE: CacheId<Self::Object> = CLONESETS;
    const GROUP_KIND: (&'static str, &'static str) = (APPS_GROUP, KIND.kind);

    /// One that cannot be parsed does not say how many pods it wants.
    fn view(found: &Self::Object) -> WorkloadView {
        let spec = found.object.as_ref().ok().map(|set| &set.spec);
        let scale = spec.map(|spec| (spec.replicas.unwrap_or(1), spec.selector.clone()));
        let (replicas, selector) = scale.unzip();
        WorkloadView::new(&found.metadata, replicas, selector)
    }
}
