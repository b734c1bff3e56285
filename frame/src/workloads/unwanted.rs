//! Pods that nobody wanted a moment ago.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// How long the pods of a controller are known to be wanted by nobody. Their requests come together, and a workload
/// that wants pods again has none that run before this has passed.
const KEPT: Duration = Duration::from_secs(1);

/// Controllers whose pods nobody wanted when their owners were last read, by uid. Cloning shares them.
#[derive(Clone, Default)]
pub(super) struct Unwanted(Arc<Mutex<BTreeMap<Box<str>, Instant>>>);

impl Unwanted {
    /// Did nobody want the pods of this controller?
    pub(super) fn holds(&self, uid: &str, now: Instant) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(uid)
            .is_some_and(|since| now.duration_since(*since) < KEPT)
    }

    /// Nobody wants the pods of this controller.
    pub(super) fn add(&self, uid: &str, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, since| now.duration_since(*since) < KEPT);
        known.insert(uid.into(), now);
    }
}
