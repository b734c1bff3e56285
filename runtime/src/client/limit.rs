//! The client's own rate limit, client-go's `--kube-api-qps` and `--kube-api-burst`.

use std::sync::Mutex;
use std::time::Duration;

use kube_queue::Bucket;
use tokio::time::Instant;

/// A token bucket shared by all clones of a client. Tokens are reserved in the order of the requests, so no request
/// starves.
#[derive(Debug)]
pub(crate) struct RateLimit {
    start: Instant,
    bucket: Mutex<Bucket>,
}

impl RateLimit {
    pub(crate) fn new(per_second: f64, burst: u32) -> Self {
        let interval = Duration::try_from_secs_f64(1.0 / per_second).unwrap_or(Duration::ZERO);
        Self {
            start: Instant::now(),
            bucket: Mutex::new(Bucket::new(interval, burst)),
        }
    }

    /// Waits for a token.
    pub(crate) async fn acquire(&self) {
        let now = self.start.elapsed();
        let wait = match self.bucket.lock() {
            Ok(mut bucket) => bucket.reserve(now),
            Err(poisoned) => poisoned.into_inner().reserve(now),
        };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }
}
