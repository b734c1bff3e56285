//! Keeps an informer up to date: performs the effects of a reflector.
//!
//! Guarantees: the handler receives deltas in the order of the informer. One list page is decoded at a time, straight into
//! `T`. A page that is too large is requested again with fewer objects. The future ends as soon as `stop` is true or its
//! sender is dropped, also during a request.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use bytes::BytesMut;
use kruise_api::path::segment;
use kruise_plan_kit::injected::is_injected;
use kube_cache::{
    Cached, Delta, Effect, Event, Failure, Input, Reflector, SharedInformer, StreamedLine, StreamedList,
    Version, wire,
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::{sync::Notify, time::Instant};

use crate::client::{Form, WatchLines};
use crate::page_size::PageSize;
use crate::{ApiError, Client};

/// Longest time without data from a server that streams a list.
const STREAM_SILENCE: Duration = Duration::from_secs(10);
/// Time limit of a streamed list.
const STREAM_TIMEOUT: Duration = Duration::from_mins(5);

/// A collection to list and watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Path of the collection, such as `/api/v1/pods`.
    pub path: String,
    /// `labelSelector` or `fieldSelector`, already encoded, such as `labelSelector=a%3Db`.
    pub selector: Option<String>,
    /// How much of each object is read.
    pub form: Form,
    /// How the first list is requested.
    pub first: FirstList,
}

/// How the first list is requested. If the server does not answer it like this, the next attempt is a list of the current
/// state in pages, as every later list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstList {
    /// The current state in pages.
    Paged,
    /// The current state as the initial events of a watch: one request, decoded object by object while the server sends.
    /// Servers can do this by default from Kubernetes 1.34 on; others refuse the request.
    Streamed,
    /// The state at exactly this version, in pages.
    At(Version),
}

/// Lists and watches a resource until `stop`. A notification of `refresh` requests a list at once, for newer state than
/// the watch has delivered. `jitter` returns uniform random numbers.
pub async fn follow<T: Cached + DeserializeOwned>(
    client: &Client,
    scope: &Scope,
    informer: &SharedInformer<T>,
    refresh: &Notify,
    mut on_delta: impl FnMut(Delta<T>),
    mut jitter: impl FnMut() -> u64,
    mut stop: tokio::sync::watch::Receiver<bool>,
) {
    let mut follower = Follower::new(client, scope);
    // A path that is not served now may be later.
    let endless = follower.run(informer, refresh, &mut on_delta, &mut jitter, |_| false);
    tokio::select! {
        biased;
        () = endless => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

/// Why following has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// `stop` is true, or its sender was dropped.
    Stopped,
    /// The server does not serve the collection: 404.
    NotServed,
}

/// As [`follow`], and ends also when the server does not serve the collection. The informer keeps what it has: the next list
/// into it, at another path if need be, is compared with that.
pub async fn follow_while_served<T: Cached + DeserializeOwned>(
    client: &Client,
    scope: &Scope,
    informer: &SharedInformer<T>,
    mut on_delta: impl FnMut(Delta<T>),
    mut jitter: impl FnMut() -> u64,
    mut stop: tokio::sync::watch::Receiver<bool>,
) -> End {
    let mut follower = Follower::new(client, scope);
    let refresh = Notify::new();
    let is_unserved = |failure| failure == Failure::NotFound;
    tokio::select! {
        biased;
        () = follower.run(informer, &refresh, &mut on_delta, &mut jitter, is_unserved) => End::NotServed,
        _ = stop.wait_for(|stop| *stop) => End::Stopped,
    }
}

/// The current version of a resource on the server; `None` if its versions cannot be compared.
///
/// A cache that has reached it contains every earlier write.
pub async fn current_version(client: &Client, scope: &Scope) -> Result<Option<Version>, ApiError> {
    #[derive(Deserialize)]
    struct List {
        metadata: ListMeta,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ListMeta {
        resource_version: String,
    }
    let selector = scope.selector.as_ref().map(|selector| format!("{selector}&"));
    let query = format!("{}?{}limit=1", scope.path, selector.unwrap_or_default());
    let list: List = match scope.form {
        Form::Whole => client.get(&query).await?,
        Form::Metadata => client.get_metadata(&query).await?,
    };
    Ok(list.metadata.resource_version.parse().ok())
}

/// The requests of one reflector: its open watch and when it was opened.
struct Follower<'a> {
    client: &'a Client,
    scope: &'a Scope,
    watch: Option<(WatchLines, Instant)>,
    /// Whether the next list is streamed.
    streams: bool,
    page_size: PageSize,
}

/// Performs effects in order. Returns the result of the last one as the next input, if it has one.
async fn perform_all<T: Cached + DeserializeOwned>(
    effects: Vec<Effect<T>>,
    follower: &mut Follower<'_>,
    informer: &SharedInformer<T>,
    refresh: &Notify,
    on_delta: &mut impl FnMut(Delta<T>),
) -> Option<Input<T>> {
    let mut effects = VecDeque::from(effects);
    let mut input = None;
    while let Some(effect) = effects.pop_front() {
        match effect {
            Effect::Inform(event) => {
                let is_list = matches!(event, Event::ListDone { .. });
                match informer.apply(event) {
                    Ok(deltas) => {
                        deltas.into_iter().for_each(&mut *on_delta);
                        if is_list {
                            input = Some(Input::ListAccepted);
                        }
                    }
                    Err(refusal) => {
                        tracing::warn!(path = follower.scope.path, %refusal, "informer refused an event");
                        input = Some(Input::Refused);
                    }
                }
            }
            Effect::ForgetHistory => {
                tracing::warn!(
                    path = follower.scope.path,
                    "the server's resource versions were rewound"
                );
                informer.forget_history();
            }
            Effect::List {
                at,
                continue_token,
                limit,
            } => {
                follower.watch = None;
                input = follower.stream().await;
                if input.is_none() {
                    input = Some(follower.list(at, continue_token.as_deref(), limit).await);
                }
            }
            Effect::Watch {
                version,
                bookmarks,
                timeout_seconds,
            } => {
                input = follower
                    .open(version, bookmarks, timeout_seconds)
                    .await
                    .map(Input::Failed);
            }
            Effect::Sleep(delay) => {
                follower.watch = None;
                input = Some(tokio::select! {
                    biased;
                    () = refresh.notified() => Input::Stale,
                    () = tokio::time::sleep(delay) => Input::Timer,
                });
            }
        }
    }
    input
}

impl<'a> Follower<'a> {
    fn new(client: &'a Client, scope: &'a Scope) -> Self {
        Self {
            client,
            scope,
            watch: None,
            streams: scope.first == FirstList::Streamed && !is_injected("StaleListTrusted"),
            page_size: PageSize::default(),
        }
    }

    /// Follows until a failure that says that it is over.
    async fn run<T: Cached + DeserializeOwned>(
        &mut self,
        informer: &SharedInformer<T>,
        refresh: &Notify,
        on_delta: &mut impl FnMut(Delta<T>),
        jitter: &mut impl FnMut() -> u64,
        is_over: impl Fn(Failure) -> bool,
    ) {
        let mut reflector = Reflector::first_list_at(match self.scope.first {
            FirstList::At(version) => Some(version),
            FirstList::Paged | FirstList::Streamed => None,
        });
        let mut input = Input::Start;
        loop {
            if let Input::Failed(failure) = &input
                && is_over(*failure)
            {
                return;
            }
            let effects = reflector.step(input, jitter());
            let outcome = perform_all(effects, self, informer, refresh, on_delta).await;
            input = if let Some(outcome) = outcome {
                outcome
            } else {
                tokio::select! {
                    biased;
                    () = refresh.notified() => Input::Stale,
                    event = self.next_event() => event,
                }
            };
        }
    }

    /// The first list as one page, as the server streams it; `None` if it does not, or is not asked to.
    async fn stream<T: Cached + DeserializeOwned>(&mut self) -> Option<Input<T>> {
        if !std::mem::take(&mut self.streams) {
            return None;
        }
        let mut query = self.scope.query();
        let _ = write!(
            query,
            "&watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
             &timeoutSeconds={}",
            STREAM_TIMEOUT.as_secs()
        );
        let mut skipped = self.skipped();
        let streamed = async {
            let mut lines = self.client.watch(&query, self.scope.form, STREAM_TIMEOUT).await?;
            let mut list = StreamedList::new();
            while let Some(line) = next_within(&mut lines, STREAM_SILENCE).await? {
                let line = wire::decode_streamed_line(&line, &mut skipped);
                match line.map_err(|error| ApiError::Malformed(error.to_string()))? {
                    StreamedLine::Event(event) => list.apply(event),
                    StreamedLine::End(version) => return Ok((list.into_items(), version)),
                    StreamedLine::Failed(failure) => {
                        return Err(ApiError::Malformed(format!("{failure:?} within a streamed list")));
                    }
                }
            }
            Err(ApiError::Transport("closed within a streamed list".to_owned()))
        };
        match streamed.await {
            Ok((items, version)) => Some(Input::Page {
                items,
                version,
                continue_token: None,
            }),
            Err(error) => {
                tracing::info!(path = self.scope.path, %error, "the server does not stream the list; it is read in pages");
                None
            }
        }
    }

    /// A page of a list, with as many objects as fit.
    async fn list<T: DeserializeOwned>(
        &mut self,
        at: Option<Version>,
        continue_token: Option<&str>,
        wanted: Option<u32>,
    ) -> Input<T> {
        loop {
            let limit = self.page_size.limit(wanted);
            let query = self.page_query(at, continue_token, limit);
            match self.client.page(&query, self.scope.form).await {
                Ok(page) => {
                    let decoded = wire::decode_page(&page, &mut self.skipped());
                    if let Ok(Input::Page { items, .. }) = &decoded {
                        self.page_size.fitted(items.len(), page.len());
                    }
                    return decoded.unwrap_or_else(|error| malformed(&self.scope.path, &error));
                }
                Err(ApiError::TooLarge(_)) if self.page_size.shrink(limit) => {}
                Err(error @ ApiError::TooLarge(_)) => {
                    tracing::error!(
                        path = self.scope.path,
                        %error,
                        "a single object is too large to be read, and the list cannot go on without it: delete it or make it smaller"
                    );
                    return Input::Failed(error.to_failure());
                }
                Err(error) => {
                    tracing::warn!(path = self.scope.path, %error, "list failed");
                    return Input::Failed(error.to_failure());
                }
            }
        }
    }

    fn page_query(&self, at: Option<Version>, continue_token: Option<&str>, limit: Option<u32>) -> String {
        let mut query = self.scope.query();
        if is_injected("StaleListTrusted") {
            query.push_str("&resourceVersion=0");
        } else if let Some(version) = at {
            let _ = write!(query, "&resourceVersion={version}&resourceVersionMatch=Exact");
        }
        if let Some(limit) = limit {
            let _ = write!(query, "&limit={limit}");
        }
        if let Some(token) = continue_token {
            let _ = write!(query, "&continue={}", segment(token));
        }
        query
    }

    /// Logs and counts objects that cannot be read because of their depth.
    fn skipped(&self) -> impl FnMut(wire::TooDeep) + use<'a> {
        let (client, path) = (self.client, &self.scope.path);
        move |object| {
            let (namespace, name) = (object.namespace, object.name);
            tracing::error!(
                path,
                namespace,
                name,
                "nested too deep to be read: the object is skipped, and nothing acts on it"
            );
            client.skipped(path);
        }
    }

    async fn open(&mut self, version: Version, bookmarks: bool, timeout_seconds: u64) -> Option<Failure> {
        let mut query = self.scope.query();
        let _ = write!(
            query,
            "&watch=true&resourceVersion={version}&allowWatchBookmarks={bookmarks}&timeoutSeconds={timeout_seconds}"
        );
        match self
            .client
            .watch(&query, self.scope.form, Duration::from_secs(timeout_seconds))
            .await
        {
            Ok(lines) => {
                self.watch = Some((lines, Instant::now()));
                None
            }
            Err(error) => Some(error.to_failure()),
        }
    }

    async fn next_event<T: DeserializeOwned>(&mut self) -> Input<T> {
        let Some((lines, opened)) = &mut self.watch else {
            // Without a watch, nothing is pending. That is a bug of the reflector; the pause prevents a busy loop.
            tokio::time::sleep(Duration::from_secs(1)).await;
            return Input::Failed(Failure::Transport);
        };
        match lines.next().await {
            Ok(Some(line)) => wire::decode_watch_line(&line, &mut self.skipped())
                .unwrap_or_else(|error| malformed(&self.scope.path, &error)),
            Ok(None) => Input::WatchClosed {
                lasted: opened.elapsed(),
            },
            // Not a failure to back off from: a server without bookmarks may have had no events.
            Err(ApiError::Timeout(_)) => {
                tracing::info!(path = self.scope.path, "a watch without events is reopened");
                Input::WatchClosed {
                    lasted: opened.elapsed(),
                }
            }
            Err(error) => Input::Failed(error.to_failure()),
        }
    }
}

/// The next line, if it comes within this time.
async fn next_within(lines: &mut WatchLines, silence: Duration) -> Result<Option<BytesMut>, ApiError> {
    let next = tokio::time::timeout(silence, lines.next()).await;
    next.map_err(|_| ApiError::Timeout(silence))?
}

impl Scope {
    /// The whole objects of a collection.
    pub fn new(path: impl Into<String>, selector: Option<String>) -> Self {
        Self {
            path: path.into(),
            selector,
            form: Form::Whole,
            first: FirstList::Paged,
        }
    }

    fn query(&self) -> String {
        format!("{}?{}", self.path, self.selector.as_deref().unwrap_or_default())
    }
}

fn malformed<T>(path: &str, error: &wire::DecodeError) -> Input<T> {
    tracing::error!(path, %error, "undecodable response");
    Input::Failed(Failure::Malformed)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use futures::stream;
    use http::{Request, Response};
    use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
    use kruise_views::NodeView;
    use kube_client::client::Body;
    use tokio::time::timeout;

    use super::*;
    use crate::client::Settings;

    /// A body without any data that never ends.
    fn endless() -> UnsyncBoxBody<Bytes, Infallible> {
        let frames = stream::unfold((), |()| async {
            std::future::pending::<()>().await;
            Some((Full::new(Bytes::new()).frame().await?, ()))
        });
        StreamBody::new(frames).boxed_unsync()
    }

    const PAGE: &str = r#"{"metadata":{"resourceVersion":"7"},"items":[]}"#;

    #[tokio::test(start_paused = true)]
    async fn a_watch_without_events_is_reopened_without_a_list() {
        let (lists, watches) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let counts = std::sync::Arc::new((lists, watches));
        let seen = counts.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_watch = request
                .uri()
                .query()
                .is_some_and(|query| query.contains("watch=true"));
            let body = if is_watch {
                seen.1.fetch_add(1, Ordering::SeqCst);
                endless()
            } else {
                seen.0.fetch_add(1, Ordering::SeqCst);
                Full::new(Bytes::from_static(PAGE.as_bytes())).boxed_unsync()
            };
            async { Ok::<_, std::io::Error>(Response::new(body)) }
        });
        let settings = Settings::of_a_test(Duration::from_secs(30));
        let client = Client::new(kube_client::Client::new(service, "default"), settings);
        let scope = Scope::new("/api/v1/nodes", None);
        let informer = SharedInformer::<NodeView>::new([]);
        let (_keep, stop) = tokio::sync::watch::channel(false);
        let refresh = Notify::new();
        let following = follow(&client, &scope, &informer, &refresh, drop, || 0, stop);
        assert!(timeout(Duration::from_secs(200), following).await.is_err());
        let counts = (counts.0.load(Ordering::SeqCst), counts.1.load(Ordering::SeqCst));
        assert_eq!(counts, (1, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_collection_that_is_not_served_is_left_by_those_who_say_so_and_retried_by_others() {
        let requests = std::sync::Arc::new(AtomicUsize::new(0));
        let seen = requests.clone();
        let service = tower::service_fn(move |_: Request<Body>| {
            // A server that fails at first.
            let code = match seen.fetch_add(1, Ordering::SeqCst) {
                0 => 503,
                _ => 404,
            };
            let body = Full::new(Bytes::from_static(b"404 page not found")).boxed_unsync();
            async move { Response::builder().status(code).body(body) }
        });
        let settings = Settings::of_a_test(Duration::from_secs(30));
        let client = Client::new(kube_client::Client::new(service, "default"), settings);
        let scope = Scope::new("/apis/apps.kruise.io/v1beta1/nodeimages", None);
        let informer = SharedInformer::<NodeView>::new([]);
        let (_keep, stop) = tokio::sync::watch::channel(false);
        let following = follow_while_served(&client, &scope, &informer, drop, || 0, stop.clone());
        assert_eq!(
            timeout(Duration::from_secs(200), following).await,
            Ok(End::NotServed)
        );
        assert_eq!(
            requests.load(Ordering::SeqCst),
            2,
            "a failure is retried, 404 is not"
        );
        let refresh = Notify::new();
        let following = follow(&client, &scope, &informer, &refresh, drop, || 0, stop);
        assert!(timeout(Duration::from_secs(200), following).await.is_err());
        assert!(requests.load(Ordering::SeqCst) > 5);
    }

    /// Follows nodes of these sizes in bytes. Returns the limits of all list requests within a minute, and how many nodes are
    /// cached then.
    async fn paged(sizes: &'static [usize]) -> (Vec<usize>, usize) {
        let limits = std::sync::Arc::<std::sync::Mutex<Vec<usize>>>::default();
        let seen = limits.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let of = |name: &str| {
                let value = query.split('&').find_map(|pair| pair.strip_prefix(name));
                value.map_or(0, |value| value.parse::<usize>().unwrap())
            };
            let body = if query.contains("watch=true") {
                endless()
            } else {
                let (start, limit) = (of("continue="), of("limit="));
                seen.lock().unwrap().push(limit);
                let end = sizes.len().min(start + limit);
                let node = |at: usize| {
                    let notes = "n".repeat(sizes[at]);
                    serde_json::json!({"metadata": {"name": format!("n{at}"), "uid": format!("u{at}"),
                        "resourceVersion": "5", "annotations": {"notes": notes}}})
                };
                let next = if end < sizes.len() {
                    end.to_string()
                } else {
                    String::new()
                };
                let page = serde_json::json!({"metadata": {"resourceVersion": "7", "continue": next},
                    "items": (start..end).map(node).collect::<Vec<_>>()});
                Full::new(Bytes::from(page.to_string())).boxed_unsync()
            };
            async move { Ok::<_, std::io::Error>(Response::new(body)) }
        });
        let settings = Settings::of_a_test(Duration::from_secs(30));
        let client = Client::new(kube_client::Client::new(service, "default"), settings);
        let scope = Scope::new("/api/v1/nodes", None);
        let informer = SharedInformer::<NodeView>::new([]);
        let (_keep, stop) = tokio::sync::watch::channel(false);
        let refresh = Notify::new();
        let following = follow(&client, &scope, &informer, &refresh, drop, || 0, stop);
        assert!(timeout(Duration::from_mins(1), following).await.is_err());
        let limits = limits.lock().unwrap().clone();
        (limits, informer.snapshot().len())
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_is_too_large_is_requested_again_with_fewer_objects() {
        let (limits, cached) = paged(&[2_000_000; 9]).await;
        // Three of them are three quarters of what fits.
        assert_eq!(limits, [500, 125, 31, 7, 1, 2, 3, 3]);
        assert_eq!(cached, 9);
        let (limits, cached) = paged(&[10, 9 << 20]).await;
        assert_eq!(
            (limits[..7].to_vec(), cached),
            (vec![500, 125, 31, 7, 1, 2, 1], 0)
        );
        assert!(limits.len() > 8, "it is tried again: {limits:?}");
    }

    /// Follows nodes whose first list is streamed, on a server that answers such a watch with this code and these lines,
    /// and then is silent. Returns the names of the nodes after a minute, their version, and the queries of all requests.
    async fn streamed(
        code: u16,
        lines: &'static str,
        closes: bool,
    ) -> (Vec<String>, Option<Version>, Vec<String>) {
        let queries = std::sync::Arc::<std::sync::Mutex<Vec<String>>>::default();
        let seen = queries.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let (code, body) = if query.contains("sendInitialEvents=true") {
                let frames = stream::unfold(Some(lines), move |lines| async move {
                    let Some(lines) = lines else {
                        if !closes {
                            std::future::pending::<()>().await;
                        }
                        return None;
                    };
                    Some((
                        Full::new(Bytes::from_static(lines.as_bytes())).frame().await?,
                        None,
                    ))
                });
                (code, StreamBody::new(frames).boxed_unsync())
            } else if query.contains("watch=true") {
                (200, endless())
            } else {
                let page = r#"{"metadata":{"resourceVersion":"12"},"items":[{"metadata":{"name":"paged","uid":"p","resourceVersion":"2"}}]}"#;
                (200, Full::new(Bytes::from_static(page.as_bytes())).boxed_unsync())
            };
            seen.lock().unwrap().push(query);
            async move { Ok::<_, std::io::Error>(Response::builder().status(code).body(body).unwrap()) }
        });
        let settings = Settings::of_a_test(Duration::from_secs(30));
        let client = Client::new(kube_client::Client::new(service, "default"), settings);
        let scope = Scope {
            first: FirstList::Streamed,
            ..Scope::new("/api/v1/nodes", None)
        };
        let informer = SharedInformer::<NodeView>::new([]);
        let (_keep, stop) = tokio::sync::watch::channel(false);
        let refresh = Notify::new();
        let following = follow(&client, &scope, &informer, &refresh, drop, || 0, stop);
        assert!(timeout(Duration::from_mins(1), following).await.is_err());
        let names = informer
            .snapshot()
            .iter()
            .map(|node| node.name.to_string())
            .collect();
        let queries = queries.lock().unwrap().clone();
        (names, informer.synced_version(), queries)
    }

    const ADDED: &str = concat!(
        r#"{"type":"ADDED","object":{"metadata":{"name":"a","uid":"a","resourceVersion":"5"}}}"#,
        "\n",
        r#"{"type":"ADDED","object":{"metadata":{"name":"b","uid":"b","resourceVersion":"3"}}}"#,
        "\n",
    );

    #[tokio::test(start_paused = true)]
    async fn a_streamed_list_is_complete_with_its_bookmark_and_the_watch_goes_on_from_there() {
        const LINES: &str = concat!(
            r#"{"type":"ADDED","object":{"metadata":{"name":"a","uid":"a","resourceVersion":"5"}}}"#,
            "\n",
            r#"{"type":"ADDED","object":{"metadata":{"name":"b","uid":"b","resourceVersion":"3"}}}"#,
            "\n",
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"6"}}}"#,
            "\n",
            r#"{"type":"MODIFIED","object":{"metadata":{"name":"a","uid":"a","resourceVersion":"8"}}}"#,
            "\n",
            r#"{"type":"DELETED","object":{"metadata":{"name":"b","uid":"b","resourceVersion":"9"}}}"#,
            "\n",
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"10","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
            "\n",
        );
        let (names, version, queries) = streamed(200, LINES, false).await;
        assert_eq!(names, ["a"]);
        assert_eq!(version, Some(Version::new(10)));
        let [first, then] = queries.as_slice() else {
            panic!("{queries:?}");
        };
        assert!(first.contains("sendInitialEvents=true&resourceVersionMatch=NotOlderThan"));
        assert!(!first.contains("resourceVersion="), "a quorum read: {first}");
        assert!(then.contains("watch=true&resourceVersion=10"), "{then}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_the_server_does_not_stream_to_its_end_is_read_in_pages() {
        const EXPIRED: &str =
            "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}\n";
        for (code, lines, closes) in [
            (422, r#"{"kind":"Status","code":422}"#, true),
            (200, ADDED, true),
            (200, ADDED, false),
            (200, EXPIRED, false),
            (200, "no json\n", false),
        ] {
            let (names, version, queries) = streamed(code, lines, closes).await;
            assert_eq!(names, ["paged"], "{lines}");
            assert_eq!(version, Some(Version::new(12)));
            let [_, list, then] = queries.as_slice() else {
                panic!("{queries:?}");
            };
            assert!(list.contains("limit=500") && !list.contains("watch"), "{list}");
            assert!(then.contains("watch=true&resourceVersion=12"), "{then}");
        }
    }
}
