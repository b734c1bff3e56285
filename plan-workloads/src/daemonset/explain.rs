//! What the set wants, and how each of its nodes and pods is, in words.

use std::{collections::BTreeSet, fmt::Write as _};

use kruise_plan_kit::{Explain, Plan, Why, availability::Service, lifecycle::State};

use super::{decision::Decision, places::Member};

/// Explains the limits, the nodes without a pod, and each pod whose state no decision of the plan explains. Leaves
/// one line for each: the first, which is about the decision that comes before the others.
pub(super) fn explain(decision: &Decision<'_>, plan: &mut Plan) {
    if decision.rollout.explain == Explain::No {
        return;
    }
    plan.why.insert(0, Why::of_set(wants(decision)));
    let mut explained = BTreeSet::new();
    plan.why
        .retain(|why| why.about.is_empty() || explained.insert(why.about.clone()));
    let targets = plan.writes.iter().flat_map(|object| &object.steps);
    explained.extend(targets.map(|step| step.write.target().name.clone()));
    for place in &decision.places.all {
        let name = place.name;
        if let Some(placed) = place.placed
            && let Some(obstacle) = placed.fit.obstacle()
        {
            let text = decision.placement.describe(obstacle, &placed.node);
            let becomes = match (place.members.is_empty(), placed.fit.stays()) {
                (true, _) => "gets no pod",
                (false, true) => "keeps its pod and gets no other",
                (false, false) => "loses its pod",
            };
            plan.why
                .push(Why::of_node(name, format!("{becomes}: the node {text}")));
        } else if place.placed.is_some_and(|placed| !placed.node.ready) && !place.is_served() {
            let text = "is not Ready, so that its pod cannot be: it counts against maxUnavailable";
            plan.why.push(Why::of_node(name, text));
        }
        for member in &place.members {
            let pod = &*member.pod.view.name;
            if !explained.contains(pod) {
                plan.why.push(Why::new(pod, state(member)));
            }
        }
    }
    for member in &decision.places.without_node {
        let text = "is for no node, and is left alone";
        plan.why.push(Why::new(&*member.pod.view.name, text));
    }
}

fn wants(decision: &Decision<'_>) -> String {
    let limits = decision.limits;
    let nodes = decision
        .places
        .all
        .iter()
        .filter(|place| place.placed.is_some())
        .count();
    let mut text = format!("wants a pod on {} of {nodes} nodes", limits.desired);
    // Writing to a string cannot fail.
    if limits.partition > 0 {
        let _ = write!(text, ", keeps {} on older revisions", limits.partition);
    }
    let _ = if limits.max_surge > 0 {
        write!(text, ", lets {} have an old and a new pod", limits.max_surge)
    } else {
        write!(text, ", lets {} lack an available pod", limits.max_unavailable)
    };
    text
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
        (_, Service::Settling(left)) => {
            let seconds = left.as_secs_f32().ceil();
            format!("is ready, and in service in {seconds} s, because of minReadySeconds")
        }
        (_, Service::Available) if pod.updated => "is up to date and in service".into(),
        (_, Service::Available) => "is in service, and not up to date".into(),
        _ if pod.view.node.is_none() => "waits for the scheduler to bind it to its node".into(),
        _ if pod.updated => "is up to date, not in service yet".into(),
        _ => "is neither up to date nor in service".into(),
    }
}
