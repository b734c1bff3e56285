//! A new leader first waits until its caches contain the writes of the previous leader.
//!
//! # Guarantees
//! - A standby replica keeps its watches open, and they may lag. Once it leads, no other replica writes: it reads the
//!   current version of each resource, and reconciles when each of its caches has reached that version.
//! - A resource without changes does not delay the leader. Its version on the server rises with writes of any resource,
//!   but its own watch receives that in a bookmark only once a minute. So a cache that is behind after a second is
//!   listed again, also during the backoff of a failed watch. A failed list is retried with the shortest delay.
//! - A resource that may not be listed is not waited for. The whole wait is at most a minute.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use kube_cache::{Cached, SharedInformer, Version};
use tokio::{sync::Notify, time::timeout};

use crate::Client;
use crate::follow::{Scope, current_version};

/// Time for watches to catch up before a list is requested.
const WATCH_GRACE: Duration = Duration::from_secs(1);
/// Longest wait for all caches. A server that does not respond for that long does not renew the lease either.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Time between two checks of the caches.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time between two attempts to read the current version.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A cache of a watched resource, and how to request a list of it.
pub struct Followed {
    scope: Scope,
    cache: Box<dyn AnyCache>,
    refresh: Arc<Notify>,
}

/// A cache without the type of its objects.
trait AnyCache: Send + Sync {
    fn observed(&self) -> Option<Version>;
    fn require(&self, version: Version);
}

impl<T: Cached + Send + Sync> AnyCache for SharedInformer<T> {
    fn observed(&self) -> Option<Version> {
        Self::observed(self)
    }

    fn require(&self, version: Version) {
        Self::require(self, version);
    }
}

impl Followed {
    /// The cache of this scope; `refresh` is the one passed to [`follow`](crate::follow::follow).
    pub fn new<T: Cached + Send + Sync + 'static>(
        scope: Scope,
        cache: SharedInformer<T>,
        refresh: Arc<Notify>,
    ) -> Self {
        Self {
            scope,
            cache: Box::new(cache),
            refresh,
        }
    }
}

/// The current version on the server; `None` if there is nothing to wait for. Retries until the server responds.
pub(crate) async fn version_now(client: &Client, scope: &Scope) -> Option<Version> {
    loop {
        match current_version(client, scope).await {
            Ok(version) => return version,
            Err(error)
                if error
                    .status()
                    .is_some_and(|status| matches!(status.code, 403 | 404)) =>
            {
                tracing::warn!(path = scope.path, %error, "not waited for");
                return None;
            }
            Err(error) => {
                tracing::warn!(path = scope.path, %error, "the current version cannot be read; retrying");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }
}

/// Waits until each cache has reached the version that the server has now.
pub async fn catch_up(client: &Client, followed: &[Followed]) {
    let all = async {
        let versions = followed
            .iter()
            .map(async |one| Some((one, version_now(client, &one.scope).await?)));
        let mut behind: Vec<_> = join_all(versions).await.into_iter().flatten().collect();
        bring_up(&mut behind).await;
    };
    if timeout(TIMEOUT, all).await.is_err() {
        tracing::warn!("caches may lack writes of the previous leader: they did not catch up in time");
    }
}

/// Waits until each cache has reached its version. One that its watch does not bring there within a second is
/// listed again.
pub(crate) async fn bring_up(behind: &mut Vec<(&Followed, Version)>) {
    for (one, version) in &*behind {
        // A list that is already running may be older.
        one.cache.require(*version);
    }
    if timeout(WATCH_GRACE, reached(behind)).await.is_err() {
        for (one, _) in &*behind {
            one.refresh.notify_one();
        }
        reached(behind).await;
    }
}

/// Waits until all caches have reached their versions. Removes each from `behind` as it does.
async fn reached(behind: &mut Vec<(&Followed, Version)>) {
    loop {
        behind.retain(|(one, version)| one.cache.observed() < Some(*version));
        if behind.is_empty() {
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Mutex,
            atomic::{AtomicU64, AtomicUsize, Ordering},
        },
    };

    use bytes::Bytes;
    use futures::stream;
    use http::{Request, Response};
    use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
    use kruise_views::NodeView;
    use kube_client::client::Body;
    use tokio::{
        sync::{mpsc, watch},
        time::{Instant, timeout},
    };

    use super::*;
    use crate::client::Settings;
    use crate::follow::follow;

    /// A server with an empty list of nodes.
    struct Server {
        /// Its current resource version.
        version: AtomicU64,
        lists: AtomicUsize,
        /// Lines for the watch.
        lines: Mutex<Option<mpsc::UnboundedReceiver<String>>>,
        /// Whether it refuses every watch.
        refuses_watches: bool,
        /// The number of lists to refuse.
        refuses: AtomicUsize,
        /// Status code of the response to a read of the current version.
        code: u16,
    }

    impl Server {
        fn answer(&self, query: &str) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
            let version = self.version.load(Ordering::SeqCst);
            let page = format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"items":[]}}"#);
            let full = |text: String| Full::new(Bytes::from(text)).boxed_unsync();
            let refusal = || {
                let status = full(r#"{"kind":"Status"}"#.into());
                Response::builder().status(503).body(status).unwrap()
            };
            if query.contains("watch=true") && self.refuses_watches {
                return refusal();
            }
            if query.contains("watch=true") {
                let lines = self.lines.lock().unwrap().take();
                let frames = stream::unfold(lines, |lines| async {
                    let Some(mut lines) = lines else {
                        return std::future::pending().await;
                    };
                    let line: String = lines.recv().await?;
                    Some((Full::new(Bytes::from(line)).frame().await?, Some(lines)))
                });
                return Response::new(StreamBody::new(frames).boxed_unsync());
            }
            if query.contains("limit=1&") || query.ends_with("limit=1") {
                let body = full(if self.code == 200 {
                    page
                } else {
                    r#"{"kind":"Status"}"#.into()
                });
                return Response::builder().status(self.code).body(body).unwrap();
            }
            self.lists.fetch_add(1, Ordering::SeqCst);
            let fewer = |left: usize| left.checked_sub(1);
            if (self.refuses)
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer)
                .is_ok()
            {
                return refusal();
            }
            Response::new(full(page))
        }
    }

    /// Watches the nodes of a server at version 7. The version then becomes `now`, and a new leader catches up.
    /// Returns the duration of that and the number of lists.
    async fn caught_up(code: u16, now: u64, lines: &[&str]) -> (Duration, usize) {
        caught_up_with(code, now, lines, None).await
    }

    /// The same with a server that refuses every watch if `refused` is set. Leading then starts after nine minutes, and
    /// that many lists are refused from then on.
    async fn caught_up_with(
        code: u16,
        now: u64,
        lines: &[&str],
        refused: Option<usize>,
    ) -> (Duration, usize) {
        let (send, receive) = mpsc::unbounded_channel();
        let server = Arc::new(Server {
            version: AtomicU64::new(7),
            lists: AtomicUsize::new(0),
            lines: Mutex::new(Some(receive)),
            refuses_watches: refused.is_some(),
            refuses: AtomicUsize::new(0),
            code,
        });
        let shared = server.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = shared.answer(request.uri().query().unwrap_or_default());
            async { Ok::<_, std::io::Error>(answer) }
        });
        let settings = Settings::of_a_test(Duration::from_secs(30));
        let client = Client::new(kube_client::Client::new(service, "default"), settings);
        let scope = Scope::new("/api/v1/nodes", None);
        let informer = SharedInformer::<NodeView>::new([]);
        let refresh = Arc::new(Notify::new());
        let (_keep, stop) = watch::channel(false);
        let following = follow(&client, &scope, &informer, &refresh, drop, || 0, stop);
        let leading = async {
            while informer.synced_version().is_none() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            if let Some(refused) = refused {
                tokio::time::sleep(Duration::from_mins(9)).await;
                server.refuses.store(refused, Ordering::SeqCst);
            }
            server.version.store(now, Ordering::SeqCst);
            server.lists.store(1, Ordering::SeqCst);
            let followed = [Followed::new(scope.clone(), informer.clone(), refresh.clone())];
            let started = Instant::now();
            for line in lines {
                send.send(format!("{line}\n")).unwrap();
            }
            catch_up(&client, &followed).await;
            assert!(code != 200 || informer.observed() >= Some(Version::new(now)));
            started.elapsed()
        };
        let took = tokio::select! {
            biased;
            () = following => panic!("the watch ended"),
            took = timeout(Duration::from_mins(10), leading) => took.unwrap(),
        };
        (took, server.lists.load(Ordering::SeqCst))
    }

    #[tokio::test(start_paused = true)]
    async fn a_current_cache_is_not_waited_for() {
        assert_eq!(caught_up(200, 7, &[]).await, (Duration::ZERO, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cache_that_catches_up_by_its_watch_is_not_listed_again() {
        let bookmark = r#"{"type":"BOOKMARK","object":{"kind":"Node","metadata":{"resourceVersion":"9"}}}"#;
        let (took, lists) = caught_up(200, 9, &[bookmark]).await;
        assert!(took < WATCH_GRACE, "{took:?}");
        assert_eq!(lists, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_resource_without_changes_is_listed_again_and_does_not_delay_the_leader() {
        let (took, lists) = caught_up(200, 9, &[]).await;
        assert!((WATCH_GRACE..WATCH_GRACE * 2).contains(&took), "{took:?}");
        assert_eq!(lists, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_backoff_of_a_failed_watch_does_not_delay_the_leader() {
        let (took, lists) = caught_up_with(200, 9, &[], Some(0)).await;
        assert!((WATCH_GRACE..WATCH_GRACE * 2).contains(&took), "{took:?}");
        assert_eq!(lists, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_refused_after_minutes_of_failed_watches_is_retried_with_the_shortest_delay() {
        for (refused, within) in [(1, WATCH_GRACE * 2), (3, WATCH_GRACE * 7)] {
            let (took, lists) = caught_up_with(200, 9, &[], Some(refused)).await;
            assert!((WATCH_GRACE..within).contains(&took), "{refused}: {took:?}");
            assert_eq!(lists, 2 + refused);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_for_a_failing_server_is_limited() {
        let (took, _) = caught_up(500, 9, &[]).await;
        assert_eq!(took, TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_resource_that_may_not_be_listed_is_not_waited_for() {
        for code in [403, 404] {
            let (took, lists) = caught_up(code, 9, &[]).await;
            assert_eq!((took, lists), (Duration::ZERO, 1), "{code}");
        }
    }
}
