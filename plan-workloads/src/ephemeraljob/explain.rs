//! What becomes of the job and each of its pods, in words.

use std::collections::BTreeSet;

use kruise_plan_kit::{Explain, Plan, Why};
use kruise_views::{EphemeralState, EphemeralView};

use super::{
    course::Course,
    snapshot::Snapshot,
    targets::{Counts, Target, Targets},
};

/// Explains the course of the job, and each pod that no decision of the plan explains. Leaves one line for each.
pub(super) fn explain(
    snapshot: &Snapshot<'_>,
    (targets, counts): (&Targets<'_>, Counts),
    course: Course,
    plan: &mut Plan,
) {
    if snapshot.explain == Explain::No {
        plan.why.clear();
        return;
    }
    plan.why.insert(0, Why::of_set(summary(snapshot, counts, course)));
    let mut explained: BTreeSet<String> = plan.why.iter().map(|why| why.about.clone()).collect();
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    explained.extend(steps.map(|step| step.write.target().name.clone()));
    let rest = targets
        .all
        .iter()
        .filter(|target| !explained.contains(&*target.view.name));
    let rest = rest.map(|target| Why::new(&*target.view.name, state(target, course)));
    let beyond = targets.beyond.iter().map(|target| {
        let text = if target.own.is_empty() {
            "gets no containers: replicas leaves it out".to_owned()
        } else {
            format!(
                "does not count: replicas leaves it out; {}",
                state(target, course)
            )
        };
        Why::new(&*target.view.name, text)
    });
    let foreign = targets.foreign.iter().map(|(view, name)| {
        let text =
            format!("gets no containers: it has an ephemeral container {name} that is not of this job");
        Why::new(&*view.name, text)
    });
    plan.why.extend(rest.chain(beyond).chain(foreign));
}

fn summary(snapshot: &Snapshot<'_>, counts: Counts, course: Course) -> String {
    let what = match course {
        Course::Ended(_) => {
            let phase = &snapshot.job.status.phase;
            return format!(
                "the job has ended: {phase}; it adds no containers, and is deleted after its time to live"
            );
        }
        Course::Done if counts.failed == 0 => "ends well",
        Course::Done => "ends, and has failed",
        Course::Late => "ends at its deadline, and has failed",
        Course::Paused => "is paused by spec.paused",
        Course::Empty => "does nothing: its template has no containers",
        Course::Runs if counts.matches == 0 => "waits for pods that it may add containers to",
        Course::Runs => "runs",
    };
    let Counts {
        matches,
        running,
        succeeded,
        waiting,
        failed,
    } = counts;
    format!(
        "the job {what}: of {matches} pods {running} run the containers, {waiting} are about to, {succeeded} succeeded, \
         {failed} failed"
    )
}

/// How a pod is that nothing is done to.
fn state(target: &Target<'_>, course: Course) -> String {
    if target.own.is_empty() {
        let text = match course {
            Course::Paused => "gets no containers while the job is paused",
            Course::Empty => "gets no containers: the template has none",
            Course::Ended(_) | Course::Done | Course::Late => "gets no containers: the job has ended",
            Course::Runs => "has no containers yet",
        };
        return text.into();
    }
    let containers: Vec<String> = target.own.iter().map(|one| describe(one)).collect();
    containers.join(", ")
}

fn describe(one: &EphemeralView) -> String {
    let name = &one.name;
    let because = if one.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", one.reason)
    };
    match one.state {
        EphemeralState::Unknown => format!("{name} is added, and its node has not reported it yet"),
        EphemeralState::Waiting => format!("{name} waits to start{because}"),
        EphemeralState::Running => format!("{name} runs"),
        EphemeralState::Succeeded => format!("{name} ended well"),
        EphemeralState::Failed(Some(code)) => format!("{name} ended with exit code {code}"),
        EphemeralState::Failed(None) => format!("{name} cannot be run{because}"),
    }
}
