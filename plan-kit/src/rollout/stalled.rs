//! A rollout that does not move: what it waits for, in words.
//!
//! The condition `Stalled` and one event report it when the deadline passes or, where there is none, once nothing
//! has moved for ten minutes. After a deadline that stays exceeded in spite of progress, nothing has to move for as
//! long as that again. The condition is removed when something moves or nothing is left to roll out, and for
//! nothing else that is done meanwhile. Attempts that fail move nothing: a set whose writes are refused is reported
//! after ten minutes of that, too. `kruise explain` reports it when nothing has moved for as long as that, from
//! what pods report.
//!
//! A rollout whose new pods the API server refuses is reported at once, with the server's words.
//!
//! A pod that breaks after it was in service is no rollout ([`is_arriving`]): tools take a workload with this
//! condition for a failed one.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    condition::Condition,
    names::{
        IN_PLACE_UPDATE_READY, LIFECYCLE_TIMESTAMP,
        conditions::{DEADLINE_EXCEEDED, NOTHING_MOVED, PODS_REFUSED, READY, STALLED},
    },
};
use kruise_views::{ConditionView, PodView, Truth};

use super::{Drift, Pod, Rollout, conditions, progressing::Late};
use crate::{EventNote, Explain, Memory, events, inplace, lifecycle::State, plan::Why};

/// Without a deadline.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// How long after a pod was started, or updated in place, its kubelet may report for the first time that it is not
/// ready.
const FIRST_REPORT: SignedDuration = SignedDuration::from_secs(10);

/// Has the pod still to come into service, since it was made or last updated?
pub fn is_arriving(pod: &Pod<'_>) -> bool {
    match pod.state {
        _ if pod.service.is_available() => false,
        State::PreparingDelete => false,
        State::PreparingNormal | State::PreparingUpdate | State::Updating | State::Updated => true,
        State::None | State::Normal | State::Foreign => !was_ready(pod.view),
    }
}

/// Was the pod ready at any time since it was started, or last updated in place? One that never was has not been ready
/// since then.
fn was_ready(pod: &PodView) -> bool {
    let Some(ready) = pod.condition(READY).filter(|_| pod.node.is_some()) else {
        return false;
    };
    let begun = ["PodScheduled", IN_PLACE_UPDATE_READY].map(|kind| {
        let done = pod.condition(kind).filter(|done| done.status == Truth::True);
        done.and_then(|done| done.since)
    });
    let begun = begun.into_iter().flatten().chain(pod.created).max();
    let broke = |(since, begun): (Timestamp, Timestamp)| since.duration_since(begun) > FIRST_REPORT;
    ready.status == Truth::True || ready.since.zip(begun).is_none_or(broke)
}

/// What holds the set up, most important things first.
pub fn held_by(rollout: &Rollout<'_>, pods: &[Pod<'_>], memory: &Memory) -> String {
    let count = |test: &dyn Fn(&Pod<'_>) -> bool| pods.iter().filter(|pod| test(pod)).count();
    let serves = |pod: &Pod<'_>| pod.service.is_available();
    let missing = usize::try_from(rollout.budget.replicas)
        .unwrap_or(0)
        .saturating_sub(pods.len());
    // A pod without a `preNormal` hook leaves `PreparingNormal` as soon as it has a node.
    let hooked = |pod: &Pod<'_>| match pod.state {
        State::PreparingUpdate | State::PreparingDelete | State::Updated => true,
        State::PreparingNormal => pod.view.node.is_some(),
        _ => false,
    };
    let counts = [
        (missing, "missing"),
        (
            count(&|pod| pod.updated && !serves(pod)),
            "updated and not available",
        ),
        (
            count(&|pod| !pod.updated && !serves(pod)),
            "of older revisions and not available",
        ),
        (
            count(&|pod| pod.drift == Drift::Sidecar),
            "with a sidecar in the place of a container of the template",
        ),
        (count(&|pod| pod.view.node.is_none()), "without a node"),
        (count(&hooked), "held by a lifecycle hook"),
        (
            count(&|pod| refusal(pod).is_some()),
            "waiting for resources that their nodes do not give them",
        ),
        (count(&|pod| !pod.updated), "of older revisions in all"),
    ];
    let mut text = String::new();
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        let comma = if text.is_empty() { "pods: " } else { ", " };
        let _ = write!(text, "{comma}{count} {what}");
    }
    let held = rollout.charges.held();
    if !held.is_empty() {
        let comma = if text.is_empty() { "pods: " } else { ", " };
        let _ = write!(text, "{comma}{held}");
    }
    for error in [&memory.scale_error, &memory.update_error].into_iter().flatten() {
        let _ = write!(text, "; the last attempt failed: {error}");
    }
    text
}

/// The condition of a pod being updated whose node does not give it the resources it asks for.
fn refusal<'m>(pod: &Pod<'m>) -> Option<&'m ConditionView> {
    inplace::refusal(pod.view).filter(|_| pod.state == State::Updating)
}

/// The pods that ask for more than their nodes can ever give, in words.
pub fn infeasible(pods: &[Pod<'_>]) -> Option<String> {
    let mut stuck = pods.iter().filter_map(|pod| {
        let refusal = refusal(pod).filter(|refusal| inplace::is_infeasible(refusal))?;
        Some((&pod.view.name, &refusal.message))
    });
    let (name, message) = stuck.next()?;
    let others = match stuck.count() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    Some(format!(
        "pod {name}{others}: no room for its new resources on its node, ever: {message}"
    ))
}

/// A workload that may wait for something.
pub struct Waiting<'a> {
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Seconds without progress that the specification allows.
    pub deadline: Option<i32>,
    /// Has that time passed?
    pub late: Option<Late>,
    /// Is something left to roll out?
    pub unfinished: bool,
    /// Nothing is to be done now.
    pub idle: bool,
    /// Since when its writes are refused.
    pub failing: Option<Timestamp>,
    /// Time until one of its pods is available by itself.
    pub settled: Option<Duration>,
    /// All its pods.
    pub pods: &'a [Arc<PodView>],
    /// Describes what is waited for.
    pub held_by: &'a dyn Fn() -> String,
}

/// What is reported of a workload that may wait.
#[derive(Default)]
pub struct Report {
    /// When to plan again.
    pub again: Option<Duration>,
    /// The condition became True.
    pub news: Option<EventNote>,
    /// Why nothing has moved for long, if that is so.
    pub why: Option<Why>,
}

/// Adds the condition `Stalled` of a workload that waits for something, or removes it once something has moved or
/// nothing is left to do.
pub fn report(rollout: &Rollout<'_>, waiting: &Waiting<'_>, all: &mut Vec<Condition>) -> Report {
    let now = rollout.now;
    if let Some(report) = refused(rollout, waiting, all) {
        return report;
    }
    let watch = Watch {
        deadline: waiting.deadline,
        late: waiting.late.filter(|_| waiting.unfinished),
        quiet: Quiet::of(rollout, waiting, all),
        held_by: waiting.held_by,
    };
    let stall = watch.stalled(all, now);
    let why = Some(&watch).filter(|_| rollout.explain == Explain::Yes);
    Report {
        again: stall.again,
        news: stall
            .news
            .map(|message| EventNote::new(&events::STALLED, message)),
        why: why.and_then(|watch| watch.explain(conditions::get(all, STALLED).is_some(), now)),
    }
}

/// The condition of a rollout that deletes no pods, because the server refuses those that would come in their place.
fn refused(rollout: &Rollout<'_>, waiting: &Waiting<'_>, all: &mut Vec<Condition>) -> Option<Report> {
    let is_held = rollout.strategy.held().is_some();
    let (words, again) = rollout
        .trying
        .refused()
        .filter(|_| waiting.unfinished && !is_held)?;
    let before = conditions::get(all, STALLED).filter(|before| before.reason == PODS_REFUSED);
    let is_news = before.is_none();
    if before.is_none_or(|before| before.message != words) {
        conditions::set(all, STALLED, ("True", PODS_REFUSED), words.clone(), rollout.now);
    }
    let explains = rollout.explain == Explain::Yes;
    Some(Report {
        again: Some(again),
        news: is_news.then(|| EventNote::new(&events::STALLED, words.clone())),
        why: explains.then(|| Why::of_set(format!("stalled: {words}"))),
    })
}

/// What became of the condition `Stalled`.
#[derive(Default)]
struct Stall {
    /// When to plan again.
    again: Option<Duration>,
    /// It became True: its message.
    news: Option<String>,
}

/// How long a set with something left to do has not moved.
#[derive(Default)]
struct Quiet {
    /// When something last moved; `None` if nothing is left to do. Not computed where it is not needed.
    moved: Option<Timestamp>,
    /// Since when it waits; `None` if something is done now, and not refused, or comes by itself.
    since: Option<Timestamp>,
}

impl Quiet {
    fn of(rollout: &Rollout<'_>, waiting: &Waiting<'_>, all: &[Condition]) -> Self {
        let Waiting { failing, settled, .. } = waiting;
        let waits = (waiting.idle || failing.is_some()) && settled.is_none();
        let is_reported = || conditions::get(all, STALLED).is_some();
        if !waiting.unfinished || !(waits || is_reported()) {
            return Self::default();
        }
        let update = rollout.history.get(&rollout.update.name);
        let made = [waiting.created, update.and_then(|view| view.created)];
        let moved = last_move(waiting.deadline, made, waiting.pods, rollout.now);
        // What there is to do may be newer than what last moved, but not newer than the first refusal.
        let since = moved.filter(|_| waits).max(failing.filter(|_| waits));
        Self { moved, since }
    }
}

/// What decides about the condition `Stalled`.
struct Watch<'a> {
    deadline: Option<i32>,
    /// Has that time passed for a rollout with something left to do?
    late: Option<Late>,
    /// How long nothing has moved, where there is no deadline.
    quiet: Quiet,
    held_by: &'a dyn Fn() -> String,
}

impl Watch<'_> {
    fn stalled(&self, all: &mut Vec<Condition>, now: Timestamp) -> Stall {
        let Some(deadline) = self.deadline else {
            return self.without_deadline(all, now);
        };
        let stays = self
            .late
            .is_some_and(|late| late != Late::Still { progressed: true });
        retain(all, stays, DEADLINE_EXCEEDED);
        if conditions::get(all, STALLED).is_some() {
            return Stall::default();
        }
        let waited = format!("no progress for {deadline} seconds");
        match self.late {
            None => Stall::default(),
            Some(Late::Now) => Stall::with(all, DEADLINE_EXCEEDED, described(waited, &(self.held_by)()), now),
            Some(Late::Still { .. }) => self.once_quiet(all, DEADLINE_EXCEEDED, &waited, now),
        }
    }

    fn without_deadline(&self, all: &mut Vec<Condition>, now: Timestamp) -> Stall {
        let moved = self.quiet.moved.map(|moved| now.duration_since(moved));
        let stays = moved.is_some_and(|quiet| quiet > PATIENCE);
        retain(all, stays, NOTHING_MOVED);
        if conditions::get(all, STALLED).is_some() {
            return Stall::default();
        }
        let waited = format!("nothing has moved for {} minutes", PATIENCE.as_mins());
        self.once_quiet(all, NOTHING_MOVED, &waited, now)
    }

    /// The condition becomes True once nothing has moved for as long as is waited.
    fn once_quiet(&self, all: &mut Vec<Condition>, reason: &str, waited: &str, now: Timestamp) -> Stall {
        let Some(quiet) = self.quiet.since.map(|since| now.duration_since(since)) else {
            return Stall::default();
        };
        let patience = patience(self.deadline);
        if quiet <= patience {
            // A second more, because it has to be longer.
            let left = (patience - quiet).unsigned_abs() + Duration::from_secs(1);
            return Stall {
                again: Some(left),
                news: None,
            };
        }
        Stall::with(all, reason, described(waited.to_owned(), &(self.held_by)()), now)
    }

    /// The line of `kruise explain`, if nothing has moved for long.
    fn explain(&self, is_reported: bool, now: Timestamp) -> Option<Why> {
        let quiet = self.quiet.since.map(|since| now.duration_since(since));
        let quiet = quiet.filter(|quiet| *quiet > patience(self.deadline));
        let waited = match (quiet, self.deadline) {
            (Some(quiet), _) => format!("nothing has moved for {} min", quiet.as_mins()),
            (None, Some(deadline)) if is_reported => format!("no progress for {deadline} s"),
            _ => return None,
        };
        let text = described(waited, &(self.held_by)());
        Some(Why::of_set(format!("stalled: {text}")))
    }
}

/// Removes the condition, unless it `stays` and has this reason.
fn retain(all: &mut Vec<Condition>, stays: bool, reason: &str) {
    all.retain(|condition| condition.kind != STALLED || (stays && condition.reason == reason));
}

fn described(waited: String, held_by: &str) -> String {
    if held_by.is_empty() {
        return waited;
    }
    format!("{waited}; {held_by}")
}

impl Stall {
    /// The condition becomes True.
    fn with(all: &mut Vec<Condition>, reason: &str, message: String, now: Timestamp) -> Self {
        conditions::set(all, STALLED, ("True", reason), message.clone(), now);
        Self {
            again: None,
            news: Some(message),
        }
    }
}

/// How long nothing may move.
fn patience(deadline: Option<i32>) -> SignedDuration {
    deadline.map_or(PATIENCE, |seconds| SignedDuration::from_secs(i64::from(seconds)))
}

/// When the set or its update revision was made (`made`), or a pod was last made, changed its state or its service, or
/// should have been gone.
fn last_move(
    deadline: Option<i32>,
    made: [Option<Timestamp>; 2],
    pods: &[Arc<PodView>],
    now: Timestamp,
) -> Option<Timestamp> {
    let of_pods = pods.iter().flat_map(|pod| {
        let served = pod.conditions.iter().filter_map(|condition| condition.since);
        pod.created.into_iter().chain(pod.gone_by).chain(served)
    });
    let seen = of_pods.chain(made.into_iter().flatten()).max();
    // Reading the stamps of thousands of pods is expensive, and a pod that changes its state mostly changes its
    // service.
    if seen.is_some_and(|seen| now.duration_since(seen) <= patience(deadline)) {
        return seen;
    }
    let stamps = pods
        .iter()
        .filter_map(|pod| pod.annotations.get(LIFECYCLE_TIMESTAMP)?.parse().ok());
    stamps.chain(seen).max()
}
