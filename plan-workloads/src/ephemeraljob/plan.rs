//! The order of decisions.

use jiff::Timestamp;
use kruise_api::{ephemeraljob::EphemeralJob, names::ephemeraljob::CLEANUP};
use kruise_plan_kit::{
    Intent, ObjectWrites, Owner, Phase, Plan, Precondition, Why, finalizers, injected::is_injected, jobs,
};

use super::{
    add::add,
    course::{Course, course, until_deadline},
    explain,
    snapshot::Snapshot,
    status,
    targets::Targets,
};

/// Decides what a job needs now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let job = snapshot.job;
    let owner = Owner::new(snapshot.api_version, "EphemeralJob", &job.metadata);
    if job.metadata.deletion_timestamp.is_some() {
        return Plan {
            writes: release(job, &owner).into_iter().collect(),
            why: vec![Why::of_set(
                "the job is being deleted: its containers stay, and run on",
            )],
            ..Plan::default()
        };
    }
    let targets = Targets::new(snapshot);
    let counts = targets.count();
    let course = course(job, counts, now);
    let mut plan = Plan::default();
    if course == Course::Runs {
        add(snapshot, &targets, &mut plan);
        plan.requeue_after(until_deadline(job, now));
    } else if is_injected("EndedContainersAdded") {
        add(snapshot, &targets, &mut plan);
    }
    status::report((job, &owner), (&targets, counts), course, &mut plan, now);
    end(snapshot, &owner, course, &mut plan, now);
    explain::explain(snapshot, (&targets, counts), course, &mut plan);
    plan
}

/// Deletes the job when its time to live is over, or plans again when it is.
fn end(snapshot: &Snapshot<'_>, owner: &Owner<'_>, course: Course, plan: &mut Plan, now: Timestamp) {
    let job = snapshot.job;
    let ended = match course {
        Course::Ended(ended) => ended,
        // The end is stored before the job goes.
        Course::Done | Course::Late => jobs::stored(now),
        Course::Paused | Course::Empty | Course::Runs => return,
    };
    let left = jobs::left(ended, i64::from(job.spec.ttl_seconds()), now);
    if left.is_some() || course != Course::Ended(ended) {
        plan.requeue_after(left);
        return;
    }
    let delete = |precondition| jobs::delete(owner, kruise_api::ephemeraljob::RESOURCE, precondition);
    // A job that keeps the finalizer after it was deleted would be waited for.
    plan.writes.push(match release(job, owner) {
        Some(mut writes) => {
            let released = Precondition::VersionFromPreviousStep(job.metadata.uid.clone());
            writes.steps.extend(delete(released).steps);
            writes
        }
        None => delete(jobs::unchanged(&job.metadata)),
    });
}

/// Removes the finalizer that OpenKruise sets: nothing can be cleaned up.
fn release(job: &EphemeralJob, owner: &Owner<'_>) -> Option<ObjectWrites> {
    let target = owner.target(kruise_api::ephemeraljob::RESOURCE, owner.name);
    let write = finalizers::write(&job.metadata, target, CLEANUP, false, Intent::RELEASE_JOB)?;
    let reason = "ephemeral containers cannot be removed, so that its finalizer waits for nothing";
    Some(ObjectWrites::alone(Phase::Cleanup, write, reason))
}
