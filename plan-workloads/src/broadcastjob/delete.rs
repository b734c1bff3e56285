//! Pods that leave before they have ended.

use jiff::Timestamp;
use kruise_plan_kit::{
    Explain, ObjectWrites, Plan, Why,
    fit::may_be_news,
    jobs,
    ledger::{Ask, Charges, Operation},
    pod_writes::{self, Guard},
};
use kruise_views::PodView;

use super::{
    events,
    places::{Places, Refusal},
};

/// Deletes pods that run on nodes where they may not, and such that wait for a node that does not exist. The node
/// of one that may not run there by its own specification only gets another one, which something may change like
/// this one: it is left for a while that grows. `start` is when the job started.
pub(super) fn refused(
    places: &Places<'_>,
    charges: &Charges<'_>,
    explain: Explain,
    plan: &mut Plan,
    (start, now): (Timestamp, Timestamp),
) {
    for (pod, refusal) in places.refused() {
        let left = match refusal {
            Refusal::Node => None,
            Refusal::NoNode => may_be_news(pod, now),
            Refusal::Specification => pod
                .created
                .and_then(|created| jobs::back_off(start, created, now)),
        };
        let reason = match refusal {
            Refusal::NoNode => "its node does not exist",
            Refusal::Node | Refusal::Specification => "it may not run on its node any more",
        };
        let Some(left) = left else {
            delete(pod, reason, (charges, explain), plan);
            continue;
        };
        plan.requeue_after([left]);
        if explain == Explain::Yes && refusal == Refusal::Specification {
            plan.why.push(Why::new(&*pod.name, events::unfit(left)));
        }
    }
    plan.events.extend(events::unfit_pods(places));
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
