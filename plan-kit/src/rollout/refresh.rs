//! Bringing pods into service: new ones once they are scheduled, updated ones once their containers run what was asked
//! for. This is done under every update strategy, so that every pod becomes ready in the end.

use std::collections::BTreeSet;

use kruise_api::names::{IN_PLACE_UPDATE_READY, INPLACE_GRACE, INPLACE_STATE, POD_TEMPLATE_HASH};
use kruise_views::PodView;
use serde_json::{Value, json};

use super::{Drift, Pod, Rollout, drift::replaced_container, updater::begin_anew};
use crate::{
    Intent, events,
    history::revision::short_hash,
    inplace::{self, Amounts, Finish, Progress},
    lifecycle::{self, State},
    plan::{EventNote, ObjectWrites, Plan},
    pod_writes::{Guard, guard_by_version, patch},
    put,
    write::{Part, Target},
};

/// The writes that move pods towards service. What pods wait for is written into the plan.
pub fn refresh(rollout: &Rollout<'_>, pods: &[Pod<'_>], plan: &mut Plan) -> Vec<ObjectWrites> {
    let mut writes = Vec::new();
    report_sidecars(rollout, pods, plan);
    for pod in pods {
        if pod.drift == Drift::Interrupted
            && pod.state != State::PreparingDelete
            && let Some(object) = begin_anew(rollout, pod)
        {
            writes.push(object);
            continue;
        }
        let waits = match rollout.progress(pod) {
            // Nothing runs yet that could be brought into service. An update that was begun is continued all the
            // same: a pod that requests more than any node has is scheduled only once it requests less.
            Progress::Complete | Progress::Waiting(_) | Progress::Settling(_) | Progress::Unreadable(_)
                if pod.view.node.is_none() =>
            {
                continue;
            }
            Progress::Complete => {
                writes.extend(rollout.finish(pod));
                continue;
            }
            Progress::Due {
                resize,
                patch,
                reason,
            } => {
                writes.push(rollout.go_on(pod.view, resize, patch, reason));
                continue;
            }
            Progress::Waiting(text) => format!("is being updated in place: {text}"),
            Progress::Grace(left) => {
                plan.requeue_after([left]);
                "is out of service and gets its grace period before it changes".to_owned()
            }
            Progress::Settling(left) => {
                plan.requeue_after([left]);
                "is out of service until its node reports on its new containers, whose startup probes have not run yet"
                    .to_owned()
            }
            Progress::Unreadable(error) => {
                let name = &pod.view.name;
                let message = format!("pod {name}: its in-place update state cannot be read: {error}");
                plan.events
                    .push(EventNote::new(&events::INVALID_STATE, &*message));
                message
            }
        };
        rollout.explain(plan, pod, waits);
    }
    writes
}

/// Reports pods in which a sidecar has the name of a container of the template. One event is enough.
fn report_sidecars(rollout: &Rollout<'_>, pods: &[Pod<'_>], plan: &mut Plan) {
    let mut is_told = false;
    for pod in pods.iter().filter(|pod| pod.drift == Drift::Sidecar) {
        let Some(text) = replaced_container(&rollout.update, pod.view) else {
            continue;
        };
        if !is_told {
            let message = format!("pod {}: {text}", pod.view.name);
            plan.events
                .push(EventNote::new(&events::CONTAINER_REPLACED, message));
            is_told = true;
        }
        rollout.explain(plan, pod, text);
    }
}

/// Adds the writes of [`refresh`] to those that a plan has decided since it had `decided`. A plan writes each pod
/// once: what brings it into service can wait for what takes it out.
pub fn add_ready(ready: Vec<ObjectWrites>, decided: usize, plan: &mut Plan) {
    if ready.is_empty() {
        return;
    }
    let steps = plan.writes.iter().skip(decided).flat_map(|object| &object.steps);
    let taken: BTreeSet<Target> = steps.map(|step| step.write.target().clone()).collect();
    let is_free = |object: &ObjectWrites| {
        let mut steps = object.steps.iter();
        steps.all(|step| !taken.contains(step.write.target()))
    };
    plan.writes.extend(ready.into_iter().filter(is_free));
}

impl Rollout<'_> {
    /// How far the last in-place update of a pod is. Reading it costs a parse, so pods at rest are not asked.
    fn progress(&self, pod: &Pod<'_>) -> Progress {
        let view = pod.view;
        let at_rest = pod.state != State::Updating
            && view.is_true(IN_PLACE_UPDATE_READY)
            && view.annotations.get(INPLACE_GRACE).is_none();
        if at_rest || view.annotations.is_empty() {
            return Progress::Complete;
        }
        inplace::progress(view, self.now)
    }

    /// The next part of an update, right for this very version of the pod.
    fn go_on(
        &self,
        pod: &PodView,
        mut resize: Option<Value>,
        mut update: Value,
        reason: &str,
    ) -> ObjectWrites {
        if !self.options.vertical_scaling.has_endpoint()
            && let Some(resize) = resize.take()
        {
            inplace::fold(resize, &mut update);
        }
        let step = |intent, part, body: Value| patch(pod, intent, part, body, Guard::SamePod, reason);
        let resize = resize.map(|resize| step(Intent::RESIZE_POD, Part::Resize, resize));
        let update = step(Intent::UPDATE_IN_PLACE, Part::Main, update);
        let mut steps: Vec<_> = resize.into_iter().chain([update]).collect();
        guard_by_version(&mut steps, pod);
        ObjectWrites::of_pod(steps)
    }

    /// The write that ends an update, or brings a new pod into service, if one is needed.
    fn finish(&self, pod: &Pod<'_>) -> Option<ObjectWrites> {
        let (view, label) = (pod.view, pod.label());
        let next = self.next_state(pod);
        let mut finish = inplace::finish(view, next, self.lifecycle, self.now);
        if self.options.template_hash && view.labels.get(POD_TEMPLATE_HASH).is_none() && !label.is_empty() {
            let finish = finish.get_or_insert_with(|| Finish {
                patch: json!({}),
                conditions: false,
                exact: false,
            });
            let path = ["metadata", "labels", POD_TEMPLATE_HASH];
            put(&mut finish.patch, &path, short_hash(label).into());
        }
        let mut finish = finish?;
        let wanted = || Some(Amounts::of(&self.history.by_label(label)?.template));
        if let Some(record) = inplace::record_of_arrival(view, wanted, self.options.vertical_scaling) {
            put(
                &mut finish.patch,
                &["metadata", "annotations", INPLACE_STATE],
                record.into(),
            );
        }
        let (intent, part) = if finish.conditions {
            (Intent::MARK_READY, Part::Status)
        } else {
            (Intent::SET_LIFECYCLE, Part::Main)
        };
        // A pod that was updated in place is put back only in the very state that was read.
        let guard = if finish.exact || view.annotations.get(INPLACE_STATE).is_some() {
            Guard::Unchanged
        } else {
            Guard::SamePod
        };
        let step = patch(view, intent, part, finish.patch, guard, reason(pod, next));
        Some(ObjectWrites::of_pod(vec![step]))
    }

    /// The lifecycle state a complete pod enters, if it leaves the one it is in.
    fn next_state(&self, pod: &Pod<'_>) -> Option<State> {
        match pod.state {
            State::PreparingNormal => {
                let hook = self.lifecycle.and_then(|hooks| hooks.pre_normal.as_ref());
                (hook.is_none() || lifecycle::fully_hooked(hook, pod.view)).then_some(State::Normal)
            }
            State::PreparingUpdate if pod.updated && !self.options.goes_back => Some(self.after_update(pod)),
            State::Updating => Some(self.after_update(pod)),
            State::Updated if self.after_update(pod) == State::Normal => Some(State::Normal),
            _ => None,
        }
    }
}

fn reason(pod: &Pod<'_>, next: Option<State>) -> String {
    match (pod.state, next) {
        (State::PreparingNormal, Some(State::Normal)) => "it is scheduled".into(),
        (State::Updating, Some(_)) if is_resized(pod.view) => {
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
