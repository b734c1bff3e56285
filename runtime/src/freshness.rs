//! A new leader looks at nothing older than what the one before it wrote.
//!
//! # What it promises
//! - A replica that waits for the lease watches meanwhile, and its watches may lag. Once it leads, nobody else writes: it
//!   asks how new the server is, and works when each of its caches is as new.
//! - Quiet resources hold nobody up: their version moves on with every other resource, of which their own watches hear
//!   once a minute. What a watch does not bring within a second is listed again, also where a watch has failed and the
//!   next one is waited for; a list that fails is tried again as after a first failure.
//! - What may not be listed is not waited for, and nothing longer than a minute.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use kube_cache::{Cached, SharedInformer, Version};
use tokio::{sync::Notify, time::timeout};

use crate::Client;
use crate::follow::{Scope, newest};

/// Time for watches to bring what is new.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time for everything. A server that has not answered by then says nothing of the lease either.
const LIMIT: Duration = Duration::from_mins(1);
/// Time between two looks at the caches.
const PAUSE: Duration = Duration::from_millis(50);
/// Time between two questions to a server that does not answer.
const RETRY: Duration = Duration::from_secs(1);

/// A cache that follows a resource, and how to bring it up to date.
pub struct Followed {
    scope: Scope,
    cache: Box<dyn Reach>,
    refresh: Arc<Notify>,
}

/// How far a cache has come, whatever is in it.
trait Reach: Send + Sync {
    fn observed(&self) -> Option<Version>;
    fn require(&self, version: Version);
}

impl<T: Cached + Send + Sync> Reach for SharedInformer<T> {
    fn observed(&self) -> Option<Version> {
        Self::observed(self)
    }

    fn require(&self, version: Version) {
        Self::require(self, version);
    }
}

impl Followed {
    /// A cache of what is in this scope; `refresh` is what [`follow`](crate::follow::follow) was given for it.
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

    /// The version that the server has reached; `None` if there is nothing to wait for.
    async fn ask(&self, client: &Client) -> Option<Version> {
        loop {
            match newest(client, &self.scope).await {
                Ok(version) => return version,
                Err(error)
                    if error
                        .status()
                        .is_some_and(|status| matches!(status.code, 403 | 404)) =>
                {
                    tracing::warn!(path = self.scope.path, %error, "not waited for");
                    return None;
                }
                Err(error) => {
                    tracing::warn!(path = self.scope.path, %error, "the server does not say how new it is");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}

/// Waits until each cache is as new as the server is now.
pub async fn catch_up(client: &Client, followed: &[Followed]) {
    let all = async {
        let asked = followed
            .iter()
            .map(async |one| Some((one, one.ask(client).await?)));
        let mut behind: Vec<_> = join_all(asked).await.into_iter().flatten().collect();
        for (one, version) in &behind {
            // A list under way may have been begun before.
            one.cache.require(*version);
        }
        if timeout(PATIENCE, reached(&mut behind)).await.is_err() {
            for (one, _) in &behind {
                one.refresh.notify_one();
            }
            reached(&mut behind).await;
        }
    };
    if timeout(LIMIT, all).await.is_err() {
        tracing::warn!(
            "caches may be older than what the last leader wrote: the server did not say more in time"
        );
    }
}

/// Drops what has got there, until nothing is left.
async fn reached(behind: &mut Vec<(&Followed, Version)>) {
    loop {
        behind.retain(|(one, version)| one.cache.observed() < Some(*version));
        if behind.is_empty() {
            return;
        }
        tokio::time::sleep(PAUSE).await;
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

    /// A server of nodes, none of which there is.
    struct Server {
        /// What it says of itself.
        version: AtomicU64,
        lists: AtomicUsize,
        /// Lines for the watch.
        lines: Mutex<Option<mpsc::UnboundedReceiver<String>>>,
        /// Does it refuse every watch?
        is_blind: bool,
        /// How many lists it still refuses.
        refuses: AtomicUsize,
        /// Answer to who asks how new it is.
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
            if query.contains("watch=true") && self.is_blind {
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

    /// Follows nodes of a server at version 7, which then says `now`, until a new leader has caught up, which it says
    /// how long it took, and how many lists.
    async fn caught_up(code: u16, now: u64, lines: &[&str]) -> (Duration, usize) {
        caught_up_with(code, now, lines, None).await
    }

    /// The same with a server that may refuse every watch; then leading begins after nine minutes of that, and so many
    /// lists are refused from then on.
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
            is_blind: refused.is_some(),
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
        let scope = Scope {
            path: "/api/v1/nodes".into(),
            selector: None,
        };
        let informer = SharedInformer::<NodeView>::new([]);
        let refresh = Arc::new(Notify::new());
        let (_keep, stop) = watch::channel(false);
        let following = follow(&client, &scope, &informer, &refresh, drop, || 0, stop);
        let leading = async {
            while informer.synced_version().is_none() {
                tokio::time::sleep(PAUSE).await;
            }
            if let Some(refused) = refused {
                tokio::time::sleep(Duration::from_mins(9)).await;
                server.refuses.store(refused, Ordering::SeqCst);
            }
            server.version.store(now, Ordering::SeqCst);
            server.lists.store(1, Ordering::SeqCst);
            let followed = [Followed::new(scope.clone(), informer.clone(), refresh.clone())];
            let begun = Instant::now();
            for line in lines {
                send.send(format!("{line}\n")).unwrap();
            }
            catch_up(&client, &followed).await;
            assert!(code != 200 || informer.observed() >= Some(Version::new(now)));
            begun.elapsed()
        };
        let took = tokio::select! {
            biased;
            () = following => panic!("nobody follows"),
            took = timeout(Duration::from_mins(10), leading) => took.unwrap(),
        };
        (took, server.lists.load(Ordering::SeqCst))
    }

    #[tokio::test(start_paused = true)]
    async fn a_cache_that_is_as_new_as_the_server_is_not_waited_for() {
        assert_eq!(caught_up(200, 7, &[]).await, (Duration::ZERO, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_watch_brings_is_not_listed_again() {
        let bookmark = r#"{"type":"BOOKMARK","object":{"kind":"Node","metadata":{"resourceVersion":"9"}}}"#;
        let (took, lists) = caught_up(200, 9, &[bookmark]).await;
        assert!(took < PATIENCE, "{took:?}");
        assert_eq!(lists, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_resource_is_listed_again_and_holds_nobody_up() {
        let (took, lists) = caught_up(200, 9, &[]).await;
        assert!((PATIENCE..PATIENCE * 2).contains(&took), "{took:?}");
        assert_eq!(lists, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_watch_holds_nobody_up_until_it_is_tried_again() {
        let (took, lists) = caught_up_with(200, 9, &[], Some(0)).await;
        assert!((PATIENCE..PATIENCE * 2).contains(&took), "{took:?}");
        assert_eq!(lists, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_refused_after_watches_failed_for_minutes_is_soon_tried_again() {
        for (refused, within) in [(1, PATIENCE * 2), (3, PATIENCE * 7)] {
            let (took, lists) = caught_up_with(200, 9, &[], Some(refused)).await;
            assert!((PATIENCE..within).contains(&took), "{refused}: {took:?}");
            assert_eq!(lists, 2 + refused);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_nothing_does_not_hold_the_leader_for_ever() {
        let (took, _) = caught_up(500, 9, &[]).await;
        assert_eq!(took, LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_not_be_listed_is_not_waited_for() {
        for code in [403, 404] {
            let (took, lists) = caught_up(code, 9, &[]).await;
            assert_eq!((took, lists), (Duration::ZERO, 1), "{code}");
        }
    }
}
