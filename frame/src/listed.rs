//! A list of kinds that administrators give in the configuration, read again and again.

use std::{
    fmt::Display,
    future::Future,
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use tokio::{sync::watch, time::sleep};

/// Time between two reads.
const REREAD: Duration = Duration::from_mins(1);

/// The list as last read. Cloning shares it.
pub struct Listed<T>(Arc<Inner<T>>);

struct Inner<T> {
    kinds: RwLock<Arc<Vec<T>>>,
    /// Called when there are others.
    on_change: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl<T> Clone for Listed<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self(Arc::new(Inner {
            kinds: RwLock::default(),
            on_change: OnceLock::new(),
        }))
    }
}

impl<T: PartialEq> Listed<T> {
    /// The kinds that were last read.
    pub fn kinds(&self) -> Arc<Vec<T>> {
        self.0
            .kinds
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Calls `handler` when the list has changed. It is set once.
    pub fn on_change(&self, handler: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.on_change.set(Box::new(handler));
    }

    fn update(&self, kinds: Arc<Vec<T>>) {
        if self.kinds() == kinds {
            return;
        }
        *self.0.kinds.write().unwrap_or_else(PoisonError::into_inner) = kinds;
        if let Some(on_change) = self.0.on_change.get() {
            on_change();
        }
    }

    /// Reads the list again and again until `stop` turns true. One that cannot be read stays as it was.
    pub async fn follow<F, E>(self, read: impl Fn() -> F, mut stop: watch::Receiver<bool>)
    where
        F: Future<Output = Result<Arc<Vec<T>>, E>>,
        E: Display,
    {
        loop {
            let reading = async {
                match read().await {
                    Ok(kinds) => self.update(kinds),
                    Err(error) => tracing::warn!(%error, "the list of kinds of workloads cannot be read"),
                }
                sleep(REREAD).await;
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = reading => {}
            }
        }
    }
}
