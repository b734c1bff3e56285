//! The caches of ResourceDistributions. Of Secrets and ConfigMaps, the metadata is cached and nothing else.

use std::sync::Arc;

use kruise_api::resourcedistribution::ResourceDistribution;
use kruise_frame::caches::NAMESPACES;
use kruise_plan_distribution::resourcedistribution::Source;
use kruise_plan_kit::ResourceId;
use kruise_runtime::caches::{CacheId, Reach};
use kruise_runtime::parsed::Parsed;
use kruise_views::MetadataView;
use kube_cache::Index;

/// A ResourceDistribution in a cache.
pub type CachedDistribution = Parsed<Arc<ResourceDistribution>>;

/// ResourceDistributions by what they copy: [`copy_key`].
pub const DISTRIBUTIONS_BY_COPY: Index<CachedDistribution> = Index::new("copy", |cached| {
    let distribution = cached.object.as_ref().ok();
    let source = distribution.and_then(|distribution| Source::of(&distribution.spec.resource).ok());
    let key = source.map(|source| copy_key(source.resource, source.name));
    key.into_iter().map(Into::into).collect()
});

/// Key of the objects of a resource that have this name, in any namespace.
pub fn copy_key(resource: ResourceId, name: &str) -> String {
    format!("{resource}/{name}")
}

/// ResourceDistributions. They are listed before namespaces and copies, so that what is missing there is gone.
pub const RESOURCE_DISTRIBUTIONS: CacheId<CachedDistribution> = CacheId::of(
    "resourcedistributions",
    kruise_api::resourcedistribution::RESOURCE,
)
.reach(Reach::Cluster)
.indexed(&[DISTRIBUTIONS_BY_COPY])
.before(&[NAMESPACES.name, SECRETS.name, CONFIG_MAPS.name]);

/// Metadata of all Secrets.
pub const SECRETS: CacheId<MetadataView> =
    CacheId::of("secrets, metadata", ResourceId::SECRETS).of_metadata();
/// Metadata of all ConfigMaps.
pub const CONFIG_MAPS: CacheId<MetadataView> =
    CacheId::of("configmaps, metadata", ResourceId::CONFIG_MAPS).of_metadata();
