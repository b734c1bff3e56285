//! Pods that leave before they have ended.

use jiff::Timestamp;
use kruise_plan_kit::{
    Explain, ObjectWrites, Plan, Why,
    fit::may_be_news,
    ledger::{Ask, Charges, Operation},
    pod_writes::{self, Guard},
};
use kruise_views::PodView;

use super::{events, places::Places};

/// Deletes pods that run on nodes where they may not, and such that wait for a node that does not exist.
pub(super) fn refused(
    places: &Places<'_>,
    charges: &Charges<'_>,
    explain: Explain,
    plan: &mut Plan,
    now: Timestamp,
) {
    for (member, exists) in places.refused() {
        if exists {
            let reason = "it may not run on its node any more";
            delete(member.view, reason, (charges, explain), plan);
        } else if let Some(left) = may_be_news(member.view, now) {
            plan.requeue_after([left]);
        } else {
            delete(member.view, "its node does not exist", (charges, explain), plan);
        }
    }
}

/// Deletes what still runs when the job has ended.
pub(super) fn running(places: &Places<'_>, charges: &Charges<'_>, explain: Explain, plan: &mut Plan) {
    for member in places.members().filter(|member| member.state.runs()) {
        delete(member.view, "the job has ended", (charges, explain), plan);
    }
}

/// Deletes a pod, unless its budget keeps it. Not if it has changed since: one that has ended meanwhile stays.
fn delete(pod: &PodView, reason: &str, (charges, explain): (&Charges<'_>, Explain), plan: &mut Plan) {
    if let Err(why) = charges.ask(pod, Operation::Delete) {
        if explain == Explain::Yes {
            plan.why.push(Why::new(&*pod.name, why));
        }
        return;
    }
    let step = pod_writes::delete(pod, Guard::Unchanged, reason);
    plan.writes
        .push(ObjectWrites::of_pod(vec![events::deletion(step, &pod.name)]));
}
