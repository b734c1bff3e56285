//! The cache of ContainerRecreateRequests.

use kruise_api::containerrecreaterequest::{ContainerRecreateRequest, RESOURCE};
use kruise_frame::caches::PODS;
use kruise_runtime::caches::CacheId;
use kruise_runtime::parsed::Parsed;

/// A ContainerRecreateRequest in a cache.
pub type CachedRequest = Parsed<ContainerRecreateRequest>;
/// ContainerRecreateRequests. They are listed before the pods that they name.
pub const REQUESTS: CacheId<CachedRequest> =
    CacheId::of("containerrecreaterequests", RESOURCE).before(&[PODS.name]);
