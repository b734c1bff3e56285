//! The order of decisions.

use jiff::Timestamp;
use kruise_plan_kit::{Owner, Plan, injected::is_injected, jobs, ledger::Charges, newest::newest};

use super::{
    course::{Course, Pause, course, stops_pods, until_deadline},
    create, delete, explain,
    places::{Counts, Places},
    snapshot::Snapshot,
    status,
};

/// Decides what a job needs now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let job = snapshot.job;
    let owner = Owner::new(snapshot.api_version, "BroadcastJob", &job.metadata);
    let restart_limit = job.spec.failure_policy.restart_limit;
    let places = Places::new(snapshot.nodes, snapshot.pods, restart_limit);
    let counts = places.count();
    let course = course(job, &places, counts, now);
    let charges = Charges::new(snapshot.budgets, now);
    let mut plan = Plan::default();
    act(
        snapshot,
        &owner,
        (&places, counts),
        (course, &charges),
        &mut plan,
        now,
    );
    charges.write(&mut plan);
    status::report((job, &owner), (&places, counts), course, &mut plan, now);
    await_time(snapshot, &owner, course, &mut plan, now);
    explain::explain(snapshot, (&places, counts), course, &mut plan);
    plan
}

/// Creates and deletes pods.
fn act(
    snapshot: &Snapshot<'_>,
    owner: &Owner<'_>,
    (places, counts): (&Places<'_>, Counts),
    (course, charges): (Course, &Charges<'_>),
    plan: &mut Plan,
    now: Timestamp,
) {
    let explain = snapshot.explain;
    let is_going = snapshot.job.metadata.deletion_timestamp.is_some();
    let of_places = places.all.iter().map(|place| {
        let members = place.members.iter();
        (place.name, members.map(|member| member.view))
    });
    let newest = newest(snapshot.memory, (owner.name, owner.uid), of_places, now);
    match course {
        // The end is stored first: a pod that made the job fail is not there any more once it is deleted.
        Course::Paused(Pause::Specified | Pause::Failure(_)) | Course::Fails(_) | Course::Completes => {}
        Course::Ended => {
            if stops_pods(&snapshot.job.status) {
                delete::running(places, charges, explain, plan);
            }
            if is_injected("EndedJobRuns") {
                create::create(snapshot, owner, (places, counts), plan, &newest);
            }
        }
        Course::Runs => {
            let start = snapshot.job.status.start_time.unwrap_or(now);
            delete::refused(places, charges, explain, plan, (start, now));
            if !is_going {
                create::create(snapshot, owner, (places, counts), plan, &newest);
            }
        }
    }
    plan.newest = Some(newest);
}

/// Deletes the job when its time has come, or plans again when a time comes.
fn await_time(snapshot: &Snapshot<'_>, owner: &Owner<'_>, course: Course, plan: &mut Plan, now: Timestamp) {
    let job = snapshot.job;
    let policy = &job.spec.completion_policy;
    let seconds = policy.ttl_seconds_after_finished.filter(|_| !policy.is_never());
    let is_going = job.metadata.deletion_timestamp.is_some();
    match (course, seconds) {
        (Course::Runs, _) => plan.requeue_after(until_deadline(job, now)),
        // The end is stored before the job goes.
        (Course::Fails(_) | Course::Completes, Some(seconds)) => {
            plan.requeue_after(jobs::left(jobs::stored(now), i64::from(seconds), now));
        }
        (Course::Ended, Some(seconds)) if !is_going => {
            let ended = job.status.completion_time.or_else(|| ended_at(snapshot));
            let Some(ended) = ended else { return };
            let early = if is_injected("TimeToLiveCut") { 5 } else { 0 };
            if let Some(left) = jobs::left(ended, i64::from(seconds) - early, now) {
                plan.requeue_after([left]);
                return;
            }
            let unchanged = jobs::unchanged(&job.metadata);
            let delete = jobs::delete(owner, kruise_api::broadcastjob::RESOURCE, unchanged);
            plan.writes.push(delete);
            // What is deleted reports nothing more.
            plan.status = None;
        }
        _ => {}
    }
}

/// When the job ended, if its status does not say so.
fn ended_at(snapshot: &Snapshot<'_>) -> Option<Timestamp> {
    let mut ended = snapshot.job.status.conditions.iter();
    ended.find(|condition| condition.is_true())?.last_transition_time
}
