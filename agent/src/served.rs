//! The versions that the cluster serves. They change when definitions do.

use std::sync::{Arc, Mutex, PoisonError};

use kruise_runtime::Served;

/// What the cluster serves, as far as it is known. Clones share it. Nothing is served at first.
#[derive(Clone, Default)]
pub(crate) struct Versions(Arc<Mutex<Arc<Served>>>);

impl Versions {
    pub(crate) fn get(&self) -> Arc<Served> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set(&self, served: Served) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(served);
    }
}
