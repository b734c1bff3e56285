//! The loop that keeps certificate, configurations and CRDs in shape, in every replica and regardless of leadership.
//! A webhook that comes and goes is put where it is wanted as soon as that is known, between the passes.
//!
//! A pass writes only what differs and under the version it has read, so replicas that race for the same write end
//! up agreeing: the loser re-reads. Configurations are written before a new certificate is served, because they
//! trust the old CA as well for a while, and the API server may call at any moment.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};
use serde_json::{Value, json};
use tokio::{
    sync::{oneshot, watch},
    task::spawn_blocking,
};

use crate::{
    Error,
    cert_dir::CertDir,
    certs::{SecretDecision, Stored, reconcile_secret},
    configuration::{self, Conditional, Endpoint, Presence},
    tls::{Pair, Tls},
};

/// Attempts at one object before the pass gives up.
const ATTEMPTS: usize = 3;

/// Why the API server did not do as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// There is no such object.
    #[error("not found")]
    NotFound,
    /// It was changed since it was read, or exists already.
    #[error("changed by somebody else")]
    Conflict,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// The two kinds of webhook configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// MutatingWebhookConfiguration.
    Mutating,
    /// ValidatingWebhookConfiguration.
    Validating,
}

/// The API server as a pass needs it. Patches are JSON merge patches.
pub trait Api: Send + Sync {
    /// Reads a Secret.
    fn get_secret(&self, namespace: &str, name: &str)
    -> impl Future<Output = Result<Value, ApiError>> + Send;
    /// Creates a Secret; name and namespace are in its metadata.
    fn create_secret(&self, secret: Value) -> impl Future<Output = Result<(), ApiError>> + Send;
    /// Replaces a Secret; name, namespace and version are in its metadata.
    fn replace_secret(&self, secret: Value) -> impl Future<Output = Result<(), ApiError>> + Send;
    /// Reads a webhook configuration.
    fn get_configuration(
        &self,
        phase: Phase,
        name: &str,
    ) -> impl Future<Output = Result<Value, ApiError>> + Send;
    /// Patches a webhook configuration.
    fn patch_configuration(
        &self,
        phase: Phase,
        name: &str,
        patch: Value,
    ) -> impl Future<Output = Result<(), ApiError>> + Send;
    /// Reads a CustomResourceDefinition.
    fn get_crd(&self, name: &str) -> impl Future<Output = Result<Value, ApiError>> + Send;
    /// Patches a CustomResourceDefinition.
    fn patch_crd(&self, name: &str, patch: Value) -> impl Future<Output = Result<(), ApiError>> + Send;
}

/// Where certificates come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A Secret all replicas share and keep good.
    Secret,
    /// The certificate directory, each replica its own.
    Directory,
    /// A Secret somebody else issues; configurations and CRDs are somebody else's too and only checked.
    External,
}

/// What a pass works on.
#[derive(Clone)]
pub struct Settings {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// Webhook configurations; they must exist.
    pub configurations: Vec<(Phase, String)>,
    /// CRDs that may be converted here; those that do not exist are passed over.
    pub crds: Vec<String>,
    /// Where the API server calls.
    pub endpoint: Endpoint,
    /// How long before its end a certificate is replaced.
    pub lead: Duration,
    /// Where certificates come from.
    pub source: Source,
    /// Where they are written.
    pub cert_dir: CertDir,
    /// Whether a path has a handler.
    pub served: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// A webhook of the mutating configurations that comes and goes, and whether it is to be there now.
    pub conditional: Option<(Conditional, watch::Receiver<Presence>)>,
}

impl Settings {
    fn presence(&self) -> Option<Presence> {
        let (_, presence) = self.conditional.as_ref()?;
        Some(presence.borrow().clone())
    }
}

/// What a pass found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What to serve.
    pub pair: Pair,
    /// Webhooks left out because their path has no handler.
    pub dropped: Vec<String>,
}

/// Does everything once. `served` is what is being served until then; other replicas may serve it a while longer.
pub async fn run_once(
    api: &impl Api,
    settings: &Settings,
    served: Option<&Pair>,
    now: Timestamp,
) -> Result<Outcome, Error> {
    let served_ca = served.map(|pair| pair.ca_pem.clone());
    let pair = obtain(api, settings, served_ca, now).await?;
    let mut dropped = Vec::new();
    for (phase, name) in &settings.configurations {
        dropped.append(&mut configure(api, settings, &pair, *phase, name).await?);
    }
    for name in &settings.crds {
        convert(api, settings, &pair, name).await?;
    }
    Ok(Outcome { pair, dropped })
}

async fn obtain(
    api: &impl Api,
    settings: &Settings,
    served_ca: Option<Vec<u8>>,
    now: Timestamp,
) -> Result<Pair, Error> {
    let directory = settings.cert_dir.clone();
    let pair = match settings.source {
        Source::Directory => {
            let (host, lead) = (settings.endpoint.host(), settings.lead);
            return blocking(move || directory.reconcile(served_ca.as_deref(), &host, now, lead)).await;
        }
        Source::Secret => shared(api, settings, served_ca, now).await?,
        Source::External => {
            let secret = api.get_secret(&settings.namespace, &settings.secret).await;
            let stored = Stored::from_external(&secret.map_err(|source| failed(&settings.secret, source))?);
            Pair {
                ca_pem: stored.ca.ok_or(Error::External("ca.crt"))?,
                cert_pem: stored.cert.ok_or(Error::External("tls.crt"))?,
                key_pem: stored.key.ok_or(Error::External("tls.key"))?,
            }
        }
    };
    let written = pair.clone();
    blocking(move || directory.write(&written, None)).await?;
    Ok(pair)
}

/// The pair of the shared Secret, made by whichever replica comes first.
async fn shared(
    api: &impl Api,
    settings: &Settings,
    served_ca: Option<Vec<u8>>,
    now: Timestamp,
) -> Result<Pair, Error> {
    let name = &settings.secret;
    for _ in 0..ATTEMPTS {
        let current = match api.get_secret(&settings.namespace, name).await {
            Ok(secret) => Some(secret),
            Err(ApiError::NotFound) => None,
            Err(source) => return Err(failed(name, source)),
        };
        let (host, lead, served_ca) = (settings.endpoint.host(), settings.lead, served_ca.clone());
        // Making keys takes long enough to be felt by whoever shares the thread.
        let decision =
            blocking(move || reconcile_secret(current.as_ref(), served_ca.as_deref(), &host, now, lead))
                .await?;
        let (written, pair) = match decision {
            SecretDecision::Use(pair) => return Ok(pair),
            SecretDecision::Create(mut secret, pair) => {
                if let Some(secret) = secret.as_object_mut() {
                    let metadata = json!({"name": name, "namespace": settings.namespace});
                    secret.insert("metadata".into(), metadata);
                }
                (api.create_secret(secret).await, pair)
            }
            SecretDecision::Update(secret, pair) => (api.replace_secret(secret).await, pair),
        };
        match written {
            Ok(()) => return Ok(pair),
            // Another replica was faster, or somebody deleted the Secret: look again.
            Err(ApiError::Conflict | ApiError::NotFound) => {}
            Err(source) => return Err(failed(name, source)),
        }
    }
    Err(failed(name, ApiError::Conflict))
}

/// Brings one webhook configuration into shape; returns the names of the webhooks that are left out.
async fn configure(
    api: &impl Api,
    settings: &Settings,
    pair: &Pair,
    phase: Phase,
    name: &str,
) -> Result<Vec<String>, Error> {
    for _ in 0..ATTEMPTS {
        let current = api.get_configuration(phase, name).await;
        let current = current.map_err(|source| match source {
            ApiError::NotFound => Error::NotInstalled(name.to_owned()),
            source => failed(name, source),
        })?;
        if settings.source == Source::External {
            let trusts = configuration::webhooks_trust(&current, &pair.ca_pem);
            return trusts
                .then(Vec::new)
                .ok_or_else(|| Error::Bundle(name.to_owned()));
        }
        let served = |path: &str| (settings.served)(path);
        let presence = settings.presence();
        let conditional = settings.conditional.as_ref().zip(presence.as_ref());
        let conditional = conditional
            .filter(|_| phase == Phase::Mutating)
            .map(|((conditional, _), presence)| (conditional, presence));
        let wanted =
            configuration::webhooks(&current, &pair.ca_pem, &settings.endpoint, served, conditional)?;
        let Some(patch) = wanted.patch else {
            return Ok(wanted.dropped);
        };
        match api.patch_configuration(phase, name, patch).await {
            Ok(()) => return Ok(wanted.dropped),
            Err(ApiError::Conflict) => {}
            Err(source) => return Err(failed(name, source)),
        }
    }
    Err(failed(name, ApiError::Conflict))
}

/// Brings the conversion of one CRD into shape.
async fn convert(api: &impl Api, settings: &Settings, pair: &Pair, name: &str) -> Result<(), Error> {
    for _ in 0..ATTEMPTS {
        let crd = match api.get_crd(name).await {
            Ok(crd) => crd,
            Err(ApiError::NotFound) => return Ok(()),
            Err(source) => return Err(failed(name, source)),
        };
        if settings.source == Source::External {
            let trusts = configuration::conversion_trusts(&crd, &pair.ca_pem);
            return trusts.then_some(()).ok_or_else(|| Error::Bundle(name.to_owned()));
        }
        let Some(patch) = configuration::conversion(&crd, &pair.ca_pem, &settings.endpoint) else {
            return Ok(());
        };
        match api.patch_crd(name, patch).await {
            Ok(()) => return Ok(()),
            Err(ApiError::Conflict) => {}
            Err(source) => return Err(failed(name, source)),
        }
    }
    Err(failed(name, ApiError::Conflict))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.unwrap_or(Err(Error::Interrupted))
}

fn failed(object: &str, source: ApiError) -> Error {
    Error::Api {
        object: object.to_owned(),
        source,
    }
}

/// How the passes went.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    failures: Counter,
    last_success: Gauge,
    dropped: Gauge,
    last_failure: Arc<Mutex<Option<String>>>,
}

impl Progress {
    /// Why the last pass failed, if it did.
    pub fn last_failure(&self) -> Option<String> {
        self.last_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn passed(&self, failure: Option<String>) {
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Adds the metrics to `registry`.
    pub fn register(&self, registry: &mut Registry) {
        let prefix = |name: &str| format!("webhook_controller_{name}");
        let failures = self.failures.clone();
        registry.register(prefix("pass_failures"), "Passes that failed", failures);
        let last = self.last_success.clone();
        let name = prefix("last_success_timestamp_seconds");
        registry.register(name, "When a pass last succeeded", last);
        let dropped = self.dropped.clone();
        let help = "Webhooks left out because their path has no handler";
        registry.register(prefix("dropped_webhooks"), help, dropped);
    }
}

/// Repeats the pass.
pub struct Keeper<A> {
    /// The API server.
    pub api: A,
    /// What a pass works on.
    pub settings: Settings,
    /// Where new certificates are served.
    pub tls: Arc<Tls>,
    /// Any number that differs between replicas, so that their passes do not coincide.
    pub jitter: u64,
    /// How the passes went.
    pub progress: Progress,
}

impl<A: Api> Keeper<A> {
    /// Passes every 45 to 55 s, so that whatever is amiss is in shape again within a minute even if keys have to be
    /// made; sooner after a failure. Ends when `stop` turns true or its sender is dropped.
    ///
    /// `first_success` is told once when everything was in shape for the first time and is being served.
    pub async fn keep(self, mut stop: watch::Receiver<bool>, first_success: oneshot::Sender<()>) {
        let mut first_success = Some(first_success);
        let mut wishes = self
            .settings
            .conditional
            .as_ref()
            .map(|(_, wishes)| wishes.clone());
        let period = Duration::from_secs(45) + Duration::from_millis(self.jitter % 10_000);
        let mut failures = 0;
        loop {
            if let Some(wishes) = &mut wishes {
                wishes.mark_unchanged();
            }
            let pause = match self.pass().await {
                Ok(()) => {
                    failures = 0;
                    self.progress.passed(None);
                    if let Some(first) = first_success.take() {
                        // Nobody may be waiting any more.
                        let _ = first.send(());
                    }
                    period
                }
                Err(error) => {
                    let pause = self.failed(&error, failures);
                    failures += 1;
                    pause
                }
            };
            let between = async {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    pause = self.meanwhile(&mut wishes) => tokio::time::sleep(pause).await,
                }
            };
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                () = between => {}
            }
        }
    }

    /// Does as is wished until that fails; returns the pause before the next pass.
    async fn meanwhile(&self, wishes: &mut Option<watch::Receiver<Presence>>) -> Duration {
        let Some(wishes) = wishes else {
            return std::future::pending().await;
        };
        loop {
            if wishes.changed().await.is_err() {
                // Nobody wishes anything any more.
                return std::future::pending().await;
            }
            if let Err(error) = self.fulfil().await {
                return self.failed(&error, 0);
            }
        }
    }

    /// Puts the webhook that comes and goes where it is wanted. The certificate is looked at again first: a replica that
    /// made another one has had it trusted already, and the CA that is served here would distrust it.
    async fn fulfil(&self) -> Result<(), Error> {
        let served = self.tls.pair();
        if served.is_none() || self.settings.source == Source::External {
            // Without a certificate: the next pass makes one, and does this.
            return Ok(());
        }
        let served_ca = served.as_ref().map(|pair| pair.ca_pem.clone());
        let pair = obtain(&self.api, &self.settings, served_ca, Timestamp::now()).await?;
        if served.as_ref() != Some(&pair) {
            return self.pass().await;
        }
        for (phase, name) in &self.settings.configurations {
            if *phase == Phase::Mutating {
                configure(&self.api, &self.settings, &pair, *phase, name).await?;
            }
        }
        Ok(())
    }

    /// Notes a failure; returns how long to wait after it.
    fn failed(&self, error: &Error, failures: u32) -> Duration {
        tracing::warn!(%error, "webhook pass failed");
        self.progress.failures.inc();
        self.progress.passed(Some(error.to_string()));
        backoff(failures)
    }

    async fn pass(&self) -> Result<(), Error> {
        let now = Timestamp::now();
        let served = self.tls.pair();
        let outcome = run_once(&self.api, &self.settings, served.as_ref(), now).await?;
        if served.as_ref() != Some(&outcome.pair) {
            self.tls.swap(outcome.pair)?;
            tracing::info!("serving a new certificate");
        }
        self.progress.dropped.set(outcome.dropped.len() as i64);
        self.progress.last_success.set(now.as_second());
        Ok(())
    }
}

/// The pause after a failure that follows `failures` others: 1 s, doubled up to 30 s.
fn backoff(failures: u32) -> Duration {
    Duration::from_secs(1 << failures.min(5)).min(Duration::from_secs(30))
}

#[cfg(test)]
mod tests;
