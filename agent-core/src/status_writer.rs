//! Writes of the NodeImage's status: what differs from what is stored, not too often.
//!
//! The agent and a manager both write this status. A patch names the members that change, and the tags of the images that
//! change. It carries the UID, so that the status of a node that is gone does not reach its successor. It carries no version:
//! the agent knows best how its pulls go, and what a manager has written meanwhile of another image stays.

use std::time::Duration;

use jiff::Timestamp;
use kube_cache::Version;
use kube_queue::Bucket;
use serde_json::{Map, Value, json};

use crate::call::{Call, after};
use crate::node_image::{NodeImageStatus, NodeImageView};
use crate::{Effect, WriteError};

/// From a change to the write of it, so that changes at the same time are one write.
const COALESCE: Duration = Duration::from_millis(200);
/// Writes are this far apart, after some that are not.
const INTERVAL: Duration = Duration::from_secs(2);
const BURST: u32 = 5;

/// The writer of the status.
#[derive(Clone, Debug)]
pub(super) struct StatusWriter {
    /// The status that is stored, as far as is known.
    stored: Option<NodeImageStatus>,
    /// The version of the object that has it.
    version: Option<Version>,
    /// UID of the object.
    uid: Box<str>,
    /// The status that is being written, and the UID of the object.
    writing: Option<(Box<str>, NodeImageStatus)>,
    /// Since when something may differ.
    changed: Option<Timestamp>,
    /// When a write that failed is tried again.
    retry: Option<Timestamp>,
    failures: u32,
    bucket: Bucket,
}

impl Default for StatusWriter {
    fn default() -> Self {
        Self {
            stored: None,
            version: None,
            uid: Box::default(),
            writing: None,
            changed: None,
            retry: None,
            failures: 0,
            bucket: Bucket::new(INTERVAL, BURST),
        }
    }
}

impl StatusWriter {
    /// Something may differ from what is stored.
    pub(super) fn touch(&mut self, now: Timestamp) {
        self.changed.get_or_insert(now);
    }

    /// There is no object any more. Writes stay as far apart as before, and one at a time.
    pub(super) fn forget(&mut self) {
        *self = Self {
            bucket: self.bucket.clone(),
            writing: self.writing.take(),
            ..Self::default()
        };
    }

    /// An object that is stored. One from before the last write says nothing new.
    pub(super) fn observe(&mut self, view: &NodeImageView, now: Timestamp) {
        let version = Version::of(view);
        if version.is_some() && version < self.version {
            return;
        }
        self.version = version;
        self.uid.clone_from(&view.uid);
        if self.stored != view.status {
            self.stored.clone_from(&view.status);
            self.touch(now);
        }
    }

    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.next_timer().is_some_and(|due| due <= now)
    }

    pub(super) fn next_timer(&self) -> Option<Timestamp> {
        if self.writing.is_some() {
            return None;
        }
        let ready = after(self.changed?, COALESCE);
        let ready = self.retry.map_or(ready, |retry| retry.max(ready));
        let wait = self.bucket.clone().reserve(since_epoch(ready));
        Some(after(ready, wait))
    }

    /// Writes what differs, if anything does.
    pub(super) fn write(&mut self, object: &NodeImageView, status: NodeImageStatus, call: &mut Call<'_>) {
        self.changed = None;
        self.retry = None;
        let patch = difference(self.stored.as_ref(), &status);
        if patch.is_empty() {
            return;
        }
        self.bucket.reserve(since_epoch(call.now));
        self.writing = Some((object.uid.clone(), status));
        let patch = json!({"metadata": {"uid": object.uid}, "status": patch});
        call.emit(Effect::PatchNodeImageStatus {
            name: object.name.clone(),
            patch,
        });
    }

    /// A write has ended. What became of an object that is gone does not matter.
    pub(super) fn written(&mut self, result: Result<Box<str>, WriteError>, call: &mut Call<'_>) {
        let Some((_, written)) = self.writing.take().filter(|(uid, _)| *uid == self.uid) else {
            return;
        };
        match result {
            Ok(version) => {
                self.failures = 0;
                let version = version.parse().ok();
                if self.version.is_none() || version.is_none() || self.version < version {
                    self.version = version;
                    self.stored = Some(written);
                }
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                self.retry = Some(call.retry_of_write(self.failures));
                self.touch(call.now);
                if let WriteError::Failed(problem) = error {
                    call.warn(format!(
                        "the status of the NodeImage could not be written: {problem}"
                    ));
                }
            }
        }
    }
}

/// Writes are counted from a fixed time.
fn since_epoch(time: Timestamp) -> Duration {
    Duration::try_from(time.as_duration()).unwrap_or_default()
}

/// The members of a merge patch that makes one status the other.
fn difference(before: Option<&NodeImageStatus>, after: &NodeImageStatus) -> Map<String, Value> {
    let mut patch = Map::new();
    let none = NodeImageStatus::default();
    let is_first = before.is_none();
    let before = before.unwrap_or(&none);
    let counts = [
        ("desired", before.desired, after.desired),
        ("succeeded", before.succeeded, after.succeeded),
        ("failed", before.failed, after.failed),
        ("pulling", before.pulling, after.pulling),
        ("waiting", before.waiting, after.waiting),
    ];
    let mut images = Map::new();
    for (name, image) in &after.image_statuses {
        if before.image_statuses.get(name) != Some(image) {
            images.insert(name.to_string(), json!(image));
        }
    }
    for name in before.image_statuses.keys() {
        if !after.image_statuses.contains_key(name) {
            images.insert(name.to_string(), Value::Null);
        }
    }
    if !images.is_empty() {
        patch.insert("imageStatuses".into(), images.into());
    }
    if before.first_sync_status != after.first_sync_status && after.first_sync_status.is_some() {
        patch.insert("firstSyncStatus".into(), json!(after.first_sync_status));
    }
    // A definition asks for all counts of a status that is written for the first time.
    let is_new = is_first && !patch.is_empty();
    for (name, before, after) in counts {
        if is_new || before != after {
            patch.insert(name.into(), after.into());
        }
    }
    patch
}
