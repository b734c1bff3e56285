//! ImagePullJobs, and what they have in common with ImageListPullJobs. Their versions say the same in the same places.
//!
//! The finalizer that OpenKruise's webhook puts on a new `v1alpha1` job is not: who removes it is the controller, and a
//! job that waits for a controller which does not run could never be deleted.

mod reference;
pub(super) mod rules;

use serde_json::Value;

use super::{KindWebhooks, Scope};
use crate::json::{fill, made};

pub(super) const WEBHOOKS: KindWebhooks = KindWebhooks {
    mutating: Some("mimagepulljob-v1beta1.kb.io"),
    validating: Some("vimagepulljob-v1beta1.kb.io"),
    codes: (400, 400),
    defaults,
    rules: rules::job,
    changes: rules::job_changes,
    ..KindWebhooks::of(&kruise_api::imagepulljob::KIND)
};

const TIMEOUT_SECONDS: i64 = 600;
const ATTEMPTS: i64 = 3;

fn defaults(object: &mut Value, scope: &Scope<'_>) {
    common_defaults(object, scope);
    if let Some(spec) = made(object, "spec") {
        fill(spec, "imagePullPolicy", "IfNotPresent");
    }
}

/// Those of both kinds.
pub(super) fn common_defaults(object: &mut Value, _: &Scope<'_>) {
    let Some(spec) = made(object, "spec") else {
        return;
    };
    if let Some(policy) = made(spec, "completionPolicy") {
        fill(policy, "type", "Always");
    }
    if let Some(policy) = made(spec, "pullPolicy") {
        fill(policy, "timeoutSeconds", TIMEOUT_SECONDS);
        fill(policy, "backoffLimit", ATTEMPTS);
    }
}

#[cfg(test)]
mod tests;
