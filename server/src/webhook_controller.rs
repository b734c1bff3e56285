//! Reconciles the serving certificate, the webhook configurations and the conversion of the CRDs. It runs in every
//! replica, leader or not. Watches [report](Changes::report) the objects that somebody has changed, and each of them is
//! reconciled at once. When the desired match condition of a conditional webhook changes, that webhook is written at
//! once, too. Everything is reconciled every ten minutes, because certificates end.
//!
//! A reconcile writes only what differs, with the `resourceVersion` that it has read. If two replicas write at the same
//! time, one gets a conflict, reads again and finds nothing left to write. Configurations are written before a new
//! certificate is served: they trust the old CA too, so the API server can call at any moment. A certificate of a
//! new CA is served only when all API servers have read them.
//!
//! Configurations and definitions are reconciled side by side, a few at a time. One that cannot be reconciled does
//! not keep the others from it; the reconcile then fails.

use std::{collections::BTreeSet, future::poll_fn, sync::Arc, task::Poll, time::Duration};

use futures::{StreamExt as _, future::join_all, stream};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::{
    sync::{oneshot, watch},
    task::spawn_blocking,
    time::Instant,
};

use crate::{
    Error,
    cert_dir::CertDir,
    certs::{SecretDecision, Stored, reconcile_secret},
    changes::{Changes, Reconciled, Repairs},
    configuration::{self, Call, ConditionalWebhook, DesiredCondition, Endpoint, widening::widened},
    tls::{Pair, Tls},
};

mod progress;
mod rotation;

pub use crate::{configuration::Phase, error::ApiError};
pub use progress::Progress;
use rotation::Rotation;

/// Attempts at one object before a reconcile fails.
const ATTEMPTS: usize = 3;

/// Definitions that are reconciled at the same time.
const CONCURRENCY: usize = 8;

/// Least time between two reconciles of everything.
const PERIOD: Duration = Duration::from_mins(10);

/// The requests to the API server that a reconcile needs. Patches are JSON merge patches.
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
    /// Reads the version and the conversion of a CustomResourceDefinition; other members may be left out.
    fn get_crd(&self, name: &str) -> impl Future<Output = Result<Value, ApiError>> + Send;
    /// Patches a CustomResourceDefinition.
    fn patch_crd(&self, name: &str, patch: Value) -> impl Future<Output = Result<(), ApiError>> + Send;
}

/// Where certificates come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A Secret that all replicas share and renew.
    Secret,
    /// The certificate directory of each replica.
    Directory,
    /// A Secret that an external issuer writes. Configurations and CRDs are managed externally too, and only checked.
    External,
}

/// Input of a reconcile.
#[derive(Clone)]
pub struct Settings {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// Names of the webhook configurations. They must exist.
    pub configurations: Vec<(Phase, String)>,
    /// Names of CRDs that this server converts. Those that do not exist are skipped.
    pub crds: Vec<String>,
    /// Where the API server calls this server.
    pub endpoint: Endpoint,
    /// How long before its end a certificate is replaced.
    pub lead: Duration,
    /// Where certificates come from.
    pub source: Source,
    /// Where certificates are written.
    pub cert_dir: CertDir,
    /// True if a call has a handler.
    pub served: Arc<dyn Fn(&Call<'_>) -> bool + Send + Sync>,
    /// The conditional webhooks.
    pub conditionals: Vec<Conditional>,
}

/// A conditional webhook, and its desired match condition as it changes.
#[derive(Clone, Debug)]
pub struct Conditional {
    /// Which configurations it is in.
    pub phase: Phase,
    /// The webhook.
    pub webhook: ConditionalWebhook,
    /// Its match condition.
    pub desired: watch::Receiver<DesiredCondition>,
}

impl Settings {
    /// The conditional webhooks of these configurations, and their conditions now.
    fn desired_conditions(&self, phase: Phase) -> Vec<(&ConditionalWebhook, DesiredCondition)> {
        let of_phase = self.conditionals.iter().filter(|one| one.phase == phase);
        of_phase
            .map(|one| (&one.webhook, one.desired.borrow().clone()))
            .collect()
    }
}

/// Result of a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The certificate to serve.
    pub pair: Pair,
    /// Webhooks left out because their path has no handler.
    pub dropped: Vec<String>,
}

/// Reconciles once. `served` is the certificate that is served until then; other replicas may serve it longer, so
/// its CA stays trusted.
///
/// # Errors
/// Fails if an object cannot be read or written, or if all attempts at it end in a conflict. All others are reconciled.
pub async fn reconcile(
    api: &impl Api,
    settings: &Settings,
    served: Option<&Pair>,
    now: Timestamp,
) -> Result<Outcome, Error> {
    let served_ca = served.map(|pair| pair.ca_pem.clone());
    let pair = obtain(api, settings, served_ca, now).await?;
    let configurations = settings.configurations.iter();
    let configured = configurations.map(|(phase, name)| configure(api, settings, &pair, *phase, name));
    let definitions: Vec<_> = settings
        .crds
        .iter()
        .map(|name| convert(api, settings, &pair, name))
        .collect();
    let converted = stream::iter(definitions)
        .buffered(CONCURRENCY)
        .collect::<Vec<_>>();
    let (configured, converted) = tokio::join!(join_all(configured), converted);
    let mut dropped = Vec::new();
    for configured in configured {
        dropped.append(&mut configured?.dropped);
    }
    for converted in converted {
        converted?;
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

/// The pair of the shared Secret. If it is missing or about to expire, the first replica that sees this writes a
/// new one.
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
        // Generating keys takes long enough to delay other tasks of this thread.
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
            // Another replica wrote first, or the Secret was deleted: read again.
            Err(ApiError::Conflict | ApiError::NotFound) => {}
            Err(source) => return Err(failed(name, source)),
        }
    }
    Err(failed(name, ApiError::Conflict))
}

/// Result for one webhook configuration.
#[derive(Default)]
struct Configured {
    /// Names of the webhooks that are left out.
    dropped: Vec<String>,
    written: bool,
    /// When a widening of it ends next.
    until: Option<Timestamp>,
}

/// Reconciles one webhook configuration.
async fn configure(
    api: &impl Api,
    settings: &Settings,
    pair: &Pair,
    phase: Phase,
    name: &str,
) -> Result<Configured, Error> {
    for _ in 0..ATTEMPTS {
        let current = api.get_configuration(phase, name).await;
        let current = current.map_err(|source| match source {
            ApiError::NotFound => Error::NotInstalled(name.to_owned()),
            source => failed(name, source),
        })?;
        if settings.source == Source::External {
            let trusts = configuration::webhooks_trust(&current, &pair.ca_pem);
            return trusts
                .then(Configured::default)
                .ok_or_else(|| Error::Bundle(name.to_owned()));
        }
        let served = |call: &Call<'_>| (settings.served)(call);
        let desired = settings.desired_conditions(phase);
        let desired: Vec<configuration::Desired<'_>> = desired
            .iter()
            .map(|(conditional, desired)| (*conditional, desired, Timestamp::now()))
            .collect();
        let wanted = configuration::webhooks(&current, &pair.ca_pem, &settings.endpoint, served, &desired)?;
        let now = Timestamp::now();
        let ends = widened(&current).into_iter().map(|one| one.until);
        let configured = Configured {
            dropped: wanted.dropped,
            written: wanted.patch.is_some(),
            until: ends.filter(|until| *until > now).min(),
        };
        let Some(patch) = wanted.patch else {
            return Ok(configured);
        };
        match api.patch_configuration(phase, name, patch).await {
            Ok(()) => return Ok(configured),
            Err(ApiError::Conflict) => {}
            Err(source) => return Err(failed(name, source)),
        }
    }
    Err(failed(name, ApiError::Conflict))
}

/// Reconciles the conversion webhook of one CRD. True if it was written.
async fn convert(api: &impl Api, settings: &Settings, pair: &Pair, name: &str) -> Result<bool, Error> {
    for _ in 0..ATTEMPTS {
        let crd = match api.get_crd(name).await {
            Ok(crd) => crd,
            Err(ApiError::NotFound) => return Ok(false),
            Err(source) => return Err(failed(name, source)),
        };
        if settings.source == Source::External {
            let trusts = configuration::conversion_trusts(&crd, &pair.ca_pem);
            return trusts
                .then_some(false)
                .ok_or_else(|| Error::Bundle(name.to_owned()));
        }
        let Some(patch) = configuration::conversion(&crd, &pair.ca_pem, &settings.endpoint) else {
            return Ok(false);
        };
        match api.patch_crd(name, patch).await {
            Ok(()) => return Ok(true),
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

/// Reconciles what changes.
pub struct WebhookController<A> {
    /// The API server.
    pub api: A,
    /// Input of each reconcile.
    pub settings: Settings,
    /// Where new certificates are served.
    pub tls: Arc<Tls>,
    /// Reports of the watches.
    pub changes: Changes,
    /// A number that differs between replicas, so that they do not reconcile at the same time.
    pub jitter: u64,
    /// Results so far.
    pub progress: Progress,
}

impl<A: Api> WebhookController<A> {
    /// Reconciles everything at the start, after a failure and every ten minutes, and in between what changes. Ends
    /// when `stop` becomes true or its sender is dropped.
    ///
    /// Sends on `first_success` once, after the first reconcile that succeeds.
    pub async fn run(self, mut stop: watch::Receiver<bool>, first_success: oneshot::Sender<()>) {
        let mut first_success = Some(first_success);
        let rotation = Rotation::default();
        let mut repairs = Repairs::of(self.changes.clone());
        let mut conditionals = self.settings.conditionals.clone();
        let period = PERIOD + Duration::from_millis(self.jitter % 60_000);
        let mut failures = 0;
        loop {
            for one in &mut conditionals {
                one.desired.mark_unchanged();
            }
            let pause = match self.reconcile(&rotation).await {
                Ok(_) => {
                    failures = 0;
                    self.progress.finished(None);
                    if let Some(first) = first_success.take() {
                        // The receiver may have been dropped.
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
                    pause = self.follow(failures, &rotation, &mut conditionals, &mut repairs) => {
                        tokio::time::sleep(pause).await;
                    }
                }
            };
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                () = between => {}
            }
        }
    }

    /// Reconciles what changes until that fails. Returns the pause before the next reconcile of everything, which
    /// is the answer to any change after `failures`.
    async fn follow(
        &self,
        failures: u32,
        rotation: &Rotation,
        conditionals: &mut [Conditional],
        repairs: &mut Repairs,
    ) -> Duration {
        loop {
            let result = tokio::select! {
                phase = changed(conditionals) => self.write_conditions(phase, rotation).await,
                objects = repairs.due() => match failures {
                    0 => self.repair(objects, repairs, rotation).await,
                    _ => return Duration::ZERO,
                },
                () = rotation.due() => self.reconcile(rotation).await.map(drop),
            };
            if let Err(error) = result {
                return self.failed(&error, 0);
            }
        }
    }

    /// Reconciles these objects.
    async fn repair(
        &self,
        objects: BTreeSet<Reconciled>,
        repairs: &mut Repairs,
        rotation: &Rotation,
    ) -> Result<(), Error> {
        let Some(pair) = self.current_pair(rotation).await? else {
            return Ok(());
        };
        for object in objects {
            let settings = &self.settings;
            let written = match &object {
                // A change of the certificate is a change of everything, which was reconciled just now.
                Reconciled::Secret => false,
                Reconciled::Configuration(phase, name) => {
                    let configured = configure(&self.api, settings, &pair, *phase, name).await?;
                    if let Some(until) = configured.until {
                        let remains = until.duration_since(Timestamp::now()).unsigned_abs();
                        repairs.again(object.clone(), Instant::now() + remains);
                    }
                    configured.written
                }
                Reconciled::Definition(name) => convert(&self.api, settings, &pair, name).await?,
            };
            if written {
                tracing::info!(?object, "somebody changed it; repaired");
                repairs.repaired(object);
            }
        }
        Ok(())
    }

    /// The certificate that is stored and published. If it is another one than so far, everything is reconciled
    /// with it first. `None` before the first success, which registers everything.
    ///
    /// It is not always the one that is served. If another replica has written a new one, the configurations trust
    /// it already, and writing the CA that is served here would revoke that.
    async fn current_pair(&self, rotation: &Rotation) -> Result<Option<Pair>, Error> {
        let Some(served) = self.tls.pair() else {
            return Ok(None);
        };
        let served_ca = Some(served.ca_pem.clone());
        let pair = obtain(&self.api, &self.settings, served_ca, Timestamp::now()).await?;
        if served == pair || rotation.is_next(&pair) {
            return Ok(Some(pair));
        }
        self.reconcile(rotation).await.map(Some)
    }

    /// Writes the conditional webhooks of these configurations.
    async fn write_conditions(&self, of_phase: Phase, rotation: &Rotation) -> Result<(), Error> {
        if self.settings.source == Source::External {
            return Ok(());
        }
        let Some(pair) = self.current_pair(rotation).await? else {
            return Ok(());
        };
        for (phase, name) in &self.settings.configurations {
            if *phase == of_phase {
                configure(&self.api, &self.settings, &pair, *phase, name).await?;
            }
        }
        Ok(())
    }

    /// Counts a failure. Returns the pause after it.
    fn failed(&self, error: &Error, failures: u32) -> Duration {
        tracing::warn!(%error, "webhook pass failed");
        self.progress.failures.inc();
        self.progress.finished(Some(error.to_string()));
        backoff(failures)
    }

    /// Reconciles everything. Returns the certificate that is published then.
    async fn reconcile(&self, rotation: &Rotation) -> Result<Pair, Error> {
        let now = Timestamp::now();
        let served = self.tls.pair();
        let outcome = reconcile(&self.api, &self.settings, served.as_ref(), now).await?;
        let waits = rotation.waits(served.as_ref(), &outcome.pair);
        if served.as_ref() != Some(&outcome.pair) && !waits {
            self.tls.swap(outcome.pair.clone())?;
            tracing::info!("serving a new certificate");
        }
        self.progress.dropped.set(outcome.dropped.len() as i64);
        self.progress.last_success.set(now.as_second());
        Ok(outcome.pair)
    }
}

/// Resolves when a condition changes, with the configurations that it is in; never without one, or after their
/// senders were dropped.
async fn changed(conditionals: &mut [Conditional]) -> Phase {
    let mut changes: Vec<_> = conditionals
        .iter_mut()
        .map(|one| {
            let phase = one.phase;
            Box::pin(async move {
                if one.desired.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                phase
            })
        })
        .collect();
    poll_fn(|context| {
        let mut ready = changes.iter_mut().map(|change| change.as_mut().poll(context));
        ready.find(Poll::is_ready).unwrap_or(Poll::Pending)
    })
    .await
}

/// The pause after a failure that follows `failures` others: 1 s, doubled up to 30 s.
fn backoff(failures: u32) -> Duration {
    Duration::from_secs(1 << failures.min(5)).min(Duration::from_secs(30))
}

#[cfg(test)]
mod tests;
