//! SidecarSets, in the version of the request.

mod defaults;
mod hashes;
mod validate;

use serde_json::Value;

use super::{KindWebhooks, parts};

pub(super) const WEBHOOKS: KindWebhooks = KindWebhooks {
    mutating: Some("msidecarset.kb.io"),
    validating: Some("vsidecarset.kb.io"),
    parts: &[
        parts::part("spec.containers[]", "core/v1.Container"),
        parts::part("spec.initContainers[]", "core/v1.Container"),
        parts::part("spec.volumes[]", "core/v1.Volume"),
    ],
    defaults: |set, _| complete(set),
    rules: |errors, set, _| validate::rules(errors, set),
    changes: |errors, new, old, _| validate::changes(errors, new, old),
    others: validate::others::check,
    advice: |set, _| validate::containers::hosts(set),
    warnings: validate::others::warnings,
    ..KindWebhooks::of(&kruise_api::sidecarset::KIND)
};

/// Fills in defaults and the hashes of the containers, as the webhook does.
pub fn complete(set: &mut Value) {
    defaults::apply(set);
    hashes::write(set);
}
