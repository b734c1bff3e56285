//! What the set wants and what there is room for, in words.

use kruise_plan_kit::{
    Plan, Why,
    rollout::{Class, Pod},
};

use super::numbers::{Limits, Numbers};

/// Explains the numbers, and of each updated pod whether it serves.
pub(super) fn explain(limits: Limits, numbers: Numbers, pods: &[Pod<'_>], plan: &mut Plan) {
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
    explain_updated(pods, plan);
}

fn explain_updated(pods: &[Pod<'_>], plan: &mut Plan) {
    for pod in pods.iter().filter(|pod| pod.updated) {
        let text = match pod.class() {
            Class::Available => "is up to date and in service",
            Class::Unavailable => "is up to date, not in service yet",
            Class::Specified => "is asked to go",
            Class::PreparingDelete => "leaves as soon as its preDelete hook lets it",
        };
        plan.why.push(Why::new(&*pod.view.name, text));
    }
}
