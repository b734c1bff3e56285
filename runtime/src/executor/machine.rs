//! The executor without I/O: a plan's writes in, calls out, replies in, a report out.

use std::collections::BTreeMap;

use kruise_plan_kit::injected::{Bug, is_injected};
use kruise_plan_kit::{Batching, EventNote, ObjectWrites, Part, Patch, Phase, Precondition, Step, Write};
use kruise_plan_kit::{Holder, ResourceId, Target};
use kube_cache::{Expectation, Version};

use super::call::delete_options;
use super::split::halves;
use super::{Call, CallId, Failure, Report, StatusForm, StepResult, Stored};
use crate::ApiError;

/// What bounds a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls in flight at once; at least one.
    pub concurrency: usize,
    /// What earlier runs learned about the server.
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
enum Stage {
    /// The write itself.
    Write,
    /// A look at the object that a create ran into.
    Inspect,
    /// The status half of a patch the server may refuse as a whole.
    StatusHalf,
    /// The metadata half, after the status half.
    MetadataHalf,
    /// A look for the object that a deletion must not harm.
    Look,
    /// The deletion, after the look.
    AfterLook,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not started.
    Waiting,
    /// The next call may be sent.
    Due(Stage),
    /// Waiting for a reply.
    InFlight(Stage),
    /// Over.
    Ended,
}

#[derive(Clone, Debug)]
struct Track {
    object: ObjectWrites,
    state: State,
    step: usize,
    /// Version the previous reply of this object returned.
    version: Option<String>,
    has_failed: bool,
}

/// The objects a slow start has begun, and how many it may begin after them.
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
    /// A run that has sent nothing yet.
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
        self.start_chains();
        // A slow start that gives up may open the next phase at once.
        while !self.is_over() && !self.tracks.iter().any(Track::is_active) {
            self.start_chains();
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

    /// Takes the reply to a call; replies to calls that are not in flight are ignored.
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
        let found = outcome.as_ref().ok().filter(|_| stage == Stage::Inspect);
        let holder = found.map(|stored| Holder {
            uid: stored.uid.clone(),
            owners: stored.owners.clone(),
        });
        match verdict(&step.write, stage, outcome, self.report.status_form) {
            Verdict::Next(stage) => track.state = State::Due(stage),
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
                self.step_failed(index, &step, failure);
            }
        }
    }

    /// Is this call for a version of its object that is known to be outdated? It could only be refused.
    pub fn is_overtaken(&self, id: CallId, newest: &dyn Fn(&Target, &str) -> Option<Version>) -> bool {
        let track = self.in_flight.get(&id).and_then(|index| self.tracks.get(*index));
        let Some((track, step)) = track.and_then(|track| Some((track, track.object.steps.get(track.step)?)))
        else {
            return false;
        };
        let Some((uid, version)) = track.guard(&step.write) else {
            return false;
        };
        let looked_at: Option<Version> = version.parse().ok();
        let newest = newest(step.write.target(), uid);
        newest
            .zip(looked_at)
            .is_some_and(|(newest, looked_at)| newest > looked_at)
    }

    /// Takes note that a call was not sent for that reason.
    pub fn overtaken(&mut self, id: CallId) {
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
        let message = format!("{} has changed since it was looked at", step.write.target());
        self.step_failed(index, &step, Failure::Conflict(message));
    }

    /// Starts no further object; those under way run to their end.
    pub fn stop(&mut self) {
        for track in &mut self.tracks {
            if track.state == State::Waiting {
                track.state = State::Ended;
            }
        }
    }

    /// Whether nothing is left to send or to wait for.
    pub fn is_over(&self) -> bool {
        self.tracks.iter().all(|track| track.state == State::Ended)
    }

    /// What the run came to; steps without a reply count as skipped.
    pub fn finish(self) -> Report {
        self.report
    }

    fn start_chains(&mut self) {
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
            if track.object.batching == Batching::SlowStart && !is_injected(Bug::SlowStartOff) {
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

    /// The phase whose objects may start, after cancelling what an earlier failure rules out.
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
        self.record(index, result);
        self.report.expectations.extend(expectation(&step.write, stored));
        self.report.events.extend(step.done.clone());
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
        // A conflict is routine: the next plan settles it, and users need not hear of it.
        let is_news = !matches!(failure, Failure::Conflict(_));
        if let Some(note) = step.failed.as_ref().filter(|_| is_news) {
            self.report.events.push(EventNote {
                reason: note.reason,
                message: format!("{}{}{}", note.prefix, failure.message(), note.suffix),
            });
        }
        if matches!(failure, Failure::NameTaken(_)) {
            self.report.taken.push(step.write.target().clone());
        }
        self.report.failures.push(failure.clone());
        self.record(index, StepResult::Failed(failure));
        if let Some(track) = self.tracks.get_mut(index) {
            track.has_failed = true;
        }
        self.end(index);
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

    /// Skips the merged form on a server known to refuse it.
    fn first_stage(&self, stage: Stage, form: StatusForm) -> Stage {
        let write = self.object.steps.get(self.step).map(|step| &step.write);
        match write {
            Some(Write::Patch {
                part: Part::Status,
                patch,
                ..
            }) if stage == Stage::Write && form == StatusForm::Split && halves(patch).is_some() => {
                Stage::StatusHalf
            }
            Some(Write::Delete {
                precondition: Precondition::Unused(..),
                ..
            }) if stage == Stage::Write => Stage::Look,
            _ => stage,
        }
    }

    /// The object and its version that the next call is for, if it is for one version only.
    fn guard<'t>(&'t self, write: &'t Write) -> Option<(&'t str, &'t str)> {
        let (Write::Patch { precondition, .. } | Write::Delete { precondition, .. }) = write else {
            return None;
        };
        let is_second_half = self.state == State::InFlight(Stage::MetadataHalf);
        match precondition {
            Precondition::UidAndVersion(uid, version) if !is_second_half => Some((uid, version)),
            Precondition::UidAndVersion(uid, _) | Precondition::VersionFromPreviousStep(uid) => {
                Some((uid, self.version.as_deref()?))
            }
            Precondition::Uid(_) | Precondition::Test(..) | Precondition::Unused(..) => None,
        }
    }

    fn call(&self, step: &Step, stage: Stage) -> Call {
        let version = self.version.as_deref();
        match &step.write {
            Write::Create { target, .. } if stage == Stage::Inspect => Call::Get {
                target: target.clone(),
            },
            Write::Create { target, body, .. } => Call::Create {
                target: target.clone(),
                body: body.render(),
            },
            Write::Delete {
                precondition: Precondition::Unused(_, user),
                ..
            } if stage == Stage::Look => Call::Get { target: user.clone() },
            Write::Delete {
                target, precondition, ..
            } => Call::Delete {
                target: target.clone(),
                body: delete_options(precondition, version),
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

/// The status half moved the version: a version guard continues from the version it returned.
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
    guard: &Precondition,
    version: Option<&str>,
) -> Call {
    Call::Patch {
        target: target.clone(),
        part,
        content_type: patch.content_type(),
        body: patch.guarded(guard, version),
    }
}

/// What a write that succeeded makes the caches wait for; nothing where versions cannot be compared.
fn expectation(write: &Write, stored: &Stored) -> Option<Expectation<ResourceId>> {
    let resource = write.target().resource;
    if let Write::Delete { precondition, .. } = write {
        let uid = precondition.uid()?.into();
        return Some(Expectation::Gone { resource, uid });
    }
    let version = stored.version.parse().ok()?;
    Some(Expectation::AtLeast { resource, version })
}

enum Verdict {
    /// Another call of the same step.
    Next(Stage),
    /// Half of the step is done; the other half follows.
    Continue(Stage, Stored),
    Done(StepResult, Stored),
    /// Nothing to do, also not for later steps.
    End(StepResult),
    Failed(Failure),
}

fn verdict(write: &Write, stage: Stage, outcome: Result<Stored, ApiError>, form: StatusForm) -> Verdict {
    match outcome {
        Ok(stored) => accepted(write, stage, stored),
        Err(error) => refused(write, stage, &error, form),
    }
}

fn accepted(write: &Write, stage: Stage, stored: Stored) -> Verdict {
    match (stage, write) {
        (
            Stage::Inspect,
            Write::Create {
                target, owner_uid, ..
            },
        ) => {
            let is_ours = stored.controller.as_ref() == Some(owner_uid);
            if is_ours && !stored.is_terminating {
                return Verdict::Done(StepResult::Adopted, stored);
            }
            Verdict::Failed(Failure::NameTaken(format!("{target} already exists")))
        }
        (Stage::Look, _) => Verdict::End(StepResult::Spared),
        (Stage::StatusHalf, _) => Verdict::Continue(Stage::MetadataHalf, stored),
        _ => Verdict::Done(StepResult::Done, stored),
    }
}

fn refused(write: &Write, stage: Stage, error: &ApiError, form: StatusForm) -> Verdict {
    let message = error.to_string();
    match write {
        Write::Create { .. } if stage == Stage::Write && error.is_already_exists() => {
            return Verdict::Next(Stage::Inspect);
        }
        // The object that stood in the way has gone meanwhile: plan again.
        Write::Create { .. } if stage == Stage::Inspect && error.is_not_found() => {
            return Verdict::Failed(Failure::Conflict(message));
        }
        Write::Delete { .. } if stage == Stage::Look => {
            return if error.is_not_found() {
                Verdict::Next(Stage::AfterLook)
            } else {
                Verdict::Failed(Failure::Refused(message))
            };
        }
        // Deleting what is gone is success: the expectation holds, and later steps may go on.
        Write::Delete { .. } if error.is_not_found() => {
            return Verdict::Done(StepResult::Gone, Stored::default());
        }
        Write::Patch {
            part: Part::Resize,
            target,
            ..
        } if error.is_unknown_path(&target.name) => {
            let why = format!("the server lets nobody resize pods: {message}");
            return Verdict::Failed(Failure::Refused(why));
        }
        Write::Patch { .. } if error.is_not_found() => return Verdict::End(StepResult::Gone),
        Write::Patch {
            part: Part::Status,
            patch,
            ..
        } if stage == Stage::Write
            && form == StatusForm::Merged
            && refuses_content(error)
            && halves(patch).is_some() =>
        {
            return Verdict::Next(Stage::StatusHalf);
        }
        _ => {}
    }
    let is_new = matches!(write, Write::Create { .. }) && stage == Stage::Write && error.may_have_happened();
    if is_injected(Bug::LostReplyRetried) && is_new {
        return Verdict::Failed(Failure::NameTaken(message));
    }
    Verdict::Failed(if error.is_conflict() {
        Failure::Conflict(message)
    } else if stage == Stage::Inspect || error.may_have_happened() {
        // A failed look at an existing object leaves open whose it is.
        Failure::Unknown(message)
    } else {
        Failure::Refused(message)
    })
}

/// A client error about the content of the request: not its target, its timing or its rate.
fn refuses_content(error: &ApiError) -> bool {
    let code = error.status().map(|status| status.code);
    code.is_some_and(|code| (400..500).contains(&code) && !matches!(code, 401 | 404 | 409 | 429))
}
