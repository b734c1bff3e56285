//! The executor as a state machine without I/O. Input: the writes of a plan, then the response to each call. Output:
//! calls, then a report.

use std::collections::BTreeMap;

use kruise_plan_kit::injected::is_injected;
use kruise_plan_kit::{Batching, EventNote, ObjectWrites, Part, Patch, Phase, Precondition, Step, Write};
use kruise_plan_kit::{Holder, ResourceId, Target};
use kube_cache::{Expectation, Version};

use super::call::delete_options;
use super::split::halves;
use super::verdict::{Verdict, lost, related, verdict};
use super::{Call, CallId, Doubt, Failure, Report, StatusForm, StepResult, Stored};
use crate::ApiError;

/// The limits of a run, and what earlier runs detected about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls in flight at once; at least one.
    pub concurrency: usize,
    /// How the server accepts status patches that also change metadata.
    pub status_form: StatusForm,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 16,
            status_form: StatusForm::Merged,
        }
    }
}

/// Which call of a step is due or in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The write itself.
    Write,
    /// A read of the existing object after a create failed with `AlreadyExists`.
    ReadExisting,
    /// The status half of a patch that the server refuses as a whole.
    StatusHalf,
    /// The metadata half, after the status half.
    MetadataHalf,
    /// A read of the object after a patch was refused: for its content, or because it is another object by now.
    ReadRefused,
    /// A read of another object that the precondition is about, before the write.
    ReadRelated,
    /// The write itself, after that read.
    WriteChecked,
    /// The deletion of an object that was created, but not as its owner finds it.
    Undo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not started.
    Waiting,
    /// The next call may be sent.
    Due(Stage),
    /// Waiting for a response.
    InFlight(Stage),
    /// Completed, failed or cancelled.
    Ended,
}

#[derive(Clone, Debug)]
struct Track {
    object: ObjectWrites,
    state: State,
    step: usize,
    /// Version in the previous response for this object.
    version: Option<String>,
    /// Why the server refused the current step, while the object is read to find out what it meant.
    refusal: Option<String>,
    /// What was created and is deleted again: its name and uid.
    undone: Option<(String, String)>,
    has_failed: bool,
}

/// The current batch of a slow start: objects started, and the size of the batch.
#[derive(Clone, Copy, Debug)]
struct SlowStart {
    phase: Phase,
    started: usize,
    size: usize,
}

/// One execution of one plan.
#[derive(Clone, Debug)]
pub struct Run {
    tracks: Vec<Track>,
    in_flight: BTreeMap<CallId, usize>,
    slow_start: Option<SlowStart>,
    concurrency: usize,
    next_id: u64,
    report: Report,
}

impl Run {
    /// A run that has not sent a call yet.
    pub fn new(writes: Vec<ObjectWrites>, limits: Limits) -> Self {
        let report = Report {
            steps: writes
                .iter()
                .map(|object| vec![StepResult::Skipped; object.steps.len()])
                .collect(),
            expectations: Vec::new(),
            events: Vec::new(),
            taken: Vec::new(),
            holders: Vec::new(),
            failures: Vec::new(),
            created: Vec::new(),
            doubts: Vec::new(),
            copied: Vec::new(),
            status_form: limits.status_form,
        };
        let track = |object: ObjectWrites| Track {
            state: if object.steps.is_empty() {
                State::Ended
            } else {
                State::Waiting
            },
            object,
            step: 0,
            version: None,
            refusal: None,
            undone: None,
            has_failed: false,
        };
        Self {
            tracks: writes.into_iter().map(track).collect(),
            in_flight: BTreeMap::new(),
            slow_start: None,
            concurrency: limits.concurrency.max(1),
            next_id: 0,
            report,
        }
    }

    /// The calls to send now. The run is over when this is empty and nothing is in flight.
    pub fn due(&mut self) -> Vec<(CallId, Call)> {
        self.start_objects();
        // When a failed slow start cancels its remaining objects, the next phase may start at once.
        while !self.is_over() && !self.tracks.iter().any(Track::is_active) {
            self.start_objects();
        }
        let mut calls = Vec::new();
        for (index, track) in self.tracks.iter_mut().enumerate() {
            let State::Due(stage) = track.state else { continue };
            let stage = track.first_stage(stage, self.report.status_form);
            let Some(call) = track
                .object
                .steps
                .get(track.step)
                .map(|step| track.call(step, stage))
            else {
                continue;
            };
            track.state = State::InFlight(stage);
            let id = CallId(self.next_id);
            self.next_id += 1;
            self.in_flight.insert(id, index);
            calls.push((id, call));
        }
        calls
    }

    /// Processes the response to a call. Responses to calls that are not in flight are ignored.
    pub fn reply(&mut self, id: CallId, outcome: Result<Stored, ApiError>) {
        let Some(index) = self.in_flight.remove(&id) else {
            return;
        };
        let Some(track) = self.tracks.get_mut(index) else {
            return;
        };
        let State::InFlight(stage) = track.state else {
            return;
        };
        let Some(step) = track.object.steps.get(track.step).cloned() else {
            return;
        };
        let existing = outcome.as_ref().ok().filter(|_| stage == Stage::ReadExisting);
        let holder = existing.map(|stored| Holder {
            uid: stored.uid.clone(),
            owners: stored.owners.clone(),
        });
        // An object without a controller may be adopted by the next plan, which therefore waits until the cache has it.
        let adoptable = existing.filter(|stored| stored.controller.is_none() && !stored.is_terminating);
        let adoptable = adoptable.and_then(|stored| expectation(&step.write, stored));
        let refusal = track.refusal.take();
        if let (Stage::Undo, Some((_, uid))) = (stage, &track.undone) {
            let gone = outcome.is_ok() || outcome.as_ref().is_err_and(ApiError::is_not_found);
            let resource = step.write.target().resource;
            let gone = gone.then(|| Expectation::Gone {
                resource,
                uid: uid.as_str().into(),
            });
            self.report.expectations.extend(gone);
            return self.step_failed(index, &step, Failure::Refused(refusal.unwrap_or_default()));
        }
        match verdict(&step.write, stage, outcome, self.report.status_form, refusal) {
            Verdict::Next(stage) => track.state = State::Due(stage),
            Verdict::Done(StepResult::Done, stored) if lost(&step, &stored).is_some() => {
                track.refusal = lost(&step, &stored);
                track.state = State::Due(Stage::Undo);
                self.report.expectations.extend(expectation(&step.write, &stored));
                track.undone = Some((stored.name, stored.uid));
            }
            Verdict::Check(refusal) => {
                track.refusal = Some(refusal);
                track.state = State::Due(Stage::ReadRefused);
            }
            Verdict::Continue(stage, stored) => {
                track.version = Some(stored.version.clone());
                track.state = State::Due(stage);
                self.report.expectations.extend(expectation(&step.write, &stored));
                if stage == Stage::MetadataHalf {
                    self.report.status_form = StatusForm::Split;
                }
            }
            Verdict::Done(result, stored) => self.step_done(index, &step, result, &stored),
            Verdict::End(result) => {
                self.record(index, result);
                self.end(index);
            }
            Verdict::Failed(failure) => {
                let name = &step.write.target().name;
                let holder = holder.map(|holder| (name.clone(), holder));
                self.report.holders.extend(holder);
                self.report.expectations.extend(adoptable);
                self.step_failed(index, &step, failure);
            }
        }
    }

    /// Whether the call has a version precondition that is older than the cached version. The server would refuse it.
    pub fn is_outdated(&self, id: CallId, newest: &dyn Fn(&Target, &str) -> Option<Version>) -> bool {
        let track = self.in_flight.get(&id).and_then(|index| self.tracks.get(*index));
        let Some((track, step)) = track.and_then(|track| Some((track, track.object.steps.get(track.step)?)))
        else {
            return false;
        };
        let Some((uid, version)) = track.version_precondition(&step.write) else {
            return false;
        };
        let expected: Option<Version> = version.parse().ok();
        let newest = newest(step.write.target(), uid);
        newest
            .zip(expected)
            .is_some_and(|(newest, expected)| newest > expected)
    }

    /// Records a conflict for a call that was not sent because it is outdated.
    pub fn skip_outdated(&mut self, id: CallId) {
        let Some(index) = self.in_flight.remove(&id) else {
            return;
        };
        let track = self.tracks.get(index);
        let Some(step) = track
            .and_then(|track| track.object.steps.get(track.step))
            .cloned()
        else {
            return;
        };
        let message = format!("{} has changed since it was read", step.write.target());
        self.step_failed(index, &step, Failure::Conflict(message));
    }

    /// Starts no further object. Objects that have started are completed.
    pub fn stop(&mut self) {
        for track in &mut self.tracks {
            if track.state == State::Waiting {
                track.state = State::Ended;
            }
        }
    }

    /// Whether no call is left to send and none is in flight.
    pub fn is_over(&self) -> bool {
        self.tracks.iter().all(|track| track.state == State::Ended)
    }

    /// The report. Steps without a response count as skipped.
    pub fn finish(self) -> Report {
        self.report
    }

    fn start_objects(&mut self) {
        let Some(phase) = self.current_phase() else { return };
        let active = self.tracks.iter().filter(|track| track.is_active()).count();
        let mut free = self.concurrency.saturating_sub(active);
        let mut slow = self.slow_budget(phase);
        for track in &mut self.tracks {
            if free == 0 {
                break;
            }
            if track.object.phase != phase || track.state != State::Waiting {
                continue;
            }
            if track.object.batching == Batching::SlowStart && !is_injected("SlowStartOff") {
                if slow == 0 {
                    continue;
                }
                slow -= 1;
                if let Some(batch) = &mut self.slow_start {
                    batch.started += 1;
                }
            }
            free -= 1;
            track.state = State::Due(Stage::Write);
        }
    }

    /// The phase whose objects may start. A failed revision first cancels all later phases.
    fn current_phase(&mut self) -> Option<Phase> {
        let blocks = |track: &Track| track.has_failed && track.object.phase == Phase::Revisions;
        let failed = self
            .tracks
            .iter()
            .filter(|track| blocks(track))
            .map(|track| track.object.phase)
            .min();
        if let Some(failed) = failed {
            for track in &mut self.tracks {
                if track.state == State::Waiting && track.object.phase > failed {
                    track.state = State::Ended;
                }
            }
        }
        let open = self.tracks.iter().filter(|track| track.state != State::Ended);
        open.map(|track| track.object.phase).min()
    }

    /// How many slow-start objects of `phase` may still start in the current batch.
    fn slow_budget(&mut self, phase: Phase) -> usize {
        let mut batch = match self.slow_start {
            Some(batch) if batch.phase == phase => batch,
            _ => SlowStart {
                phase,
                started: 0,
                size: 1,
            },
        };
        let is_slow =
            |track: &&mut Track| track.object.phase == phase && track.object.batching == Batching::SlowStart;
        if batch.started == batch.size {
            let is_running = self
                .tracks
                .iter_mut()
                .filter(is_slow)
                .any(|track| track.is_active());
            if is_running {
                return 0;
            }
            if self
                .tracks
                .iter_mut()
                .filter(is_slow)
                .any(|track| track.has_failed)
            {
                self.tracks
                    .iter_mut()
                    .filter(is_slow)
                    .for_each(|track| track.state = State::Ended);
            }
            batch.size = batch.size.saturating_mul(2);
            batch.started = 0;
        }
        self.slow_start = Some(batch);
        batch.size - batch.started
    }

    fn step_done(&mut self, index: usize, step: &Step, result: StepResult, stored: &Stored) {
        self.report.note_copy(&step.write, &result, &stored.version);
        self.record(index, result);
        self.report.expectations.extend(expectation(&step.write, stored));
        self.report.events.extend(step.done.clone());
        if let Write::Create { target, .. } = &step.write {
            self.report.created.push((target.clone(), stored.uid.clone()));
        }
        let Some(track) = self.tracks.get_mut(index) else {
            return;
        };
        track.step += 1;
        if !stored.version.is_empty() {
            track.version = Some(stored.version.clone());
        }
        track.state = if track.step < track.object.steps.len() {
            State::Due(Stage::Write)
        } else {
            State::Ended
        };
    }

    fn step_failed(&mut self, index: usize, step: &Step, failure: Failure) {
        // A conflict needs no event: the next plan resolves it.
        let is_reported = !matches!(failure, Failure::Conflict(_));
        if let Some(note) = step.failed.as_ref().filter(|_| is_reported) {
            let message = format!("{}{}{}", note.prefix, failure.message(), note.suffix);
            self.report.events.push(EventNote::new(note.reason, message));
        }
        match failure {
            Failure::NameTaken(_) => self.report.taken.push(step.write.target().clone()),
            Failure::Unknown(_) => self.report.doubts.push(Doubt {
                target: step.write.target().clone(),
                uid: step.write.uid().map(str::to_owned),
            }),
            Failure::Conflict(_) | Failure::Refused(_) => {}
        }
        self.report.failures.push(failure.clone());
        self.record(index, StepResult::Failed(failure));
        if let Some(track) = self.tracks.get_mut(index) {
            track.has_failed = true;
        }
        self.end(index);
        self.cancel_after(step.write.target());
    }

    /// Cancels the objects that wait for this write.
    fn cancel_after(&mut self, target: &Target) {
        for track in &mut self.tracks {
            if track.state == State::Waiting && track.object.after.as_deref() == Some(target) {
                track.state = State::Ended;
            }
        }
    }

    fn record(&mut self, index: usize, result: StepResult) {
        let step = self.tracks.get(index).map(|track| track.step);
        let slot = step.and_then(|step| self.report.steps.get_mut(index)?.get_mut(step));
        if let Some(slot) = slot {
            *slot = result;
        }
    }

    fn end(&mut self, index: usize) {
        if let Some(track) = self.tracks.get_mut(index) {
            track.state = State::Ended;
        }
    }
}

impl Track {
    fn is_active(&self) -> bool {
        matches!(self.state, State::Due(_) | State::InFlight(_))
    }

    /// The first call of a step: a read that the precondition asks for, a split patch on a server that refuses the
    /// merged form.
    fn first_stage(&self, stage: Stage, form: StatusForm) -> Stage {
        let write = self.object.steps.get(self.step).map(|step| &step.write);
        let Some(write) = write.filter(|_| stage == Stage::Write) else {
            return stage;
        };
        if related(write).is_some() {
            return Stage::ReadRelated;
        }
        match write {
            Write::Patch {
                part: Part::Status,
                patch,
                ..
            } if form == StatusForm::Split && halves(patch).is_some() => Stage::StatusHalf,
            _ => stage,
        }
    }

    /// Uid and version in the precondition of the current call, if it has a version precondition.
    fn version_precondition<'t>(&'t self, write: &'t Write) -> Option<(&'t str, &'t str)> {
        let (Write::Patch { precondition, .. } | Write::Delete { precondition, .. }) = write else {
            return None;
        };
        let is_second_half = self.state == State::InFlight(Stage::MetadataHalf);
        match precondition {
            Precondition::UidAndVersion(uid, version) if !is_second_half => Some((uid, version)),
            Precondition::Owned { uid, version, .. } => Some((uid, version)),
            Precondition::UidAndVersion(uid, _) | Precondition::VersionFromPreviousStep(uid) => {
                Some((uid, self.version.as_deref()?))
            }
            Precondition::Uid(_) | Precondition::Test(..) | Precondition::Unused(..) => None,
        }
    }

    fn call(&self, step: &Step, stage: Stage) -> Call {
        let version = self.version.as_deref();
        if let Some(related) = related(&step.write).filter(|_| stage == Stage::ReadRelated) {
            return Call::Get {
                target: related.clone(),
                value: None,
            };
        }
        match &step.write {
            Write::Create { target, .. } if stage == Stage::ReadExisting => Call::Get {
                target: target.clone(),
                value: None,
            },
            Write::Create { target, .. } if stage == Stage::Undo => {
                let (name, uid) = self.undone.clone().unwrap_or_default();
                Call::Delete {
                    target: Target {
                        name,
                        ..target.clone()
                    },
                    body: delete_options(&Precondition::Uid(uid), None),
                }
            }
            Write::Create { target, body, .. } => Call::Create {
                target: target.clone(),
                body: body.render(),
            },
            Write::Delete {
                target, precondition, ..
            } => Call::Delete {
                target: target.clone(),
                body: delete_options(precondition, version),
            },
            Write::Patch {
                target, precondition, ..
            } if stage == Stage::ReadRefused => Call::Get {
                target: target.clone(),
                value: match precondition {
                    Precondition::Test(pointer, _) => Some(pointer.clone()),
                    _ => None,
                },
            },
            Write::Patch {
                target,
                part,
                patch,
                precondition,
                ..
            } => match (stage, halves(patch)) {
                (Stage::StatusHalf, Some((status, _))) => {
                    patch_call(target, Part::Status, &status, precondition, version)
                }
                (Stage::MetadataHalf, Some((_, metadata))) => {
                    let precondition = after_status_half(precondition);
                    patch_call(target, Part::Main, &metadata, &precondition, version)
                }
                _ => patch_call(target, *part, patch, precondition, version),
            },
        }
    }
}

/// The status half changed the version, so the metadata half requires the version that the status half returned.
fn after_status_half(precondition: &Precondition) -> Precondition {
    match precondition {
        Precondition::UidAndVersion(uid, _) => Precondition::VersionFromPreviousStep(uid.clone()),
        other => other.clone(),
    }
}

fn patch_call(
    target: &Target,
    part: Part,
    patch: &Patch,
    precondition: &Precondition,
    version: Option<&str>,
) -> Call {
    Call::Patch {
        target: target.clone(),
        part,
        content_type: patch.content_type(),
        body: patch.guarded(precondition, version),
    }
}

/// The expectation of a successful write; none where versions cannot be compared.
fn expectation(write: &Write, stored: &Stored) -> Option<Expectation<ResourceId>> {
    let resource = write.target().resource;
    if let Write::Delete { precondition, .. } = write {
        let uid = precondition.uid()?.into();
        return Some(Expectation::Gone { resource, uid });
    }
    let version = stored.version.parse().ok()?;
    Some(Expectation::AtLeast { resource, version })
}
