//! One attempt to pull an image, and what its end leads to.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::names::nodeimage::{AGENT, PULLED_BY};
use kruise_plan_kit::injected::is_injected;

use crate::call::{Call, backoff};
use crate::node_image::Phase;
use crate::{AttemptId, CredentialSource, Effect, Pull, RuntimeImage, Sandbox, SecretRef, SecretState};

use super::task::{Key, Step};
use super::{Images, presence, report, secrets};

/// Message of a round whose time is over.
pub(super) const PAST_DEADLINE: &str = "pulling exceeds the activeDeadlineSeconds";
/// Delays between attempts.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(30);
/// Bytes of a message in a status.
const LONGEST_MESSAGE: usize = 1024;

impl Images {
    /// Begins an attempt: the first one of a task that waits in the queue, or the next one.
    pub(super) fn attempt(&mut self, key: &Key, call: &mut Call<'_>) {
        let Some(spec) = self.spec.clone() else {
            return;
        };
        let Some(((_, tag), task)) = spec.tag(&key.image, &key.tag).zip(self.tasks.get_mut(key)) else {
            return;
        };
        if task.step == Step::Queued {
            task.start(call.now);
            self.writer.touch(call.now);
        }
        if task.deadline(tag).is_some_and(|deadline| deadline <= call.now) {
            self.give_up(key, PAST_DEADLINE, call);
        } else if tag.if_not_present {
            task.step = Step::Checking(self.listing.ask());
        } else {
            self.measure(key, call);
        }
    }

    /// The images of the runtime are known.
    pub(super) fn checked(&mut self, key: &Key, images: &[RuntimeImage], call: &mut Call<'_>) {
        match presence::find(images, &key.image, &key.tag) {
            Some(image) => self.succeed(key, &image.id, call),
            None => self.measure(key, call),
        }
    }

    fn measure(&mut self, key: &Key, call: &mut Call<'_>) {
        if call.config.min_free_percent == 0 {
            self.read_secrets(key, call);
        } else if let Some(task) = self.tasks.get_mut(key) {
            task.step = Step::Measuring(self.measurement.ask());
        }
    }

    /// There is room.
    pub(super) fn read_secrets(&mut self, key: &Key, call: &mut Call<'_>) {
        let Some(spec) = self.spec.clone() else {
            return;
        };
        let Some(((image, _), task)) = spec.tag(&key.image, &key.tag).zip(self.tasks.get_mut(key)) else {
            return;
        };
        let attempt = AttemptId(self.attempts);
        self.attempts = self.attempts.saturating_add(1);
        if image.secrets.is_empty() {
            return self.pull(key, attempt, &[], call);
        }
        task.step = Step::ReadingSecrets(attempt);
        call.emit(Effect::ReadSecrets {
            attempt,
            secrets: image.secrets.clone(),
        });
    }

    /// Can it wait for a secret that cannot be read?
    pub(super) fn has_patience(&self, key: &Key, now: Timestamp) -> bool {
        let tag = self.spec.as_ref().and_then(|spec| spec.tag(&key.image, &key.tag));
        let task = tag.zip(self.tasks.get(key));
        task.is_some_and(|((_, tag), task)| now < task.patience(tag, now))
    }

    /// A secret could not be read: the attempt begins again later, and is not counted.
    pub(super) fn await_secrets(
        &mut self,
        key: &Key,
        attempt: AttemptId,
        problem: &str,
        call: &mut Call<'_>,
    ) {
        let Some(spec) = self.spec.clone() else {
            return;
        };
        let Some(((_, tag), task)) = spec.tag(&key.image, &key.tag).zip(self.tasks.get_mut(key)) else {
            return;
        };
        // What was read is read again.
        call.emit(Effect::CancelPull(attempt));
        task.unreadable = task.unreadable.saturating_add(1);
        let retry = call.after(backoff(FIRST_PAUSE, LAST_PAUSE, task.unreadable));
        task.wait(Step::AwaitingSecrets(retry.min(task.patience(tag, call.now))));
        task.hold(shortened(problem), call.now);
        self.writer.touch(call.now);
    }

    /// The secrets are known, as far as they can be.
    pub(super) fn pull(
        &mut self,
        key: &Key,
        attempt: AttemptId,
        states: &[(SecretRef, SecretState)],
        call: &mut Call<'_>,
    ) {
        let Some(spec) = self.spec.clone() else {
            return;
        };
        let Some(((image, tag), task)) = spec.tag(&key.image, &key.tag).zip(self.tasks.get_mut(key)) else {
            return;
        };
        let limit = Duration::try_from(tag.timeout).unwrap_or_default();
        let left = task
            .deadline(tag)
            .map(|deadline| deadline.duration_since(call.now));
        let left = left.map_or(limit, |left| Duration::try_from(left).unwrap_or_default());
        if left.is_zero() {
            return self.give_up(key, PAST_DEADLINE, call);
        }
        task.step = Step::Pulling(attempt);
        task.held_since = None;
        task.unreadable = 0;
        task.status.message = shortened(&secrets::unused(states).join("; ")).into();
        self.writer.touch(call.now);
        let is_allowed = |secret: &&SecretRef| {
            let mut states = states.iter();
            states.any(|(of, state)| of == *secret && secrets::is_allowed(state, &tag.owners))
        };
        let allowed = image.secrets.iter().filter(is_allowed).cloned();
        call.emit(Effect::Pull(Pull {
            attempt,
            image: report::reference(key).into(),
            credentials: allowed
                .map(CredentialSource::Secret)
                .chain([CredentialSource::Keyring])
                .collect(),
            sandbox: sandbox(&image.sandbox),
            timeout: left.min(limit),
        }));
        self.report_secrets(key, states, call);
    }

    /// The runtime has pulled the image and returned this reference.
    pub(super) fn confirm(&mut self, key: &Key, reference: Box<str>) {
        if let Some(task) = self.tasks.get_mut(key) {
            task.step = Step::Confirming {
                listing: self.listing.ask(),
                reference,
            };
        }
    }

    /// An attempt has failed.
    pub(super) fn fail(&mut self, key: &Key, problem: &str, call: &mut Call<'_>) {
        let Some(spec) = self.spec.clone() else {
            return;
        };
        let Some(((_, tag), task)) = spec.tag(&key.image, &key.tag).zip(self.tasks.get_mut(key)) else {
            return;
        };
        let counts = !is_injected("PullFailuresUncounted");
        task.failures = task.failures.saturating_add(u32::from(counts));
        call.info(format!(
            "pulling image {} failed: {problem}",
            report::reference(key)
        ));
        if task.deadline(tag).is_some_and(|deadline| deadline <= call.now) {
            self.give_up(key, PAST_DEADLINE, call);
        } else if task.failures > tag.backoff_limit {
            let unused = std::mem::take(&mut task.status.message);
            self.give_up(key, problem, call);
            self.append(key, &unused);
        } else {
            task.step = Step::Paused(call.after(backoff(FIRST_PAUSE, LAST_PAUSE, task.failures)));
        }
    }

    /// Says beside the problem what may be the reason for it.
    fn append(&mut self, key: &Key, reason: &str) {
        if let Some(task) = self.tasks.get_mut(key).filter(|_| !reason.is_empty()) {
            let message = [&*task.status.message, reason].join("; ");
            task.status.message = shortened(&message).into();
        }
    }

    /// The round has failed.
    pub(super) fn give_up(&mut self, key: &Key, problem: &str, call: &mut Call<'_>) {
        let Some(task) = self.tasks.get_mut(key) else {
            return;
        };
        if let Step::ReadingSecrets(attempt) = task.step {
            call.emit(Effect::CancelPull(attempt));
        }
        task.finish(Phase::Failed, call.now);
        task.status.message = shortened(problem).into();
        self.writer.touch(call.now);
        self.report_failure(key, problem, call);
    }

    /// The node has the image.
    pub(super) fn succeed(&mut self, key: &Key, id: &str, call: &mut Call<'_>) {
        let Some(task) = self.tasks.get_mut(key) else {
            return;
        };
        task.finish(Phase::Succeeded, call.now);
        task.status.progress = 100;
        task.status.message = Box::default();
        task.status.image_id = format!("{}@{id}", key.image).into();
        let elapsed = task.started.map(|started| call.now.duration_since(started));
        self.writer.touch(call.now);
        self.report_success(key, elapsed.unwrap_or_default(), call);
    }

    /// The attempt goes back to the queue, and is not counted.
    pub(super) fn requeue(&mut self, key: &Key, call: &mut Call<'_>) {
        if let Some(task) = self.tasks.get_mut(key) {
            task.wait(Step::Queued);
            task.release();
            self.writer.touch(call.now);
        }
    }

    /// There is no room.
    pub(super) fn await_space(&mut self, key: &Key, shortage: &str, call: &mut Call<'_>) {
        if let Some(task) = self.tasks.get_mut(key) {
            task.wait(Step::AwaitingSpace);
            task.hold(shortage, call.now);
            self.writer.touch(call.now);
        }
    }

    /// It has waited for as long as an attempt may take: that fails the round with the reason why it waits.
    pub(super) fn end_hold(&mut self, key: &Key, call: &mut Call<'_>) {
        let reason = self.tasks.get(key).map(|task| task.status.message.clone());
        self.give_up(key, &reason.unwrap_or_default(), call);
    }
}

/// Runtimes need one even for pulls without a pod; who pulls is said in it.
fn sandbox(of: &Sandbox) -> Sandbox {
    let annotations = of.annotations.iter().chain([(PULLED_BY, AGENT)]);
    Sandbox {
        labels: of.labels.clone(),
        annotations: annotations.collect(),
    }
}

/// A message that fits into a status with hundreds of others.
fn shortened(message: &str) -> &str {
    let end = message.floor_char_boundary(LONGEST_MESSAGE);
    message.split_at(end).0
}
