//! What the set wants and what there is room for, in words.

use std::collections::BTreeSet;

use kruise_plan_kit::{
    Plan, Why,
    availability::Service,
    lifecycle::State,
    rollout::{Class, Pod},
};

use super::numbers::{Limits, Numbers};

/// Explains the numbers.
pub(super) fn explain(limits: Limits, numbers: Numbers, plan: &mut Plan) {
    let Limits {
        replicas,
        partition,
        max_unavailable,
        max_surge,
        ..
    } = limits;
    let Numbers {
        up,
        up_limit,
        down,
        delete_available,
        update,
        update_max_unavailable,
        ..
    } = numbers;
    let mut say = |text: String| plan.why.push(Why::of_set(text));
    say(format!(
        "wants {replicas} pods, keeps {partition} on old revisions, lets {max_unavailable} be out of service and \
         {max_surge} exceed replicas"
    ));
    if up > 0 {
        say(format!("{up} pods are missing, {up_limit} may be created now"));
    }
    if down > 0 {
        say(format!(
            "{down} pods are surplus, {delete_available} available ones may go now"
        ));
    }
    let count = update.unsigned_abs();
    let meanwhile = format!("{update_max_unavailable} may be out of service meanwhile");
    if update < 0 {
        say(format!(
            "{count} updated pods are to go back to the current revision, {meanwhile}"
        ));
    }
    if update > 0 {
        say(format!("{count} pods are to be updated, {meanwhile}"));
    }
}

/// Explains each pod whose state no decision of the plan explains, and leaves one line for each pod: the first,
/// which is about the decision that comes before the others.
pub(super) fn explain_pods(pods: &[Pod<'_>], plan: &mut Plan) {
    let mut explained = BTreeSet::new();
    plan.why
        .retain(|why| why.about.is_empty() || explained.insert(why.about.clone()));
    let targets = plan.writes.iter().flat_map(|object| &object.steps);
    explained.extend(targets.map(|step| step.write.target().name.clone()));
    for pod in pods {
        let text = match pod.class() {
            Class::Specified => "is asked to go".to_owned(),
            Class::PreparingDelete => "leaves as soon as its preDelete hook lets it".to_owned(),
            Class::Available | Class::Unavailable if !pod.updated => continue,
            Class::Available => "is up to date and in service".to_owned(),
            Class::Unavailable => updated(pod),
        };
        if !explained.contains(&*pod.view.name) {
            plan.why.push(Why::new(&*pod.view.name, text));
        }
    }
}

/// What an updated pod lacks to be available.
fn updated(pod: &Pod<'_>) -> String {
    match (pod.state, pod.service) {
        (State::Updating, _) => "is being updated in place".to_owned(),
        (State::Updated, _) => "is updated, and waits until its inPlaceUpdate hook is back".to_owned(),
        (_, Service::Settling(left)) => {
            let seconds = left.as_secs_f32().ceil();
            format!("is up to date and ready, and in service in {seconds} s, because of minReadySeconds")
        }
        _ => "is up to date, not in service yet".to_owned(),
    }
}
