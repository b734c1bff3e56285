//! What a CloneSet may ask for and this build does not act on yet.

use super::CloneSetSpec;

/// The first such field, if the set asks for one. Such a set is accepted, and its pods are not
/// created, deleted or updated, rather than wrongly so.
pub fn unsupported(spec: &CloneSetSpec) -> Option<&'static str> {
    (!spec.volume_claim_templates.is_empty()).then_some("volumeClaimTemplates")
}
