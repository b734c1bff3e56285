//! Patches at a limited rate.

use std::time::Duration;

use kruise_runtime::{ApiError, Client};
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

/// Attempts of a write, if server or network fail.
const TRIES: u32 = 5;

/// A client that waits between its writes.
pub(super) struct Paced<'a> {
    pub(super) client: &'a Client,
    pause: Duration,
    next: Instant,
}

impl<'a> Paced<'a> {
    /// At most `rate` writes a second.
    pub(super) fn new(client: &'a Client, rate: f64) -> Self {
        Self {
            client,
            pause: Duration::from_secs_f64(1.0 / rate),
            next: Instant::now(),
        }
    }

    /// Sends a patch of this content type, with retries.
    pub(super) async fn write(
        &mut self,
        path: &str,
        kind: &'static str,
        body: &Value,
    ) -> Result<(), ApiError> {
        let mut again = Duration::from_secs(1);
        for _ in 1..TRIES {
            match self.once(path, kind, body).await {
                Err(error) if error.is_retriable() => sleep(again).await,
                result => return result,
            }
            again *= 2;
        }
        self.once(path, kind, body).await
    }

    async fn once(&mut self, path: &str, kind: &'static str, body: &Value) -> Result<(), ApiError> {
        sleep_until(self.next).await;
        self.next = Instant::now() + self.pause;
        self.client.patch::<IgnoredAny>(path, kind, body).await.map(drop)
    }
}
