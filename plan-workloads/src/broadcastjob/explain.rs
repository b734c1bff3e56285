//! What the job wants, and how each of its nodes and pods is, in words.

use std::collections::BTreeSet;

use kruise_plan_kit::{Explain, Plan, Why};

use super::{
    course::{Course, Pause, phase},
    places::{Counts, Member, Place, Places, State},
    snapshot::Snapshot,
};

/// Explains the course of the job, the nodes that get no pod, and each pod that no decision of the plan explains.
/// Leaves one line for each.
pub(super) fn explain(
    snapshot: &Snapshot<'_>,
    (places, counts): (&Places<'_>, Counts),
    course: Course,
    plan: &mut Plan,
) {
    if snapshot.explain == Explain::No {
        return;
    }
    plan.why.insert(0, Why::of_set(summary(snapshot, counts, course)));
    let mut explained: BTreeSet<String> = plan.why.iter().map(|why| why.about.clone()).collect();
    let targets = plan.writes.iter().flat_map(|object| &object.steps);
    explained.extend(targets.map(|step| step.write.target().name.clone()));
    for place in &places.all {
        plan.why.extend(obstacle(snapshot, place, course));
    }
    let pods = places
        .members()
        .filter(|member| !explained.contains(&*member.view.name));
    plan.why
        .extend(pods.map(|member| Why::new(&*member.view.name, state(member))));
}

fn summary(snapshot: &Snapshot<'_>, counts: Counts, course: Course) -> String {
    let Counts {
        active,
        succeeded,
        failed,
        desired,
        ..
    } = counts;
    let what = match course {
        Course::Ended if snapshot.job.status.phase == phase::FAILED => "has failed, and creates no more pods",
        Course::Ended => "is complete, and creates no more pods",
        Course::Paused(Pause::Specified) => "is paused by spec.paused",
        Course::Paused(Pause::Failure(_)) => {
            "is paused because a pod failed, until the failed pods are gone, or spec.paused is set and removed"
        }
        Course::Fails(_) => "fails",
        Course::Completes => "completes",
        Course::Runs => "runs",
    };
    let nodes = snapshot.nodes.len();
    format!(
        "the job {what}: of {nodes} nodes {desired} are to run a pod; {active} are active, {succeeded} succeeded, {failed} failed"
    )
}

/// Why a node gets no pod.
fn obstacle(snapshot: &Snapshot<'_>, place: &Place<'_>, course: Course) -> Option<Why> {
    let placed = place.placed.filter(|_| place.members.is_empty())?;
    if let Some(obstacle) = placed.fit.obstacle() {
        let text = snapshot.placement.describe(obstacle, &placed.node);
        return Some(Why::of_node(place.name, format!("gets no pod: the node {text}")));
    }
    let text = match course {
        Course::Paused(_) => "gets no pod while the job is paused",
        Course::Ended | Course::Fails(_) => "gets no pod: the job has ended",
        Course::Runs | Course::Completes => return None,
    };
    Some(Why::of_node(place.name, text))
}

/// How a pod is that nothing is done to.
fn state(member: &Member<'_>) -> &'static str {
    match member.state {
        State::Succeeded => "has succeeded",
        State::Failed => "has failed",
        State::OverLimit => "counts as failed: it restarted more often than restartLimit allows",
        State::Leaving => "is being deleted",
        State::Active if member.view.node.is_none() => "waits for the scheduler to bind it to its node",
        State::Active => "runs",
    }
}
