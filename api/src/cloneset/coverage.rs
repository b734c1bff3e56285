//! What a CloneSet may ask for and this build does not act on yet.

use super::CloneSetSpec;

/// The first such field, if the set asks for one. Such a set is accepted, and its pods are not
/// created, deleted or updated, rather than wrongly so.
pub fn unsupported(spec: &CloneSetSpec) -> Option<&'static str> {
    let rolling = spec.update_strategy.rolling_update.as_ref();
    let in_place = rolling.and_then(|rolling| rolling.in_place_update_strategy.as_ref());
    if !spec.volume_claim_templates.is_empty() {
        Some("volumeClaimTemplates")
    } else if in_place.is_some_and(|strategy| strategy.grace_period_seconds > 0) {
        Some("inPlaceUpdateStrategy.gracePeriodSeconds")
    } else {
        None
    }
}
