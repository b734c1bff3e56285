//! What the set wants, and how each of its pods is, in words.

use std::{collections::BTreeSet, fmt::Write as _};

use kruise_plan_kit::{Explain, Plan, Why, availability::Service, lifecycle::State};

use super::{decision::Decision, members::Member};

/// Explains the limits, and each pod whose state no decision of the plan explains. Leaves one line for each pod:
/// the first, which is about the decision that comes before the others.
pub(super) fn explain(decision: &Decision<'_>, plan: &mut Plan) {
    if decision.rollout.explain == Explain::No {
        return;
    }
    let limits = decision.limits;
    let how = if limits.ordered {
        "one after the other"
    } else {
        "in parallel"
    };
    let missing = decision.members.missing(&decision.ordinals);
    let mut text = format!(
        "wants {} pods {how}, keeps {} on the current revision, lets {} be out of service",
        limits.replicas, limits.partition, limits.max_unavailable
    );
    if missing > 0 {
        let _ = write!(text, "; {missing} missing");
    }
    plan.why.insert(0, Why::of_set(text));
    decision.explain_missing(plan);
    let mut explained = BTreeSet::new();
    plan.why
        .retain(|why| why.about.is_empty() || explained.insert(why.about.clone()));
    let targets = plan.writes.iter().flat_map(|object| &object.steps);
    explained.extend(targets.map(|step| step.write.target().name.clone()));
    for member in decision.members.all() {
        let name = &*member.pod.view.name;
        if !explained.contains(name) {
            let mut text = state(member);
            if decision.resize.waits_for_start(&decision.claims, member.ordinal) {
                text.push_str("; a claim has grown, and its file system grows when the pod starts anew");
            }
            plan.why.push(Why::new(name, text));
        }
    }
}

/// How a pod is that nothing is done to.
fn state(member: &Member<'_>) -> String {
    let pod = &member.pod;
    if member.is_leaving() {
        return "is being deleted".into();
    }
    if member.has_ended() {
        return "has ended".into();
    }
    match (pod.state, pod.service) {
        (State::PreparingDelete, _) => "leaves as soon as its preDelete hook lets it".into(),
        (State::PreparingUpdate, _) => "waits before its update: its inPlaceUpdate hook holds it".into(),
        (State::Updating, _) => "is being updated in place".into(),
        (State::Updated, _) => "is updated, and waits until its inPlaceUpdate hook is back".into(),
        (State::PreparingNormal, _) if pod.view.node.is_some() => {
            "waits until its preNormal hook is complete".into()
        }
        (_, Service::Settling(left)) => {
            let seconds = left.as_secs_f32().ceil();
            format!("is ready, and in service in {seconds} s, because of minReadySeconds")
        }
        (_, Service::Available) if pod.updated => "is up to date and in service".into(),
        (_, Service::Available) => "is in service, and not up to date".into(),
        _ if pod.updated => "is up to date, not in service yet".into(),
        _ => "is neither up to date nor in service".into(),
    }
}
