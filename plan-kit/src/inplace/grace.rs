//! The change that a pod out of service waits for: it gets its grace period first, and the new images afterwards.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use kruise_api::names::{INPLACE_GRACE, INPLACE_GRACE_LEGACY, REVISION_HASH};
use kruise_views::PodView;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{batch, diff::Change, resources::Resize};
use crate::injected::is_injected;

/// The annotation, in the wire's order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Grace {
    pub(super) revision: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    container_images: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    container_ref_metadata: BTreeMap<String, Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    container_resources: BTreeMap<String, Value>,
    /// Base64 of a strategic merge patch of `ObjectMeta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    meta_data_patch: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    update_env_from_metadata: bool,
    #[serde(skip_serializing_if = "is_zero")]
    #[allow(clippy::struct_field_names, reason = "the name on the wire")]
    pub(super) grace_seconds: i32,
}

// Serde passes references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &i32) -> bool {
    *value == 0
}

impl Grace {
    /// Holds a change back.
    pub(super) fn of(change: &Change, revision: &str, seconds: i32) -> Self {
        let mut read = change.read.clone();
        read.values_mut().for_each(batch::as_object_meta);
        let has_metadata = change.metadata.as_object().is_some_and(|patch| !patch.is_empty());
        Self {
            revision: revision.to_owned(),
            container_images: change.images.clone(),
            container_ref_metadata: read,
            container_resources: change
                .resources
                .iter()
                .map(|(name, resize)| (name.clone(), resize.amounts.clone()))
                .collect(),
            meta_data_patch: has_metadata.then(|| STANDARD.encode(change.metadata.to_string())),
            update_env_from_metadata: !change.read.is_empty(),
            grace_seconds: seconds,
        }
    }

    /// Is the change a step to the revision that the label of the pod names?
    pub(super) fn is_of_revision_of(&self, pod: &PodView) -> bool {
        let label = pod.labels.get(REVISION_HASH).unwrap_or_default();
        go_compat::revision::label_matches_revision(label, &self.revision)
    }

    /// The change that was held back. A patch that would remove all labels or annotations at once is not what its
    /// writer meant: keys are removed one by one, or not at all.
    pub(super) fn change(&self) -> Result<Change, String> {
        let mut metadata = json!({});
        if let Some(text) = &self.meta_data_patch {
            let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
            metadata = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        }
        if let Some(patch) = metadata.as_object_mut() {
            patch.retain(|_, value| !value.is_null());
        }
        Ok(Change {
            images: self.container_images.clone(),
            read: self.container_ref_metadata.clone(),
            resources: self
                .container_resources
                .iter()
                .map(|(name, amounts)| (name.clone(), Resize::recorded(amounts.clone())))
                .collect(),
            metadata,
            gives_back: false,
        })
    }
}

/// The annotation on a pod: `Ok(None)` without one, `Err` with the parser's words.
pub(super) fn read(pod: &PodView) -> Result<Option<Grace>, String> {
    let text = pod
        .annotations
        .get(INPLACE_GRACE)
        .or_else(|| pod.annotations.get(INPLACE_GRACE_LEGACY))
        .filter(|text| !text.is_empty());
    text.map(|text| serde_json::from_str(text).map_err(|error| error.to_string()))
        .transpose()
}

/// How long a grace period that began at this stamp still runs. Stamps have no fractions, so a second more is waited:
/// never less than was asked for.
pub(super) fn left(since: Option<&str>, seconds: i32, now: Timestamp) -> Duration {
    if is_injected("GraceIgnored") {
        return Duration::ZERO;
    }
    let Some(since) = since.and_then(|text| text.parse::<Timestamp>().ok()) else {
        return Duration::ZERO;
    };
    let due = since
        .as_second()
        .saturating_add(i64::from(seconds))
        .saturating_add(1);
    let left = due.saturating_mul(1000).saturating_sub(now.as_millisecond());
    Duration::from_millis(u64::try_from(left).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::{Grace, left};
    use crate::inplace::{Change, Resize};

    #[test]
    fn what_is_held_back_comes_out_as_it_went_in_and_reads_as_published() {
        let change = Change {
            images: [("main".into(), "web:2".into())].into(),
            read: [("main".into(), json!({"annotations": {"config": "v2"}}))].into(),
            resources: [("main".into(), Resize::recorded(json!({"limits": {"cpu": "2"}})))].into(),
            metadata: json!({"labels": {"tier": null}}),
            ..Change::default()
        };
        let grace = Grace::of(&change, "web-abc", 10);
        let text = serde_json::to_string(&grace).unwrap();
        assert_eq!(
            text,
            r#"{"revision":"web-abc","containerImages":{"main":"web:2"},"containerRefMetadata":{"main":{"annotations":{"config":"v2"},"creationTimestamp":null}},"containerResources":{"main":{"limits":{"cpu":"2"}}},"metaDataPatch":"eyJsYWJlbHMiOnsidGllciI6bnVsbH19","updateEnvFromMetadata":true,"graceSeconds":10}"#
        );
        let read: Grace = serde_json::from_str(&text).unwrap();
        let back = read.change().unwrap();
        assert_eq!((back.images, back.metadata), (change.images, change.metadata));
        assert_eq!(back.resources, change.resources);
        assert_eq!(back.read["main"]["annotations"], json!({"config": "v2"}));
    }

    #[test]
    fn a_held_back_patch_never_removes_all_annotations_at_once() {
        let grace = Grace {
            meta_data_patch: Some("eyJhbm5vdGF0aW9ucyI6bnVsbH0=".into()),
            ..Grace::default()
        };
        assert_eq!(grace.change().unwrap().metadata, json!({}));
        let garbage = Grace {
            meta_data_patch: Some("%".into()),
            ..Grace::default()
        };
        assert!(garbage.change().is_err());
    }

    #[test]
    fn a_grace_period_is_never_shorter_than_asked_for() {
        let at = |text: &str| text.parse().unwrap();
        let since = Some("2026-01-01T00:00:00Z");
        assert_eq!(
            left(since, 10, at("2026-01-01T00:00:10.5Z")),
            Duration::from_millis(500)
        );
        assert_eq!(left(since, 10, at("2026-01-01T00:00:11Z")), Duration::ZERO);
        assert_eq!(left(None, 10, at("2026-01-01T00:00:00Z")), Duration::ZERO);
        assert_eq!(
            left(since, i32::MAX, at("2026-01-01T00:00:00Z")).as_secs(),
            2_147_483_648
        );
    }
}
