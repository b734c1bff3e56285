//! CloneSets, in the version of the request.

mod defaults;
mod validate;
mod version;

use kruise_api::cloneset::CloneSet;

use super::{KindWebhooks, judged, parts};

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    mutating: Some("mcloneset.kb.io"),
    validating: Some("vcloneset.kb.io"),
    deletions: true,
    parts: &[parts::TEMPLATE, parts::CLAIMS],
    decode: |object| {
        CloneSet::from_json(object)
            .map(drop)
            .map_err(|error| error.to_string())
    },
    defaults: defaults::apply,
    rules: validate::rules,
    changes: validate::changes,
    others: validate::pods_to_delete::check,
    templates: judged::of_workload,
    advice: validate::advice,
    ..KindWebhooks::of(&kruise_api::cloneset::KIND)
};

pub(crate) use self::validate::strategy;
