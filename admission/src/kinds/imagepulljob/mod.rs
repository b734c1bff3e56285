//! ImagePullJobs, and what they have in common with ImageListPullJobs. Their versions say the same in the same places.
//!
//! The finalizer that OpenKruise's webhook puts on a new `v1alpha1` job is not: the controller adds it to the jobs that
//! need it.

pub(super) mod rules;

use serde_json::Value;

use super::{KindWebhooks, Scope};
use crate::{
    Options,
    json::{fill, made},
};

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    mutating: Some("mimagepulljob-v1beta1.kb.io"),
    validating: Some("vimagepulljob-v1beta1.kb.io"),
    codes: (400, 400),
    gate_of_new,
    defaults,
    rules: rules::job,
    changes: rules::job_changes,
    ..KindWebhooks::of(&kruise_api::imagepulljob::KIND)
};

/// The gate without which there are no new jobs.
pub(super) fn gate_of_new(options: Options) -> Option<&'static str> {
    match (options.daemon, options.pull_jobs) {
        (false, _) => Some("KruiseDaemon"),
        (true, false) => Some("ImagePullJobGate"),
        (true, true) => None,
    }
}

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
        fill(policy, "timeoutSeconds", rules::TIMEOUT_SECONDS);
        fill(policy, "backoffLimit", ATTEMPTS);
    }
}

#[cfg(test)]
mod tests;
