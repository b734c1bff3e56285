//! When a replica serves a certificate of a new CA.
//!
//! An API server reads configurations and definitions by watches, so that it trusts a new CA a moment after that is
//! written. A connection that it opens before would fail, and with it the request of a user. The old certificate is
//! trusted meanwhile: the bundle of a new CA ends with the CA that it replaces.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use crate::tls::{Pair, certificates};

/// Time within which every API server has read what was written.
pub(super) const PROPAGATION: Duration = Duration::from_secs(10);

/// The certificate that is published and not served yet, and when it is to be served.
#[derive(Default)]
pub(super) struct Rotation(Mutex<Option<(Pair, Instant)>>);

impl Rotation {
    /// `stored` is published now; `served` is what this replica serves. True if it has to go on with that for now.
    pub(super) fn waits(&self, served: Option<&Pair>, stored: &Pair) -> bool {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let until = match next.take() {
            Some((pair, until)) if pair == *stored => until,
            _ => now + PROPAGATION,
        };
        let waits = served.is_some_and(|served| replaces_ca(served, stored)) && now < until;
        if waits {
            *next = Some((stored.clone(), until));
        }
        waits
    }

    /// Is this certificate published, and not served yet?
    pub(super) fn is_next(&self, pair: &Pair) -> bool {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        next.as_ref().is_some_and(|(next, _)| next == pair)
    }

    /// Resolves when the published certificate is to be served; never if there is none.
    pub(super) async fn due(&self) {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match next {
            Some((_, until)) => sleep_until(until).await,
            None => std::future::pending().await,
        }
    }
}

/// True if another CA signed `stored`, and clients that trust its bundle accept `served`, too.
fn replaces_ca(served: &Pair, stored: &Pair) -> bool {
    let read = |pair: &Pair| certificates("CA certificate", &pair.ca_pem).unwrap_or_default();
    let (old, bundle) = (read(served), read(stored));
    let Some(old) = old.first() else {
        return false;
    };
    bundle.iter().skip(1).any(|ca| ca == old)
}
