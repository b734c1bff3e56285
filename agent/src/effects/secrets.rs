//! Reads pull secrets, one by one, when a pull needs them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image_credentials::{DockerConfig, SecretError, of_secret};
use kruise_agent_core::{SecretRef, SecretState};
use kruise_api::meta::{StringMap, null_as_default};
use kruise_api::names::imagepulljob::SECRET_REFERENCES;
use kruise_api::path::segment;
use kruise_runtime::{ApiError, Client};
use serde::Deserialize;
use tokio::time::Instant;

/// How long one read serves all attempts. No attempt follows another one of its tag as soon.
const FRESH: Duration = Duration::from_millis(900);

/// What was read of a secret.
pub(crate) struct Secret {
    pub(crate) state: SecretState,
    config: Result<Option<DockerConfig>, SecretError>,
}

impl Secret {
    /// Its credentials.
    ///
    /// # Errors
    /// It holds none although its type says so.
    pub(crate) fn config(&self) -> Result<DockerConfig, &SecretError> {
        let config = self.config.as_ref();
        config.map(|config| config.clone().unwrap_or_default())
    }

    fn without_config(state: SecretState) -> Self {
        Self {
            state,
            config: Ok(None),
        }
    }
}

/// A secret that is being read, or was, for as long as an attempt has it.
type Slot = tokio::sync::Mutex<Option<(Instant, Weak<Secret>)>>;

/// Reads secrets. Attempts that need the same one at the same time share a request.
pub(crate) struct Secrets {
    client: Client,
    known: Mutex<BTreeMap<SecretRef, Arc<Slot>>>,
}

impl Secrets {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
        }
    }

    /// The secret as it is now, or was less than a second ago.
    pub(crate) async fn read(&self, of: &SecretRef) -> Arc<Secret> {
        let slot = self.slot(of);
        let mut kept = slot.lock().await;
        if let Some(secret) = fresh(kept.as_ref()) {
            return secret;
        }
        let secret = Arc::new(self.get(of).await);
        *kept = Some((Instant::now(), Arc::downgrade(&secret)));
        secret
    }

    fn slot(&self, of: &SecretRef) -> Arc<Slot> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_needed = |slot: &Slot| slot.try_lock().is_ok_and(|kept| fresh(kept.as_ref()).is_some());
        known.retain(|_, slot| Arc::strong_count(slot) > 1 || is_needed(slot));
        Arc::clone(known.entry(of.clone()).or_default())
    }

    async fn get(&self, of: &SecretRef) -> Secret {
        // From the cache of the API server, which costs it little.
        let path = format!(
            "/api/v1/namespaces/{}/secrets/{}?resourceVersion=0",
            segment(&of.namespace),
            segment(&of.name)
        );
        match self.client.get::<Wire>(&path).await {
            Ok(wire) => wire.read(of),
            Err(error) => Secret::without_config(of_error(&error)),
        }
    }
}

/// A secret that does not exist, or that the agent has no right to, is one to do without. After anything else it
/// may exist.
fn of_error(error: &ApiError) -> SecretState {
    let problem = || error.to_string().into();
    match error.status().map(|status| status.code) {
        Some(404) => SecretState::Missing,
        Some(403) => SecretState::Forbidden(problem()),
        _ => SecretState::Unreadable(problem()),
    }
}

/// What was read just now, if somebody still has it.
fn fresh(kept: Option<&(Instant, Weak<Secret>)>) -> Option<Arc<Secret>> {
    let (at, secret) = kept?;
    secret.upgrade().filter(|_| at.elapsed() < FRESH)
}

#[derive(Deserialize)]
struct Wire {
    metadata: Metadata,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default, deserialize_with = "null_as_default")]
    data: StringMap,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    resource_version: Box<str>,
    #[serde(default, deserialize_with = "null_as_default")]
    annotations: StringMap,
}

impl Wire {
    fn read(self, of: &SecretRef) -> Secret {
        let Self { metadata, kind, data } = self;
        let decode = |key: &String| Some((key.clone(), STANDARD.decode(data.get(key)?).ok()?));
        let decoded: BTreeMap<String, Vec<u8>> = data.keys().filter_map(decode).collect();
        Secret {
            config: of_secret(&of.to_string(), &kind, |key| decoded.get(key).map(Vec::as_slice)),
            state: SecretState::Found {
                version: metadata.resource_version,
                references: metadata
                    .annotations
                    .get(SECRET_REFERENCES)
                    .map(|text| text.as_str().into()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_not_taken_for_what_does_not_exist() {
        let refused = |code| ApiError::refused(code, br#"{"message":"why"}"#, None);
        let unreadable = |text: &str| SecretState::Unreadable(text.into());
        let timeout = ApiError::Timeout(Duration::from_secs(30));
        for (error, state) in [
            (refused(404), SecretState::Missing),
            (refused(403), SecretState::Forbidden("why".into())),
            // The token of the agent has expired.
            (refused(401), unreadable("why")),
            (refused(429), unreadable("why")),
            (refused(500), unreadable("why")),
            (refused(503), unreadable("why")),
            (timeout, unreadable("no answer within 30s")),
            (
                ApiError::Transport("refused".into()),
                unreadable("connection to the API server failed: refused"),
            ),
        ] {
            assert_eq!(of_error(&error), state, "{error:?}");
        }
    }
}
