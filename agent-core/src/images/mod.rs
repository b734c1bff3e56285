//! The images that the node is to have: a task for each tag, from its first attempt to the end of its round.
//!
//! A task checks whether the image is there (`IfNotPresent`), measures the disk, reads the secrets, and pulls.
//! Listings and measurements serve all tasks that ask for one at the same time. No two calls pull the same tag, and
//! no more are under way than the limit says; a call that was cancelled counts until the runtime has let go of it.
//! A secret that cannot be read is read again for as long as an attempt may take; one that does not exist is done
//! without.
//!
//! Four things hold a task back without using up an attempt: the limit of pulls, a runtime that is away, a disk
//! that is short of space, a secret that cannot be read. Held for as long as an attempt may take, the round fails
//! with that reason, so that no job waits for ever.
//!
//! A manager writes the status of a NodeImage, too. The agent sends merge patches of what changed, with the UID, so
//! that they do not reach a successor, and without a version: the progress of a pull is right whatever else was
//! written. A round that somebody else has ended is over.
//!
//! Which images a node has is in this status, not in labels or conditions of the Node: an agent that may write
//! Nodes lets whoever breaks into one node draw pods to it, and each write of a Node reaches everybody who watches
//! Nodes.

mod attempt;
mod disk;
mod presence;
mod read;
mod report;
mod secrets;
mod task;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kruise_plan_kit::injected::is_injected;

use crate::call::{Call, earlier};
use crate::node_image::{FirstSync, ImageSpec, NodeImageStatus, NodeImageView};
use crate::runtime::Runtime;
use crate::status_writer::StatusWriter;
use crate::{
    AttemptId, Config, Effect, Failure, Filesystem, PullError, RuntimeImage, SecretRef, SecretState,
    WriteError,
};

use disk::Disk;
use read::SharedRead;
use secrets::Secrets;
use task::{Due, Key, Step, Task};

/// The images half of an agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images {
    spec: Option<Arc<NodeImageView>>,
    tasks: BTreeMap<Key, Task>,
    /// Calls that were cancelled and have not ended.
    cancelled: BTreeMap<AttemptId, Key>,
    attempts: u64,
    listing: SharedRead,
    measurement: SharedRead,
    disk: Disk,
    secrets: Secrets,
    first_sync: Option<FirstSync>,
    writer: StatusWriter<NodeImageStatus>,
}

impl Images {
    pub(crate) fn spec(&self) -> Option<&NodeImageView> {
        self.spec.as_deref()
    }

    /// The NodeImage was listed or has changed.
    pub(crate) fn sync(&mut self, view: Arc<NodeImageView>, call: &mut Call<'_>) {
        if view.deleting {
            return self.deleted(call);
        }
        if self.spec.as_ref().is_some_and(|spec| spec.uid != view.uid) {
            self.deleted(call);
        }
        let before = self.spec.replace(view.clone());
        self.writer.observe(&*view, view.status.as_ref(), call.now);
        let stored = view.status.as_ref();
        self.first_sync = self
            .first_sync
            .take()
            .or_else(|| stored.and_then(|status| status.first_sync_status.clone()));
        self.secrets.sync(&view);
        self.drop_tasks(&view, call);
        for (name, image) in &view.images {
            for tag in &image.tags {
                let key = Key {
                    image: name.clone(),
                    tag: tag.tag.clone(),
                };
                let finished = view.finished(name, tag);
                match finished.filter(|_| !is_injected("EndedPullRepeated")) {
                    // Somebody else has ended the round, or an agent before this one.
                    Some(status) if self.tasks.get(&key).is_none_or(|task| !task.is_finished()) => {
                        self.stop(&key, call);
                        self.tasks.insert(key, Task::finished(status.clone()));
                    }
                    Some(_) => {}
                    None => {
                        self.tasks.entry(key).or_insert_with(|| Task::new(tag));
                        self.writer.touch(call.now);
                    }
                }
            }
            let secrets_of =
                |spec: &Arc<NodeImageView>| spec.images.get(name).map(|image| image.secrets.clone());
            if before
                .as_ref()
                .and_then(secrets_of)
                .is_some_and(|before| before != image.secrets)
            {
                self.end_pauses(name, call.now);
            }
        }
    }

    /// Stops and drops what is wanted no more, and rounds that are over.
    fn drop_tasks(&mut self, view: &NodeImageView, call: &mut Call<'_>) {
        let is_wanted = |key: &Key, task: &Task| {
            view.tag(&key.image, &key.tag)
                .is_some_and(|(_, tag)| tag.version == task.status.version)
        };
        let gone = self.tasks.iter().filter(|(key, task)| !is_wanted(key, task));
        let gone: Vec<Key> = gone.map(|(key, _)| key.clone()).collect();
        for key in gone {
            self.stop(&key, call);
        }
    }

    /// There is no NodeImage any more.
    pub(crate) fn deleted(&mut self, call: &mut Call<'_>) {
        let all: Vec<Key> = self.tasks.keys().cloned().collect();
        for key in all {
            self.stop(&key, call);
        }
        self.spec = None;
        self.first_sync = None;
        self.secrets = Secrets::default();
        self.writer.forget();
    }

    /// Drops a task, and cancels what is under way for it. Nothing is reported of that.
    fn stop(&mut self, key: &Key, call: &mut Call<'_>) {
        let Some(task) = self.tasks.remove(key) else {
            return;
        };
        match task.step {
            Step::Pulling(attempt) => {
                self.cancelled.insert(attempt, key.clone());
                call.emit(Effect::CancelPull(attempt));
                call.info(format!("pulling image {} is stopped", report::reference(key)));
            }
            Step::ReadingSecrets(attempt) => call.emit(Effect::CancelPull(attempt)),
            _ => {}
        }
        self.writer.touch(call.now);
    }

    pub(crate) fn listed(
        &mut self,
        result: Result<Vec<RuntimeImage>, Failure>,
        runtime: &mut Runtime,
        call: &mut Call<'_>,
    ) {
        let number = self.listing.end();
        let problem = runtime.answered(&result, call);
        let is_lost = matches!(result, Err(Failure::Unavailable(_)));
        for key in self.keys() {
            match self.tasks.get(&key).map(|task| task.step.clone()) {
                Some(Step::Checking(of)) if of <= number => match (&result, &problem) {
                    (Ok(images), _) => self.checked(&key, images, call),
                    (Err(_), _) if is_lost => self.requeue(&key, call),
                    (Err(_), problem) => {
                        let problem = problem.as_deref().unwrap_or_default();
                        self.fail(&key, &format!("failed to list images: {problem}"), call);
                    }
                },
                Some(Step::Confirming { listing, reference }) if listing <= number => {
                    let images = result.as_deref().unwrap_or_default();
                    let found = presence::find(images, &key.image, &key.tag);
                    let id = found.map_or(&*reference, |image| &*image.id);
                    self.succeed(&key, id, call);
                }
                _ => {}
            }
        }
    }

    pub(crate) fn measured(
        &mut self,
        result: Result<Filesystem, Failure>,
        runtime: &mut Runtime,
        call: &mut Call<'_>,
    ) {
        let number = self.measurement.end();
        let problem = runtime.answered(&result, call);
        if matches!(result, Err(Failure::Unavailable(_))) {
            for key in self.keys() {
                let step = self.tasks.get(&key).map(|task| &task.step);
                if matches!(step, Some(Step::Measuring(of)) if *of <= number) {
                    self.requeue(&key, call);
                }
            }
            return;
        }
        if let Some(problem) = problem {
            self.disk.unreadable(&problem, call);
        }
        let was_short = self.disk.shortage().is_some();
        self.disk.measured(result.ok(), call);
        let shortage = self.disk.shortage().map(str::to_owned);
        if shortage.is_some() && !was_short {
            self.report_shortage(call);
        }
        for key in self.keys() {
            let step = self.tasks.get(&key).map(|task| task.step.clone());
            match (step, &shortage) {
                (Some(Step::Measuring(of)), None) if of <= number => self.read_secrets(&key, call),
                (Some(Step::Measuring(of)), Some(shortage)) if of <= number => {
                    self.await_space(&key, shortage, call);
                }
                (Some(Step::AwaitingSpace), None) => self.requeue(&key, call),
                _ => {}
            }
        }
    }

    /// A secret was read. If it has changed, other attempts that wait can use it.
    fn note_secret(&mut self, secret: &SecretRef, state: &SecretState, call: &mut Call<'_>) {
        let Some(spec) = self.spec.clone() else {
            return;
        };
        let is_named = |image: &&ImageSpec| image.secrets.contains(secret);
        if !spec.images.values().any(|image| is_named(&image)) || !self.secrets.note(secret, state, call) {
            return;
        }
        for (name, _) in spec.images.iter().filter(|(_, image)| is_named(image)) {
            self.end_pauses(name, call.now);
        }
    }

    /// What is needed to pull an image has changed: attempts that wait begin at once.
    fn end_pauses(&mut self, image: &str, now: Timestamp) {
        for (_, task) in self.tasks.iter_mut().filter(|(key, _)| *key.image == *image) {
            if let Step::Paused(until) | Step::AwaitingSecrets(until) = &mut task.step {
                *until = now.min(*until);
            }
        }
    }

    pub(crate) fn secrets_read(
        &mut self,
        attempt: AttemptId,
        secrets: &[(SecretRef, SecretState)],
        call: &mut Call<'_>,
    ) {
        for (secret, state) in secrets {
            self.note_secret(secret, state, call);
        }
        let Some(key) = self.key_of(|task| task.step == Step::ReadingSecrets(attempt)) else {
            return;
        };
        match secrets::unreadable(secrets) {
            Some(problem) if self.has_patience(&key, call.now) => {
                self.await_secrets(&key, attempt, &problem, call);
            }
            _ => self.pull(&key, attempt, secrets, call),
        }
    }

    pub(crate) fn pulled(
        &mut self,
        attempt: AttemptId,
        result: Result<Box<str>, PullError>,
        runtime: &mut Runtime,
        call: &mut Call<'_>,
    ) {
        self.cancelled.remove(&attempt);
        let problem = match &result {
            Ok(_) => runtime.answered(&Ok(()), call),
            Err(PullError::Failure(failure)) => runtime.answered::<()>(&Err(failure.clone()), call),
            Err(PullError::TimedOut | PullError::Cancelled) => None,
        };
        let Some(key) = self.key_of(|task| task.step == Step::Pulling(attempt)) else {
            return;
        };
        match (result, problem) {
            (Ok(reference), _) => self.confirm(&key, reference),
            (Err(_), Some(_)) if is_injected("FailedPullConfirmed") => {
                self.confirm(&key, Box::default());
            }
            (Err(_), Some(problem)) => self.fail(&key, &problem, call),
            (Err(_), None) => {
                let problem = format!("pulling image {} is canceled", report::reference(&key));
                self.fail(&key, &problem, call);
            }
        }
    }

    pub(crate) fn status_written(&mut self, result: Result<Box<str>, WriteError>, call: &mut Call<'_>) {
        self.writer.written("NodeImage", result, call);
    }

    /// Does what is due, begins what can begin, and reports.
    pub(crate) fn advance(&mut self, runtime: &Runtime, call: &mut Call<'_>) {
        let Some(spec) = self.spec.clone() else {
            return;
        };
        let due = self.tasks.iter().filter_map(|(key, task)| {
            let (_, tag) = spec.tag(&key.image, &key.tag)?;
            let (_, due) = task.timer(tag).filter(|(time, _)| *time <= call.now)?;
            Some((key.clone(), due))
        });
        let due: Vec<(Key, Due)> = due.collect();
        for (key, due) in due {
            match due {
                Due::Deadline => self.give_up(&key, attempt::PAST_DEADLINE, call),
                Due::Hold => self.end_hold(&key, call),
                Due::Retry if runtime.is_available() && self.has_slot(&key) => self.attempt(&key, call),
                Due::Retry => self.requeue(&key, call),
            }
        }
        self.start_queued(&spec, runtime, call);
        let awaits_space = self.tasks.values().any(|task| task.step == Step::AwaitingSpace);
        if self.disk.recheck(awaits_space, call.now) {
            self.measurement.ask();
        }
        if self.listing.begin() {
            call.emit(Effect::ListImages);
        }
        if self.measurement.begin() {
            call.emit(Effect::ReadFilesystem);
        }
        self.end_first_sync();
        self.write_status(&spec, call);
    }

    /// Begins tasks in the order of their requests, as many as there are slots for.
    fn start_queued(&mut self, spec: &NodeImageView, runtime: &Runtime, call: &mut Call<'_>) {
        let problem = runtime.problem();
        let mut queued = Vec::new();
        let tasks = self.tasks.iter_mut();
        for (key, task) in tasks.filter(|(_, task)| task.step == Step::Queued) {
            let is_news = match &problem {
                Some(problem) => task.await_runtime(problem, call.now),
                None => task.find_runtime(),
            };
            if is_news {
                self.writer.touch(call.now);
            }
            let created = spec.tag(&key.image, &key.tag).and_then(|(_, tag)| tag.created);
            queued.push((created, key.clone()));
        }
        if !runtime.is_available() {
            return;
        }
        queued.sort_unstable();
        for (_, key) in queued {
            if !self.has_slot_left(call.config) {
                return;
            }
            if !self.cancelled.values().any(|cancelled| *cancelled == key) {
                self.attempt(&key, call);
            }
        }
    }

    fn has_slot(&self, key: &Key) -> bool {
        self.tasks.get(key).is_some_and(Task::has_slot)
    }

    /// May one more pull begin?
    fn has_slot_left(&self, config: &Config) -> bool {
        let busy = self.tasks.values().filter(|task| task.has_slot()).count() + self.cancelled.len();
        config.max_pulls.is_none_or(|limit| busy < limit.get() as usize)
    }

    fn keys(&self) -> Vec<Key> {
        self.tasks.keys().cloned().collect()
    }

    fn key_of(&self, is_wanted: impl Fn(&Task) -> bool) -> Option<Key> {
        let mut tasks = self.tasks.iter();
        tasks
            .find(|(_, task)| is_wanted(task))
            .map(|(key, _)| key.clone())
    }

    pub(crate) fn next_timer(&self) -> Option<Timestamp> {
        let spec = self.spec.as_ref()?;
        let tasks = self.tasks.iter().filter_map(|(key, task)| {
            let (_, tag) = spec.tag(&key.image, &key.tag)?;
            Some((task, tag))
        });
        let reads = earlier(self.disk.next_timer(), self.writer.next_timer());
        earlier(task::earliest(tasks), reads)
    }
}
