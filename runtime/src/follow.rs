//! Keeps an informer up to date: performs the effects of a reflector.
//!
//! Guarantees: the handler receives deltas in the order of the informer. One list page is decoded at a time,
//! straight into `T`. A page that is too large is requested again with fewer objects. The future ends as soon as
//! `stop` is true or its sender is dropped, also during a request.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use bytes::BytesMut;
use kruise_api::path::segment;
use kruise_plan_kit::injected::is_injected;
use kube_cache::{
    Delta, Effect, Event, Failure, Input, Reflector, SharedInformer, StreamedLine, StreamedList, Version,
    wire,
};
use serde::Deserialize;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use crate::client::{Form, WatchLines};
use crate::page_size::PageSize;
use crate::store::{Followable, Object, Store, Typed};
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

/// How the first list is requested. If the server does not answer it like this, the next attempt is a list of the
/// current state in pages, as every later list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstList {
    /// The current state in pages.
    Paged,
    /// The current state as the initial events of a watch: one request, decoded object by object while the server
    /// sends. Servers can do this by default from Kubernetes 1.34 on; others refuse the request.
    Streamed,
    /// The state at exactly this version, in pages.
    At(Version),
}

/// Lists and watches a resource until `stop`. A notification of `refresh` requests a list at once, for newer state than
/// the watch has delivered. `jitter` returns uniform random numbers.
pub async fn follow<T: Followable>(
    client: &Client,
    scope: &Scope,
    informer: &SharedInformer<T>,
    refresh: &Notify,
    on_delta: impl FnMut(Delta<T>) + Send,
    mut jitter: impl FnMut() -> u64 + Send,
    stop: watch::Receiver<bool>,
) {
    let mut store = Typed { informer, on_delta };
    let follower = Follower::new(client, scope, refresh);
    // A path that is not served now may be later.
    follower.run_until(&mut store, &mut jitter, |_| false, stop).await;
}

/// Why following has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// `stop` is true, or its sender was dropped.
    Stopped,
    /// The server does not serve the collection: 404.
    NotServed,
}

/// As [`follow`], and ends also when the server does not serve the collection. The informer keeps what it has: the
/// next list into it, at another path if need be, is compared with that.
pub async fn follow_while_served<T: Followable>(
    client: &Client,
    scope: &Scope,
    informer: &SharedInformer<T>,
    on_delta: impl FnMut(Delta<T>) + Send,
    mut jitter: impl FnMut() -> u64 + Send,
    stop: watch::Receiver<bool>,
) -> End {
    let mut store = Typed { informer, on_delta };
    let refresh = Notify::new();
    let follower = Follower::new(client, scope, &refresh);
    let is_unserved = |failure| failure == Failure::NotFound;
    follower
        .run_until(&mut store, &mut jitter, is_unserved, stop)
        .await
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
    refresh: &'a Notify,
    watch: Option<(WatchLines, Instant)>,
    /// Whether the next list is streamed.
    streams: bool,
    page_size: PageSize,
}

/// Performs effects in order. Returns the result of the last one as the next input, if it has one.
async fn perform_all(
    effects: Vec<Effect<Object>>,
    follower: &mut Follower<'_>,
    store: &mut dyn Store,
) -> Option<Input<Object>> {
    let mut effects = VecDeque::from(effects);
    let mut input = None;
    while let Some(effect) = effects.pop_front() {
        match effect {
            Effect::Inform(event) => {
                let is_list = matches!(event, Event::ListDone { .. });
                match store.apply(event) {
                    Ok(()) if is_list => input = Some(Input::ListAccepted),
                    Ok(()) => {}
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
                store.forget_history();
            }
            Effect::List {
                at,
                continue_token,
                limit,
            } => {
                follower.watch = None;
                input = follower.stream(store).await;
                if input.is_none() {
                    let token = continue_token.as_deref();
                    input = Some(follower.list(store, at, token, limit).await);
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
                    () = follower.refresh.notified() => Input::Stale,
                    () = tokio::time::sleep(delay) => Input::Timer,
                });
            }
        }
    }
    input
}

impl<'a> Follower<'a> {
    fn new(client: &'a Client, scope: &'a Scope, refresh: &'a Notify) -> Self {
        Self {
            client,
            scope,
            refresh,
            watch: None,
            streams: scope.first == FirstList::Streamed && !is_injected("StaleListTrusted"),
            page_size: PageSize::default(),
        }
    }

    /// Follows until `stop` is true or its sender is dropped, or until a failure that is the end.
    async fn run_until(
        mut self,
        store: &mut dyn Store,
        jitter: &mut (dyn FnMut() -> u64 + Send),
        is_end: fn(Failure) -> bool,
        mut stop: watch::Receiver<bool>,
    ) -> End {
        tokio::select! {
            biased;
            () = self.run(store, jitter, is_end) => End::NotServed,
            _ = stop.wait_for(|stop| *stop) => End::Stopped,
        }
    }

    async fn run(
        &mut self,
        store: &mut dyn Store,
        jitter: &mut (dyn FnMut() -> u64 + Send),
        is_end: fn(Failure) -> bool,
    ) {
        let mut reflector = Reflector::first_list_at(match self.scope.first {
            FirstList::At(version) => Some(version),
            FirstList::Paged | FirstList::Streamed => None,
        });
        let mut input = Input::Start;
        loop {
            if let Input::Failed(failure) = &input
                && is_end(*failure)
            {
                return;
            }
            let effects = reflector.step(input, jitter());
            let outcome = perform_all(effects, self, store).await;
            input = if let Some(outcome) = outcome {
                outcome
            } else {
                let refresh = self.refresh;
                tokio::select! {
                    biased;
                    () = refresh.notified() => Input::Stale,
                    event = self.next_event(store) => event,
                }
            };
        }
    }

    /// The first list as one page, as the server streams it; `None` if it does not, or is not asked to.
    async fn stream(&mut self, store: &mut dyn Store) -> Option<Input<Object>> {
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
                let line = store.line(&line, &mut skipped);
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
    async fn list(
        &mut self,
        store: &mut dyn Store,
        at: Option<Version>,
        continue_token: Option<&str>,
        wanted: Option<u32>,
    ) -> Input<Object> {
        loop {
            let limit = self.page_size.limit(wanted);
            let query = self.page_query(at, continue_token, limit);
            match self.client.page(&query, self.scope.form).await {
                Ok(page) => {
                    let decoded = store.page(&page, &mut self.skipped());
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

    async fn next_event(&mut self, store: &mut dyn Store) -> Input<Object> {
        let Some((lines, opened)) = &mut self.watch else {
            // Without a watch, nothing is pending. That is a bug of the reflector; the pause prevents a busy loop.
            tokio::time::sleep(Duration::from_secs(1)).await;
            return Input::Failed(Failure::Transport);
        };
        match lines.next().await {
            Ok(Some(line)) => match store.line(&line, &mut self.skipped()) {
                Ok(line) => line.into(),
                Err(error) => malformed(&self.scope.path, &error),
            },
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

fn malformed(path: &str, error: &wire::DecodeError) -> Input<Object> {
    tracing::error!(path, %error, "undecodable response");
    Input::Failed(Failure::Malformed)
}

#[cfg(test)]
mod tests;
