//! SidecarSets that were reviewed and that the cache does not show yet.
//!
//! A pod that is created right after a SidecarSet may be reviewed before the watch has delivered the SidecarSet. Until it
//! has, reviews read all SidecarSets from the API server.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_admission::widening::StoredSoon;
use kube_cache::{ObjectKey, SharedInformer};
use tokio::time::Instant;

use crate::controllers::sidecarset::CachedSidecarSet;

/// How long a SidecarSet is awaited. One that is not stored by then was refused by somebody else.
const PATIENCE: Duration = Duration::from_secs(30);

/// The awaited SidecarSets by name, and until when. Cloning shares them.
#[derive(Clone, Default)]
pub(super) struct Awaited {
    by_name: Arc<Mutex<BTreeMap<String, (StoredSoon, Instant)>>>,
}

impl Awaited {
    /// This one is about to be stored.
    pub(super) fn add(&self, set: &StoredSoon) {
        self.add_for(set, PATIENCE);
    }

    /// This one is about to be stored, and its review was so long ago.
    pub(super) fn add_after(&self, set: &StoredSoon, age: Duration) {
        let left = PATIENCE.saturating_sub(age);
        if !left.is_zero() {
            self.add_for(set, left);
        }
    }

    fn add_for(&self, set: &StoredSoon, patience: Duration) {
        let until = Instant::now() + patience;
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.insert(set.name.clone(), (set.clone(), until));
    }

    /// Does the cache lack one of them?
    pub(super) fn are_missing(&self, cache: &SharedInformer<CachedSidecarSet>) -> bool {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if by_name.is_empty() {
            return false;
        }
        let (now, snapshot) = (Instant::now(), cache.snapshot());
        by_name.retain(|name, (set, until)| {
            let cached = snapshot.get(&ObjectKey::new("", name.as_str()));
            let is_cached = cached.is_some_and(|cached| {
                let is_it = set.uid.is_empty() || set.uid == cached.metadata.uid;
                is_it && cached.metadata.generation >= set.generation
            });
            now < *until && !is_cached
        });
        !by_name.is_empty()
    }
}
