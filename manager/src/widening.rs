//! Widens the match condition of a webhook before an object that needs it is stored.
//!
//! A review that ends in [`Widening`] is answered only once API servers know the wider condition. How soon they
//! learn of it cannot be observed, so there is a fixed pause. What still slips through is found by the controller
//! of the object.

use std::time::Duration;

use kruise_admission::{
    manifests::{MUTATING, VALIDATING},
    table,
    widening::Widening,
};
use kruise_runtime::Client;
use kruise_server::{
    configuration::{
        ConditionalWebhook,
        widening::{Stored, Wanted, Widen, widen},
    },
    webhook_controller::{Api as _, ApiError, Phase},
};
use tokio::time::sleep;

use super::registrar::Registrar;

/// Attempts at the configuration, which other reviews and the leader write, too.
const ATTEMPTS: u32 = 20;

/// Pause after an attempt that somebody else's write has overtaken.
const PAUSE: Duration = Duration::from_millis(20);

/// Writes wider match conditions.
pub(super) struct Widener {
    registrar: Registrar,
    client: Client,
    webhooks: Vec<ConditionalWebhook>,
}

impl Widener {
    /// For these webhooks.
    pub(super) fn new(client: Client, webhooks: Vec<ConditionalWebhook>) -> Self {
        Self {
            registrar: Registrar(client.clone()),
            client,
            webhooks,
        }
    }

    /// Name of the configuration with the webhook.
    pub(super) fn configuration(widening: &Widening) -> &'static str {
        match widening.phase {
            table::Phase::Mutating => MUTATING,
            table::Phase::Validating => VALIDATING,
        }
    }

    /// Returns once the object may be stored.
    ///
    /// # Errors
    /// Fails if the configuration cannot be read or written.
    pub(super) async fn widen(&self, widening: &Widening) -> Result<(), ApiError> {
        let Some(webhook) = self.webhooks.iter().find(|one| one.name == widening.webhook) else {
            return Ok(());
        };
        let expressions = widening.conditions();
        let wanted = Wanted {
            expressions: &expressions,
            is_within: &|condition| widening.is_within(condition),
            object: &Stored {
                kind: widening.object.kind.clone(),
                namespace: widening.object.namespace.clone(),
                name: widening.object.name.clone(),
                uid: widening.object.uid.clone(),
                generation: widening.object.generation,
            },
        };
        let phase = match widening.phase {
            table::Phase::Mutating => Phase::Mutating,
            table::Phase::Validating => Phase::Validating,
        };
        let configuration = Self::configuration(widening);
        for attempt in 1..=ATTEMPTS {
            let current = self.registrar.get_configuration(phase, configuration).await?;
            let pause = match widen(&current, webhook, &wanted, self.client.now()) {
                Widen::Wait(pause) => pause,
                Widen::Write(patch, pause) => {
                    let written = self.registrar.patch_configuration(phase, configuration, patch);
                    match written.await {
                        Ok(()) => pause,
                        Err(ApiError::Conflict) => {
                            sleep(PAUSE * attempt).await;
                            continue;
                        }
                        Err(error) => return Err(error),
                    }
                }
            };
            sleep(pause).await;
            return Ok(());
        }
        Err(ApiError::Conflict)
    }
}

#[cfg(test)]
mod tests;
