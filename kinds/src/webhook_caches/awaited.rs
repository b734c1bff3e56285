//! Objects that were reviewed and that the cache does not show yet.
//!
//! A pod that is created right after a SidecarSet or a PodProbeMarker may be reviewed before the watch has
//! delivered the object. Until it has, reviews read all objects of the kind from the API server, of a namespaced
//! one those of the namespace.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_admission::widening::StoredSoon;
use kruise_api::meta::ObjectMeta;
use kube_cache::ObjectKey;
use tokio::time::Instant;

/// How long an object is awaited. One that is not stored by then was refused by somebody else.
const PATIENCE: Duration = Duration::from_secs(30);

/// The awaited objects of one kind, and until when. Cloning shares them.
#[derive(Clone, Default)]
pub(super) struct Awaited {
    by_key: Arc<Mutex<BTreeMap<ObjectKey, (StoredSoon, Instant)>>>,
}

/// What a cache has of an object.
pub(super) struct CachedObject {
    uid: String,
    generation: i64,
}

impl CachedObject {
    /// With this metadata.
    pub(super) fn of(metadata: &ObjectMeta) -> Self {
        Self {
            uid: metadata.uid.clone(),
            generation: metadata.generation,
        }
    }

    /// Is it the reviewed object, or a later state of it?
    pub(super) fn has(&self, reviewed: &StoredSoon) -> bool {
        let is_it = reviewed.uid.is_empty() || reviewed.uid == self.uid;
        is_it && self.generation >= reviewed.generation
    }
}

impl Awaited {
    /// This one is about to be stored.
    pub(super) fn add(&self, object: &StoredSoon) {
        self.add_for(object, PATIENCE);
    }

    /// This one is about to be stored, and its review was so long ago.
    pub(super) fn add_after(&self, object: &StoredSoon, age: Duration) {
        let left = PATIENCE.saturating_sub(age);
        if !left.is_zero() {
            self.add_for(object, left);
        }
    }

    fn add_for(&self, object: &StoredSoon, patience: Duration) {
        let until = Instant::now() + patience;
        let key = ObjectKey::new(object.namespace.as_str(), object.name.as_str());
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        by_key.insert(key, (object.clone(), until));
    }

    /// Does the cache lack one of this namespace?
    pub(super) fn are_missing(
        &self,
        namespace: &str,
        cached: impl Fn(&ObjectKey) -> Option<CachedObject>,
    ) -> bool {
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        if by_key.is_empty() {
            return false;
        }
        let now = Instant::now();
        by_key.retain(|key, (reviewed, until)| {
            now < *until && !cached(key).is_some_and(|stored| stored.has(reviewed))
        });
        by_key.keys().any(|key| &*key.namespace == namespace)
    }
}
