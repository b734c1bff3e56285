//! When the status of an object is written: once something differs from what is stored, one write at a time, and
//! not too often.

use std::time::Duration;

use jiff::Timestamp;
use kube_cache::{Cached, Version};
use kube_queue::Bucket;

use crate::WriteError;
use crate::call::{Call, after};

/// From a change to the write of it, so that changes at the same time are one write.
const COALESCE: Duration = Duration::from_millis(200);
/// Writes are this far apart, after some that are not.
const INTERVAL: Duration = Duration::from_secs(2);
const BURST: u32 = 5;

/// The writer of the status of one object; `S` is the status.
#[derive(Clone, Debug)]
pub(crate) struct StatusWriter<S> {
    /// The status that is stored, as far as is known.
    stored: Option<S>,
    /// The version of the object that has it.
    version: Option<Version>,
    /// UID of the object.
    uid: Box<str>,
    /// The status that is being written, and the UID of the object.
    writing: Option<(Box<str>, S)>,
    /// Since when something may differ.
    changed: Option<Timestamp>,
    /// When a write that failed is tried again.
    retry: Option<Timestamp>,
    failures: u32,
    bucket: Bucket,
}

impl<S> Default for StatusWriter<S> {
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

impl<S: Clone + PartialEq> StatusWriter<S> {
    /// Something may differ from what is stored.
    pub(crate) fn touch(&mut self, now: Timestamp) {
        self.changed.get_or_insert(now);
    }

    /// There is no object any more. Writes stay as far apart as before, and one at a time.
    pub(crate) fn forget(&mut self) {
        *self = Self {
            bucket: self.bucket.clone(),
            writing: self.writing.take(),
            ..Self::default()
        };
    }

    /// An object that is stored. One from before the last write says nothing new.
    pub(crate) fn observe(&mut self, object: &impl Cached, status: Option<&S>, now: Timestamp) {
        let version = Version::of(object);
        if version.is_some() && version < self.version {
            return;
        }
        self.version = version;
        if *self.uid != *object.uid() {
            self.uid = object.uid().into();
        }
        if self.stored.as_ref() != status {
            self.stored = status.cloned();
            self.touch(now);
        }
    }

    /// The status that is stored, as far as is known.
    pub(crate) fn stored(&self) -> Option<&S> {
        self.stored.as_ref()
    }

    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.next_timer().is_some_and(|due| due <= now)
    }

    pub(crate) fn next_timer(&self) -> Option<Timestamp> {
        if self.writing.is_some() {
            return None;
        }
        let ready = after(self.changed?, COALESCE);
        let ready = self.retry.map_or(ready, |retry| retry.max(ready));
        let wait = self.bucket.clone().reserve(since_epoch(ready));
        Some(after(ready, wait))
    }

    /// Everything that may differ is being looked at.
    pub(crate) fn settle(&mut self) {
        self.changed = None;
        self.retry = None;
    }

    /// This status is being written to the object with this UID.
    pub(crate) fn begin(&mut self, uid: &str, status: S, now: Timestamp) {
        self.bucket.reserve(since_epoch(now));
        self.writing = Some((uid.into(), status));
    }

    /// A write has ended. What became of an object that is gone does not matter. `kind` is that of the object, for
    /// the log.
    pub(crate) fn written(&mut self, kind: &str, result: Result<Box<str>, WriteError>, call: &mut Call<'_>) {
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
                        "the status of the {kind} could not be written: {problem}"
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
