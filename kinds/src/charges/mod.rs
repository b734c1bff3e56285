//! Statuses that reviews change before requests pass: those of budgets and of WorkloadSpreads.
//!
//! - [`Newest`]: the objects as this replica knows them.
//! - [`Writer`]: one status write for all reviews that wait for the same object.
//!
//! A kind takes part with its [`Charged`].

mod budgets;
mod newest;
mod spreads;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::Arc;

use kruise_admission::{
    lookup::{Decoded, Stored},
    protocol::Write,
};
use kruise_api::{
    meta::ObjectMeta, podunavailablebudget::PodUnavailableBudget, workloadspread::WorkloadSpread,
};
use kruise_plan_kit::ResourceId;
use kruise_runtime::caches::CacheId;
use serde_json::Value;

pub use newest::Newest;
pub use writer::{NotStored, Review, Writer};

/// A kind whose status reviews change.
pub trait Charged: Stored<All = Vec<Arc<Self>>> + Clone {
    /// An object in the cache.
    type Cached: kruise_runtime::caches::Held;

    /// The resource.
    const RESOURCE: ResourceId;
    /// The cache.
    const CACHE: CacheId<Self::Cached>;
    /// Attempts to store the changes of a group of reviews.
    const ATTEMPTS: u32;

    /// An object as the cache has it.
    fn of_cached(cached: &Self::Cached) -> Decoded<Self>;

    /// Its metadata.
    fn metadata(&self) -> &ObjectMeta;

    /// What a review wants of an object of this kind.
    fn change(write: &Write) -> Change<Self>;

    /// The merge patch of its status to that of `after`; `None` if they are the same.
    fn status_patch(&self, after: &Self) -> Option<Value>;
}

/// What a review wants of an object.
pub enum Change<T> {
    /// It is to be stored with this status.
    Store(Arc<T>),
    /// It is to be read from the API server.
    Read,
    /// Nothing: the review is about another kind.
    Nothing,
}

/// The writers of all kinds.
pub struct Charges {
    /// Of budgets.
    pub budgets: Writer<PodUnavailableBudget>,
    /// Of WorkloadSpreads.
    pub spreads: Writer<WorkloadSpread>,
}
