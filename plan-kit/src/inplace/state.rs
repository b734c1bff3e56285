//! The annotation with the progress of an in-place update. Key order is the wire's.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::names::{INPLACE_STATE, INPLACE_STATE_LEGACY};
use kruise_views::PodView;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Progress of one update of one pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateState {
    /// Revision the pod is on its way to.
    pub revision: String,
    /// When it set out, RFC 3339.
    pub update_timestamp: Option<String>,
    /// What each changed container ran when it was changed.
    pub last_container_statuses: Option<BTreeMap<String, ImageStatus>>,
    /// The environment reads changed metadata.
    #[serde(skip_serializing_if = "is_false")]
    pub update_env_from_metadata: bool,
    /// Resources change.
    #[serde(skip_serializing_if = "is_false")]
    pub update_resources: bool,
    /// Images change.
    #[serde(skip_serializing_if = "is_false")]
    pub update_images: bool,
    /// Images of later batches.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub next_container_images: BTreeMap<String, Value>,
    /// Metadata of later batches.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub next_container_ref_metadata: BTreeMap<String, Value>,
    /// Resources of later batches.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub next_container_resources: BTreeMap<String, Value>,
    /// What must hold before the next batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_check_before_next: Option<Value>,
    /// Batches so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub container_batches_record: Vec<Batch>,
    /// Only resources change, which an update that broke off had taken. OpenKruise neither writes nor reads it.
    #[serde(skip_serializing_if = "is_false")]
    pub given_back: bool,
}

/// What a container ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageStatus {
    /// Digest or id of the image.
    #[serde(rename = "imageID", skip_serializing_if = "String::is_empty")]
    pub image_id: String,
    /// Id of the container. OpenKruise neither writes nor reads it; it shows a restart under an unchanged image id.
    #[serde(rename = "containerID", skip_serializing_if = "String::is_empty")]
    pub container_id: String,
}

/// Containers changed together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Batch {
    /// When, RFC 3339.
    pub timestamp: Option<String>,
    /// Which, sorted.
    pub containers: Vec<String>,
}

impl UpdateState {
    /// Is a later batch still to be written?
    pub fn has_next_batch(&self) -> bool {
        !(self.next_container_images.is_empty()
            && self.next_container_ref_metadata.is_empty()
            && self.next_container_resources.is_empty())
    }

    /// Was the image of a container written, or is it going to be?
    pub fn writes(&self, container: &str) -> bool {
        self.batches_of(container).next().is_some()
            || self.next_container_images.contains_key(container)
            || self
                .last_container_statuses
                .as_ref()
                .is_some_and(|statuses| statuses.contains_key(container))
    }

    /// When a container was changed last, if it was.
    pub fn written_at(&self, container: &str) -> Option<Timestamp> {
        let times = self
            .batches_of(container)
            .filter_map(|batch| batch.timestamp.as_deref());
        times.filter_map(|time| time.parse().ok()).max()
    }

    fn batches_of(&self, container: &str) -> impl Iterator<Item = &Batch> {
        let all = self.container_batches_record.iter();
        all.filter(move |batch| batch.containers.iter().any(|name| name == container))
    }

    /// Forgets what batches there were and are to be.
    pub(super) fn clear_batches(&mut self) {
        self.next_container_images.clear();
        self.next_container_ref_metadata.clear();
        self.next_container_resources.clear();
        self.pre_check_before_next = None;
        self.container_batches_record.clear();
    }

    /// Waits also for what an earlier update still waits for.
    pub(super) fn take_over(&mut self, earlier: Self) {
        let mut statuses = earlier.last_container_statuses.unwrap_or_default();
        statuses.extend(self.last_container_statuses.take().unwrap_or_default());
        self.last_container_statuses = (!statuses.is_empty()).then_some(statuses);
        self.update_env_from_metadata |= earlier.update_env_from_metadata;
        self.update_images |= earlier.update_images;
        self.update_resources |= earlier.update_resources;
    }
}

// Serde passes references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !*value
}

/// The state on a pod: `Ok(None)` if it was never updated in place, `Err` with the parser's words if the annotation is
/// not what it should be.
pub fn read_state(pod: &PodView) -> Result<Option<UpdateState>, String> {
    let text = pod
        .annotations
        .get(INPLACE_STATE)
        .or_else(|| pod.annotations.get(INPLACE_STATE_LEGACY));
    text.map(|text| serde_json::from_str(text).map_err(|error| error.to_string()))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::{Batch, ImageStatus, UpdateState};

    #[test]
    fn a_stored_state_reads_and_writes_back_byte_for_byte() {
        let stored = r#"{"revision":"canary-bfb8665b7","updateTimestamp":"2026-11-21T03:54:25Z","lastContainerStatuses":{"main":{"imageID":"fake://nginx:1.25"}},"updateImages":true,"containerBatchesRecord":[{"timestamp":"2026-11-21T03:54:25Z","containers":["main"]}]}"#;
        let state: UpdateState = serde_json::from_str(stored).unwrap();
        assert_eq!(serde_json::to_string(&state).unwrap(), stored);
    }

    #[test]
    fn an_empty_map_of_statuses_is_written_as_null() {
        let state = UpdateState {
            revision: "a-b".into(),
            ..UpdateState::default()
        };
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(
            text,
            r#"{"revision":"a-b","updateTimestamp":null,"lastContainerStatuses":null}"#
        );
    }

    #[test]
    fn a_batch_names_its_containers() {
        let batch = Batch {
            timestamp: Some("t".into()),
            containers: vec!["a".into()],
        };
        assert_eq!(
            serde_json::to_string(&batch).unwrap(),
            r#"{"timestamp":"t","containers":["a"]}"#
        );
        assert_eq!(serde_json::to_string(&ImageStatus::default()).unwrap(), "{}");
    }
}
