//! The order of decisions.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::names::sidecarterminator::REQUEST_IGNORED;
use kruise_plan_kit::{
    ObjectWrites, Plan, Step, Why,
    injected::is_injected,
    ledger::{Ask, Charges, Operation},
};
use kruise_views::{MarkedSidecar, MarkedView, PodView};

use super::{
    groups::{self, Groups},
    requests::{Due, Requests, stem},
    snapshot::Snapshot,
    warnings, writes,
};

/// From a plan whose node is missing to the next. A node that is gone for good takes its pods with it.
const NODE_MISSING: Duration = Duration::from_secs(30);

/// Has this pod sidecars to be stopped?
pub fn concerns(pod: &PodView) -> bool {
    groups::unended(pod).is_some()
}

/// Stops what is to be stopped.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let pod = snapshot.pod;
    let Some(marked) = groups::unended(pod) else {
        return plan;
    };
    if !groups::has_main(pod, marked) {
        warnings::no_main(&mut plan, snapshot.memory);
        return plan;
    }
    let Some(node) = snapshot.node else {
        plan.why.push(Why::of_set("the node of the pod does not exist"));
        plan.requeue = Some(NODE_MISSING);
        return plan;
    };
    let groups = Groups::of(marked, node);
    // A pod that is ended for others of its sidecars takes these with it.
    if !groups.unstoppable.is_empty() && groups.ignored.is_empty() && pod.is_active() {
        warnings::unstoppable(&mut plan, snapshot.memory, &groups.unstoppable, node.is_virtual());
    }
    swap(snapshot, &groups, &mut plan, now);
    let mut steps = Vec::new();
    if !groups.normal.is_empty() {
        request(
            snapshot,
            marked,
            (&groups.normal, &stem(pod)),
            (&mut steps, &mut plan),
            now,
        );
    }
    let is_turn_of_ignored = groups.normal.is_empty() || is_injected("IgnoredWithOthers");
    if is_turn_of_ignored && !groups.ignored.is_empty() {
        if pod.is_active() {
            steps.push(writes::end_pod(
                pod,
                groups::have_mains_succeeded(pod, marked),
                now,
            ));
        }
        let base = name_of_ignored(pod, marked);
        request(
            snapshot,
            marked,
            (&groups.ignored, &base),
            (&mut steps, &mut plan),
            now,
        );
    }
    if !steps.is_empty() {
        plan.writes.push(ObjectWrites::of_pod(steps));
    }
    plan
}

/// The name of the first request for sidecars whose exit codes do not count. OpenKruise has one name for all requests.
fn name_of_ignored(pod: &PodView, marked: &MarkedView) -> String {
    let mut sidecars = marked.sidecars.iter();
    let has_others = sidecars.any(|sidecar| sidecar.by_request && !sidecar.ignores_exit_code);
    let suffix = if has_others { REQUEST_IGNORED } else { "" };
    format!("{}{suffix}", stem(pod))
}

/// Images of sidecars on a virtual node.
fn swap(snapshot: &Snapshot<'_>, groups: &Groups<'_>, plan: &mut Plan, now: Timestamp) {
    let pod = snapshot.pod;
    let is_to_swap = |sidecar: &&MarkedSidecar| pod.image_of(&sidecar.name) != Some(&*sidecar.image);
    let sidecars: Vec<&MarkedSidecar> = groups.in_place.iter().copied().filter(is_to_swap).collect();
    if sidecars.is_empty() {
        return;
    }
    let charges = Charges::new(snapshot.budgets, now);
    match charges.ask(pod, Operation::Update) {
        Ok(()) => {
            let step = writes::swap(pod, &sidecars);
            plan.writes.push(ObjectWrites::of_pod(vec![step]));
            charges.write(plan);
        }
        Err(why) => plan.why.push(Why::of_set(why)),
    }
}

/// A request for these sidecars, unless one is at work.
fn request(
    snapshot: &Snapshot<'_>,
    marked: &MarkedView,
    (sidecars, base): (&[&MarkedSidecar], &str),
    (steps, plan): (&mut Vec<Step>, &mut Plan),
    now: Timestamp,
) {
    let pod = snapshot.pod;
    let requests = Requests::of(pod, marked, snapshot.requests);
    if requests.are_at_work() && !is_injected("TerminatedTwice") {
        plan.why
            .push(Why::of_set("the agent of its node is about to stop sidecars"));
        return;
    }
    let is_unstarted = |sidecar: &&MarkedSidecar| {
        let status = pod.status_of(&sidecar.name);
        status.is_none_or(|status| status.container_id.is_empty())
    };
    let unstarted: Vec<&MarkedSidecar> = sidecars.iter().copied().filter(is_unstarted).collect();
    if !unstarted.is_empty() && pod.is_active() && steps.is_empty() {
        warnings::unstarted(plan, snapshot.memory, &unstarted);
    }
    let (mut targets, mut restarted) = (Vec::new(), Vec::new());
    for sidecar in sidecars.iter().copied() {
        match requests.due(sidecar, now) {
            Due::At(due, is_new_run) if due <= now => {
                targets.push(sidecar);
                if is_new_run {
                    restarted.push(sidecar);
                }
            }
            Due::At(due, _) => {
                let left = due.duration_since(now).unsigned_abs();
                plan.requeue_after([left]);
            }
            Due::Later => {}
        }
    }
    if targets.is_empty() {
        return;
    }
    steps.extend(requests.open().map(|open| writes::end_request(open, now)));
    let name = requests.next_name(base, |name| snapshot.memory.taken_names.contains(name));
    steps.push(writes::request(pod, &name, &targets, name == base));
    if !restarted.is_empty() {
        warnings::restarted(plan, snapshot.memory, &restarted);
    }
}
