//! Bringing pods into service: new ones once they are scheduled, updated ones once their containers run what was asked
//! for. Runs whatever the update strategy says, so that every pod becomes ready in the end.

use jiff::Timestamp;
use kruise_api::{
    lifecycle::Lifecycle,
    names::{IN_PLACE_UPDATE_READY, INPLACE_GRACE, INPLACE_STATE, POD_TEMPLATE_HASH, REVISION_HASH},
};
use kruise_plan_kit::{
    Chain, Intent, Part,
    inplace::{self, Progress},
    lifecycle::{self, State},
    put,
    revision::Revision,
};
use kruise_views::PodView;
use serde_json::{Value, json};

use super::{
    members::{Member, Side},
    mover::guard_by_version,
    observe::Observed,
    writes,
};

/// What became of one pod.
pub(super) struct Step {
    /// The write that moves it on, if it can move.
    pub(super) chain: Option<Chain>,
    /// How its last in-place update stands.
    pub(super) progress: Progress,
}

impl Step {
    fn waits(progress: Progress) -> Self {
        Self {
            chain: None,
            progress,
        }
    }
}

/// Moves one pod towards service.
pub(super) fn refresh<'r>(
    observed: &Observed<'_>,
    member: &Member<'_>,
    template_of: &dyn Fn(&str) -> Option<&'r Revision>,
    now: Timestamp,
) -> Step {
    let pod = member.pod;
    let is_scheduled = pod.node.is_some();
    match progress(member, template_of, now) {
        Progress::Complete if is_scheduled => {}
        Progress::Due {
            resize,
            patch,
            reason,
        } => {
            return Step {
                chain: Some(go_on(observed, pod, resize, patch, reason)),
                progress: Progress::Complete,
            };
        }
        progress @ Progress::Grace(_) => return Step::waits(progress),
        // Nothing runs yet that could be brought into service. What was begun goes on all the same: a pod that asks for
        // more than any node has is scheduled only once it asks for less.
        _ if !is_scheduled => return Step::waits(Progress::Complete),
        progress => return Step::waits(progress),
    }
    let lifecycle = observed.set.spec.lifecycle.as_ref();
    let next = next_state(observed, member);
    let mut patch = inplace::finish(pod, next, lifecycle, now);
    let label = pod.labels.get(REVISION_HASH).unwrap_or_default();
    if pod.labels.get(POD_TEMPLATE_HASH).is_none() && !label.is_empty() {
        let finish = patch.get_or_insert_with(|| inplace::Finish {
            patch: json!({}),
            conditions: false,
            exact: false,
        });
        let path = ["metadata", "labels", POD_TEMPLATE_HASH];
        put(&mut finish.patch, &path, writes::hash_of(label).into());
    }
    let chain = patch.map(|finish| {
        let (intent, part) = if finish.conditions {
            (Intent::MarkReady, Part::Status)
        } else {
            (Intent::SetLifecycle, Part::Main)
        };
        let reason = reason(member, next);
        // A pod that was updated in place is put back only in the very state that was looked at.
        let step = if finish.exact || pod.annotations.get(INPLACE_STATE).is_some() {
            writes::patch_exact(pod, intent, part, finish.patch, reason)
        } else {
            writes::patch(pod, intent, part, finish.patch, reason)
        };
        writes::chain(vec![step])
    });
    Step {
        chain,
        progress: Progress::Complete,
    }
}

/// The next part of an update, right for this very version of the pod.
fn go_on(
    observed: &Observed<'_>,
    pod: &PodView,
    mut resize: Option<Value>,
    mut patch: Value,
    reason: &str,
) -> Chain {
    if !observed.options.vertical_scaling.has_endpoint()
        && let Some(resize) = resize.take()
    {
        inplace::fold(resize, &mut patch);
    }
    let step = |intent, part, patch: Value| writes::patch(pod, intent, part, patch, reason.into());
    let resize = resize.map(|resize| step(Intent::ResizePod, Part::Resize, resize));
    let update = step(Intent::UpdateInPlace, Part::Main, patch);
    let mut steps: Vec<_> = resize.into_iter().chain([update]).collect();
    guard_by_version(&mut steps, pod);
    writes::chain(steps)
}

fn reason(member: &Member<'_>, next: Option<State>) -> String {
    match (member.state, next) {
        (State::PreparingNormal, Some(State::Normal)) => "it is scheduled".into(),
        (State::Updating, Some(_)) if is_resized(member.pod) => {
            "its containers have their new resources".into()
        }
        (State::Updating, Some(_)) => "its containers run the new images".into(),
        (_, Some(next)) => format!("its hooks let it become {}", next.as_str()),
        (_, None) => "a readiness condition is not as it should be".into(),
    }
}

/// Did resources change, and no image?
fn is_resized(pod: &PodView) -> bool {
    let state = inplace::read_state(pod).ok().flatten();
    state.is_some_and(|state| state.update_resources && !state.update_images)
}

/// Reading the progress costs a parse, so pods at rest are not asked.
fn progress<'r>(
    member: &Member<'_>,
    template_of: &dyn Fn(&str) -> Option<&'r Revision>,
    now: Timestamp,
) -> Progress {
    let pod = member.pod;
    let at_rest = !matches!(member.state, State::Updating)
        && pod.is_true(IN_PLACE_UPDATE_READY)
        && pod.annotations.get(INPLACE_GRACE).is_none();
    if at_rest || pod.annotations.is_empty() {
        return Progress::Complete;
    }
    let revision = pod.labels.get(REVISION_HASH).and_then(template_of);
    inplace::progress(pod, revision.map(|revision| &*revision.template), now)
}

/// The lifecycle state a complete pod enters, if it leaves the one it is in.
fn next_state(observed: &Observed<'_>, member: &Member<'_>) -> Option<State> {
    let pod = member.pod;
    let lifecycle = observed.set.spec.lifecycle.as_ref();
    // With the gate an updated pod may be held on its way back; whether it still is to go, updating decides.
    let forward_only = !observed.options.partition_rollback;
    match member.state {
        State::PreparingNormal => {
            let hook = lifecycle.and_then(|lifecycle| lifecycle.pre_normal.as_ref());
            (hook.is_none() || lifecycle::fully_hooked(hook, pod)).then_some(State::Normal)
        }
        State::PreparingUpdate if member.side == Side::New && forward_only => {
            Some(after_update(member, lifecycle))
        }
        State::Updating => Some(after_update(member, lifecycle)),
        State::Updated if after_update(member, lifecycle) == State::Normal => Some(State::Normal),
        _ => None,
    }
}

/// Where a pod goes once nothing is left to update: back into service, or first to its hook.
pub(super) fn after_update(member: &Member<'_>, lifecycle: Option<&Lifecycle>) -> State {
    let hook = lifecycle.and_then(|lifecycle| lifecycle.in_place_update.as_ref());
    if hook.is_some() && !lifecycle::fully_hooked(hook, member.pod) {
        State::Updated
    } else {
        State::Normal
    }
}
