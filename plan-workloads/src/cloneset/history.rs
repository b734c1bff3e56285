//! What a CloneSet says about its revisions.

use kruise_api::{cloneset::CloneSet, names::CONTROLLER_HASH};
use kruise_plan_kit::history::{Reported, Specified};

/// What it says. `pulls_ahead`: revisions carry labels about their images.
pub(super) fn specified<'a>(
    set: &'a CloneSet,
    claims_hash: &'a dyn Fn() -> String,
    pulls_ahead: bool,
) -> Specified<'a> {
    let status = &set.status;
    Specified {
        template: &set.spec.template,
        annotations: &set.metadata.annotations,
        claims_hash: Some(claims_hash),
        collision_count: status.collision_count,
        reported: Reported {
            name: &status.update_revision,
            is_current: set.metadata.generation > 0 && status.observed_generation == set.metadata.generation,
        },
        current: &status.current_revision,
        hash_label: CONTROLLER_HASH,
        pulls_ahead,
    }
}
