//! What is reported of the images: the status, and events.

use jiff::SignedDuration;
use kruise_api::names::agent::{
    IMAGE_PULLER, INSUFFICIENT_DISK, PULL_IMAGE_FAILED, PULL_IMAGE_SUCCEED, PULL_SECRET_UNUSED,
    RUNTIME_UNAVAILABLE,
};
use kruise_api::names::events::Reason;

use crate::call::Call;
use crate::node_image::{FirstSync, NodeImageStatus, NodeImageView, Phase};
use crate::{About, EventNote, SecretRef, SecretState};

use super::Images;
use super::task::{Key, Task};

/// Name and tag or digest of an image.
pub(super) fn reference(key: &Key) -> String {
    go_compat::image::join(&key.image, &key.tag)
}

impl Images {
    /// The status as it should be.
    fn status(&self) -> NodeImageStatus {
        let mut status = NodeImageStatus {
            first_sync_status: self.first_sync.clone(),
            ..NodeImageStatus::default()
        };
        for (key, task) in &self.tasks {
            status.desired = status.desired.saturating_add(1);
            let count = match task.status.phase {
                Phase::Waiting => Some(&mut status.waiting),
                Phase::Pulling => Some(&mut status.pulling),
                Phase::Succeeded => Some(&mut status.succeeded),
                Phase::Failed => Some(&mut status.failed),
                Phase::Unknown => None,
            };
            if let Some(count) = count {
                *count = count.saturating_add(1);
            }
            let image = status.image_statuses.entry(key.image.clone()).or_default();
            image.tags.push(task.status.clone());
        }
        status
    }

    /// Writes what has changed, if it is time to.
    pub(super) fn write_status(&mut self, spec: &NodeImageView, call: &mut Call<'_>) {
        if self.writer.is_due(call.now) {
            let status = self.status();
            super::writer::write(&mut self.writer, spec, status, call);
        }
    }

    /// Records how the first set of pulls of the node went, once all of them have ended.
    pub(super) fn end_first_sync(&mut self) {
        if self.first_sync.is_some() || self.tasks.is_empty() || !self.tasks.values().all(Task::is_finished) {
            return;
        }
        let statuses = self.tasks.values().map(|task| &task.status);
        let failed = statuses
            .clone()
            .filter(|status| status.phase == Phase::Failed)
            .count();
        let (status, message) = match failed {
            0 => ("Succeeded", String::new()),
            failed => (
                "Failed",
                format!("{failed} of {} images could not be pulled", self.tasks.len()),
            ),
        };
        self.first_sync = Some(FirstSync {
            sync_at: statuses.filter_map(|status| status.completion_time).max(),
            status: status.into(),
            message: message.into(),
        });
    }

    fn note(&self, reason: &'static Reason, message: String) -> Option<EventNote> {
        let spec = self.spec.as_ref()?;
        Some(EventNote {
            about: About::NodeImage {
                name: spec.name.clone(),
                uid: spec.uid.clone(),
            },
            reason,
            message,
            component: IMAGE_PULLER,
        })
    }

    fn report_on_node(&self, reason: &'static Reason, message: String, call: &mut Call<'_>) {
        if let Some(note) = self.note(reason, message) {
            call.event(note);
        }
    }

    pub(super) fn report_success(&self, key: &Key, elapsed: SignedDuration, call: &mut Call<'_>) {
        // The spelling is that of OpenKruise; tools match on it.
        let elapsed = go_compat::duration::format(elapsed);
        let message = format!("Image {}, ecalpsedTime {elapsed}", reference(key));
        self.report_on_node(&PULL_IMAGE_SUCCEED, message, call);
    }

    pub(super) fn report_failure(&self, key: &Key, problem: &str, call: &mut Call<'_>) {
        let message = format!("Image {} {problem}", reference(key));
        let Some(note) = self.note(&PULL_IMAGE_FAILED, message) else {
            return;
        };
        self.report_to_owners(key, note, call);
    }

    /// Emits an event on the owners of a tag, and on the NodeImage.
    fn report_to_owners(&self, key: &Key, note: EventNote, call: &mut Call<'_>) {
        let tag = self.spec.as_ref().and_then(|spec| spec.tag(&key.image, &key.tag));
        for owner in tag.iter().flat_map(|(_, tag)| &tag.owners) {
            call.event(EventNote {
                about: About::Object(owner.clone()),
                ..note.clone()
            });
        }
        call.event(note);
    }

    /// A pull begins without some of its secrets. Each change of a secret is reported once.
    pub(super) fn report_secrets(
        &mut self,
        key: &Key,
        states: &[(SecretRef, SecretState)],
        call: &mut Call<'_>,
    ) {
        for (secret, state) in states {
            if let Some(problem) = self.secrets.news(secret, state)
                && let Some(note) = self.note(&PULL_SECRET_UNUSED, problem)
            {
                self.report_to_owners(key, note, call);
            }
        }
    }

    pub(super) fn report_shortage(&self, call: &mut Call<'_>) {
        let shortage = self.disk.shortage().unwrap_or_default();
        self.report_on_node(
            &INSUFFICIENT_DISK,
            format!("No image is pulled: {shortage}"),
            call,
        );
    }

    /// An outage of the runtime has begun.
    pub(crate) fn report_outage(&self, problem: String, call: &mut Call<'_>) {
        self.report_on_node(&RUNTIME_UNAVAILABLE, problem, call);
    }
}
