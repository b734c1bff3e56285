//! Requests to the API server, decoded straight into narrow types.
//!
//! Every request but a watch has a timeout. A read or write is repeated after 429, because the server has then done
//! nothing. The client repeats no other failure: that decision belongs to the caller.

mod config;
mod form;
mod kubeconfig;
mod limit;
mod page;
mod skew;
#[cfg(test)]
mod tests;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use go_compat::json::html_safe;
use http::{HeaderMap, Method, Request, header};
use jiff::Timestamp;
use kube_client::client::Body;
use serde::de::DeserializeOwned;

pub use config::{ConnectError, Source, connect};
pub use form::Form;
pub use kubeconfig::{Choice, ChoiceError};
pub use page::{PAGE_BYTES, Page};
pub use watch::WatchLines;

use crate::{ApiError, Clock};
use form::{JSON, Size};
use limit::RateLimit;
use page::LargePages;
use skew::Skew;

/// Times a request is repeated after 429.
const REPEATS: u32 = 5;
/// Upper limit of `Retry-After`.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Receives the result of every request, for `rest_client_requests_total`.
pub trait Observer: Send + Sync {
    /// A request ended; `code` is the HTTP code, or `<error>` without a response.
    fn requested(&self, method: &str, host: &str, code: &str);

    /// An object of the collection at this path was skipped, because it is nested too deep to be read.
    fn skipped(&self, path: &str) {
        let _ = path;
    }

    /// The clock of the server is so many seconds ahead of ours; behind it, if below 0.
    fn skewed(&self, seconds: f64) {
        let _ = seconds;
    }
}

/// Settings of a client.
#[derive(Clone)]
pub struct Settings {
    /// `User-Agent` of every request.
    pub user_agent: String,
    /// Time a request other than a watch may take.
    pub timeout: Duration,
    /// Requests per second and burst of each named client; `None` for no limit.
    pub rate: Option<(f64, u32)>,
    /// Host label of metrics.
    pub host: String,
    /// Metrics, if any.
    pub observer: Option<Arc<dyn Observer>>,
    /// The clock for timestamps in written objects.
    pub clock: Clock,
}

#[cfg(test)]
impl Settings {
    /// Settings for a test with a server in the same process.
    pub(crate) fn of_a_test(timeout: Duration) -> Self {
        Self {
            user_agent: "kruise-manager/test".into(),
            timeout,
            rate: None,
            host: "here".into(),
            observer: None,
            clock: Clock::SYSTEM,
        }
    }
}

/// A cheap handle to one API server.
#[derive(Clone)]
pub struct Client {
    inner: kube_client::Client,
    settings: Arc<Settings>,
    rate: Option<Arc<RateLimit>>,
    /// Clients of one server share it.
    skew: Arc<Skew>,
    /// Clients of one server share it.
    large_pages: LargePages,
}

impl Client {
    /// A client that uses any connection, such as one to an in-process server.
    pub fn new(inner: kube_client::Client, settings: Settings) -> Self {
        let rate = settings
            .rate
            .map(|(qps, burst)| Arc::new(RateLimit::new(qps, burst)));
        Self {
            inner,
            settings: Arc::new(settings),
            rate,
            skew: Arc::default(),
            large_pages: LargePages::default(),
        }
    }

    /// The same connections under another `User-Agent`, by which audit logs and flow schemas distinguish components,
    /// and with a rate limit of its own: the lease must not queue behind the requests of a busy controller.
    #[must_use]
    pub fn named(&self, user_agent: &str) -> Self {
        let settings = Settings {
            user_agent: user_agent.to_owned(),
            ..(*self.settings).clone()
        };
        Self {
            skew: Arc::clone(&self.skew),
            large_pages: self.large_pages.clone(),
            ..Self::new(self.inner.clone(), settings)
        }
    }

    /// Host and port of the API server, as configured.
    pub fn host(&self) -> &str {
        &self.settings.host
    }

    /// The namespace of the kubeconfig's context, or of the pod this runs in; `default` if neither names one.
    pub fn default_namespace(&self) -> &str {
        self.inner.default_namespace()
    }

    /// The current time, for timestamps in written objects.
    pub fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }

    /// GET, decoded.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        decode(&self.send(Method::GET, path, JSON, None, Size::Any).await?)
    }

    /// GET of a list, of which the server sends only the metadata of its items.
    pub async fn get_metadata<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        decode(&self.get_bytes(path, Form::Metadata).await?)
    }

    /// GET of a list, undecoded.
    pub async fn get_bytes(&self, path: &str, form: Form) -> Result<Bytes, ApiError> {
        let list = self.send(Method::GET, path, form.of_lists(), None, Size::Any);
        Ok(list.await?.into_bytes())
    }

    /// GET of a page of a list, undecoded. [`ApiError::TooLarge`] if it is larger than [`PAGE_BYTES`].
    pub async fn page(&self, path: &str, form: Form) -> Result<Page, ApiError> {
        self.send(Method::GET, path, form.of_lists(), None, Size::Page)
            .await
    }

    /// POST.
    pub async fn create<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl serde::Serialize,
    ) -> Result<T, ApiError> {
        self.write(Method::POST, path, "application/json", body).await
    }

    /// POST as a dry run: succeeds if the server would accept the object. Nothing is stored.
    pub async fn would_create(&self, path: &str, body: &impl serde::Serialize) -> Result<(), ApiError> {
        let path = format!("{path}?dryRun=All");
        let _: serde::de::IgnoredAny = self.write(Method::POST, &path, "application/json", body).await?;
        Ok(())
    }

    /// PUT: replaces the object if its `resourceVersion` is still the one in `body`.
    pub async fn replace<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl serde::Serialize,
    ) -> Result<T, ApiError> {
        self.write(Method::PUT, path, "application/json", body).await
    }

    /// PATCH; the content type names the kind of patch.
    pub async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        content_type: &'static str,
        body: &impl serde::Serialize,
    ) -> Result<T, ApiError> {
        self.write(Method::PATCH, path, content_type, body).await
    }

    /// DELETE with `DeleteOptions`.
    pub async fn delete<T: DeserializeOwned>(
        &self,
        path: &str,
        options: &impl serde::Serialize,
    ) -> Result<T, ApiError> {
        self.write(Method::DELETE, path, "application/json", options)
            .await
    }

    async fn write<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        content_type: &'static str,
        body: &impl serde::Serialize,
    ) -> Result<T, ApiError> {
        let body = serde_json::to_vec(body).map_err(|error| ApiError::Invalid(error.to_string()))?;
        // API servers keep the data of revisions as it was spelled, spell it like Go whenever they patch the
        // object, and refuse a patch if that differs: data must not change.
        let body = Some((content_type, html_safe(body).into()));
        decode(&self.send(method, path, JSON, body, Size::Any).await?)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        accept: &'static str,
        body: Option<(&'static str, Bytes)>,
        size: Size,
    ) -> Result<Page, ApiError> {
        for _ in 0..REPEATS {
            let result = self.send_once(&method, path, accept, body.clone(), size).await;
            let Some(wait) = result.as_ref().err().and_then(ApiError::too_many_requests) else {
                return result;
            };
            tokio::time::sleep(wait.min(LONGEST_WAIT)).await;
        }
        self.send_once(&method, path, accept, body, size).await
    }

    async fn send_once(
        &self,
        method: &Method,
        path: &str,
        accept: &'static str,
        body: Option<(&'static str, Bytes)>,
        size: Size,
    ) -> Result<Page, ApiError> {
        let limit = self.settings.timeout;
        if let Some(rate) = &self.rate {
            rate.acquire().await;
        }
        let exchange = async {
            let response = self.exchange(method, path, accept, body).await?;
            let (head, body) = response.into_parts();
            let answer = self.large_pages.read(body, size).await?;
            if head.status.is_success() {
                return Ok(answer);
            }
            let wait = retry_after(&head.headers);
            Err(ApiError::refused(head.status.as_u16(), &answer, wait))
        };
        tokio::time::timeout(limit, exchange).await.unwrap_or_else(|_| {
            self.observe(method, "<error>");
            Err(ApiError::Timeout(limit))
        })
    }

    async fn exchange(
        &self,
        method: &Method,
        path: &str,
        accept: &'static str,
        body: Option<(&'static str, Bytes)>,
    ) -> Result<http::Response<Body>, ApiError> {
        let builder = Request::builder()
            .method(method)
            .uri(path)
            .header(header::USER_AGENT, &self.settings.user_agent)
            .header(header::ACCEPT, accept);
        let request = match body {
            Some((content_type, bytes)) => builder
                .header(header::CONTENT_TYPE, content_type)
                .body(Body::from(bytes)),
            None => builder.body(Body::empty()),
        };
        let request = request.map_err(|error| ApiError::Invalid(error.to_string()))?;
        let sent = self.now();
        let result = self.inner.send(request).await;
        match &result {
            Ok(response) => {
                self.compare_clocks(response.headers(), sent);
                self.observe(method, response.status().as_str());
            }
            Err(_) => self.observe(method, "<error>"),
        }
        result.map_err(|error| ApiError::Transport(causes(&error)))
    }

    /// Counts an object that was skipped.
    pub(crate) fn skipped(&self, path: &str) {
        if let Some(observer) = &self.settings.observer {
            observer.skipped(path);
        }
    }

    /// Compares the clocks.
    fn compare_clocks(&self, headers: &HeaderMap, sent: Timestamp) {
        let Some(seen) = self.skew.of(headers, sent, self.now()) else {
            return;
        };
        if let Some(observer) = &self.settings.observer {
            observer.skewed(seen.seconds);
        }
        if seen.is_news {
            let (seconds, server) = (seen.seconds.round(), &self.settings.host);
            tracing::warn!(
                seconds,
                server,
                "the clock of the API server differs from ours: the lease of the leader, deadlines, delays and times of pods are \
                 wrong by as much; set the clocks of the nodes"
            );
        }
    }

    fn observe(&self, method: &Method, code: &str) {
        if let Some(observer) = &self.settings.observer {
            observer.requested(method.as_str(), &self.settings.host, code);
        }
    }
}

/// An error and its causes as text. A cause that the text already contains is not repeated.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    kube_cache::wire::from_json(bytes).map_err(|error| ApiError::Malformed(error.to_string()))
}

/// `Retry-After` in seconds; API servers do not use its date form.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}
