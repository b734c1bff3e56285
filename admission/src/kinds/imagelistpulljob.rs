//! ImageListPullJobs, each a list of images. They leave the policy of pulls to the ImagePullJobs that are made of them.

use super::KindWebhooks;
use super::imagepulljob::{common_defaults, gate_of_new, rules};

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    mutating: Some("mimagelistpulljob-v1beta1.kb.io"),
    validating: Some("vimagelistpulljob-v1beta1.kb.io"),
    codes: (400, 400),
    gate_of_new,
    defaults: common_defaults,
    rules: rules::list,
    ..KindWebhooks::of(&kruise_api::imagelistpulljob::KIND)
};
