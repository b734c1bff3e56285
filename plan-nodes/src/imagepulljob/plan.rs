//! The order of decisions.

use std::time::Duration;

use go_compat::IntOrString;
use jiff::Timestamp;
use kruise_api::{
    imagelistpulljob,
    imagepulljob::{ImagePullJob, KIND},
    names::imagepulljob::PULL_JOB_PROTECTION,
};
use kruise_plan_kit::{
    Explain, Intent, ObjectWrites, Owner, Phase, Plan, Why, finalizers, injected::is_injected, jobs,
};

use super::{
    events, explain,
    progress::{Node, Progress, State, Wanted},
    request::request,
    secrets,
    snapshot::Snapshot,
    status::{self, Course},
};

/// A job that is deleted is held back until what was made for it is gone.
const HOLD_JOB: Intent = Intent::untold("hold-job");

/// A node that could not be asked so often comes after the others.
const ATTEMPTS: u32 = 3;

/// Seconds that a job without a deadline waits at least for a node: new nodes get a NodeImage some time after they are
/// ready.
const LEAST_WAIT: i64 = 600;

/// Decides what a job needs now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let job = snapshot.job;
    let owner = Owner::new(snapshot.api_version, KIND.kind, &job.metadata);
    let mut plan = if job.metadata.deletion_timestamp.is_some() {
        release(snapshot, &owner)
    } else if let Some(ended) = job.status.completion_time {
        end(snapshot, &owner, ended, now)
    } else {
        run(snapshot, &owner, now)
    };
    if snapshot.explain == Explain::No {
        plan.why.clear();
    }
    plan
}

/// Releases the copies of secrets, and then the job itself.
fn release(snapshot: &Snapshot<'_>, owner: &Owner<'_>) -> Plan {
    let mut writes = secrets::release(snapshot);
    if writes.is_empty() {
        writes.extend(finalizers(snapshot.job, owner, false));
    }
    Plan {
        writes,
        why: vec![Why::of_set("the job is being deleted: no node is asked to pull")],
        ..Plan::default()
    }
}

/// Makes the job wait for the controller when it is deleted, or not any more; `None` if that is so already.
fn finalizers(job: &ImagePullJob, owner: &Owner<'_>, holds: bool) -> Option<ObjectWrites> {
    let (intent, reason) = if holds {
        (HOLD_JOB, "copies of its secrets are deleted before the job is")
    } else {
        (Intent::RELEASE_JOB, "no copy of a secret is there for the job")
    };
    let target = owner.target(kruise_api::imagepulljob::RESOURCE, owner.name);
    let write = finalizers::write(&job.metadata, target, PULL_JOB_PROTECTION, holds, intent)?;
    Some(ObjectWrites::alone(Phase::Cleanup, write, reason))
}

/// Keeps the copies of an ended job as they are to be until it is deleted, and deletes it when its time to live is
/// over.
fn end(snapshot: &Snapshot<'_>, owner: &Owner<'_>, ended: Timestamp, now: Timestamp) -> Plan {
    let job = snapshot.job;
    let mut plan = Plan {
        why: vec![Why::of_set("the job has ended: no node is asked to pull")],
        ..Plan::default()
    };
    secrets::keep(snapshot, &mut plan);
    plan.writes
        .extend(finalizers(job, owner, secrets::has_copies(snapshot)));
    if snapshot.changed_after_end {
        plan.events.push(events::change_ignored());
    }
    // A list of images would create the job of an image anew. It deletes its jobs when it goes.
    let controller = job.metadata.controller();
    let is_listed = controller.is_some_and(|owner| {
        owner.group() == imagelistpulljob::KIND.group && owner.kind == imagelistpulljob::KIND.kind
    });
    let ttl = job.spec.completion_policy.ttl_seconds_after_finished;
    let Some(seconds) = ttl.filter(|_| !is_listed && plan.writes.is_empty()) else {
        return plan;
    };
    match jobs::left(ended, i64::from(seconds), now) {
        None => {
            let delete = jobs::delete(
                owner,
                kruise_api::imagepulljob::RESOURCE,
                jobs::unchanged(&job.metadata),
            );
            plan.writes.push(delete);
        }
        left => plan.requeue_after(left),
    }
    plan
}

fn run(snapshot: &Snapshot<'_>, owner: &Owner<'_>, now: Timestamp) -> Plan {
    let job = snapshot.job;
    let mut plan = Plan::default();
    let parallelism = match parallelism(job) {
        Ok(_) if job.spec.image.is_empty() => Err("it names no image".to_owned()),
        parsed => parsed,
    };
    let parallelism = match parallelism {
        Ok(parallelism) => parallelism,
        Err(problem) => {
            plan.events.push(events::invalid(&problem));
            plan.why.push(Why::of_set(format!("asks no node: {problem}")));
            return plan;
        }
    };
    if let Some(hold) = finalizers(job, owner, true).filter(|_| secrets::are_copied(snapshot)) {
        // First: a job that is deleted in between would leave copies behind.
        plan.writes.push(hold);
        plan.why
            .push(Why::of_set("is held before its secrets are copied"));
        return plan;
    }
    let secrets = secrets::sync(snapshot, &mut plan);
    let wanted = Wanted::new(&job.spec.image, &job.metadata.uid, secrets.references);
    let progress = Progress::new(snapshot.nodes, &wanted);
    let course = course(job, &progress, now);
    if course == Course::Runs && secrets.are_ready {
        ask(snapshot, &wanted, &progress, parallelism, &mut plan, now);
    }
    let report = status::of(job, &progress, course, now);
    plan.status = status::patch(job, owner, &report);
    if !course.ends() {
        plan.requeue_after(until_deadline(job, now));
    }
    if course == Course::Waits {
        plan.requeue_after(until_no_node(job, now));
        plan.events.push(events::no_node());
    }
    if snapshot.explain == Explain::Yes {
        explain::explain(
            snapshot,
            &progress,
            (course, secrets.are_ready, parallelism),
            &mut plan,
            now,
        );
    }
    plan
}

/// Asks the next nodes, and names their secrets to nodes that were asked without. Nodes that could not be asked
/// several times keep no other ones waiting.
fn ask(
    snapshot: &Snapshot<'_>,
    wanted: &Wanted<'_>,
    progress: &Progress<'_>,
    parallelism: usize,
    plan: &mut Plan,
    now: Timestamp,
) {
    let in_state = |state| progress.nodes.iter().filter(move |node| node.state == state);
    let allowed = parallelism.saturating_add(usize::from(is_injected("NodesAtOnceOffByOne")));
    let room = allowed.saturating_sub(in_state(State::Active).count());
    let tried = |node: &Node<'_>| {
        let attempts = snapshot.memory.attempts.get(&node.view.metadata.uid);
        attempts.is_some_and(|attempts| attempts.count >= ATTEMPTS)
    };
    let mut waiting: Vec<&Node<'_>> = in_state(State::Waiting).collect();
    waiting.sort_by_key(|node| tried(node));
    waiting.truncate(room);
    let uids = waiting.iter().map(|node| node.view.metadata.uid.clone());
    plan.attempts.extend(uids);
    let lacking = progress.nodes.iter().filter(|node| node.lacks_secrets);
    let nodes = lacking.chain(waiting);
    let writes = nodes.map(|node| request(snapshot, wanted, node.view, now));
    plan.writes.extend(writes);
}

/// How many nodes may pull at a time.
fn parallelism(job: &ImagePullJob) -> Result<usize, String> {
    let number = match &job.spec.parallelism {
        None => Some(1),
        Some(IntOrString::Int(number)) => usize::try_from(*number).ok(),
        Some(IntOrString::String(text)) => text.parse().ok(),
    };
    number.ok_or_else(|| "parallelism is not a number, or negative".to_owned())
}

fn course(job: &ImagePullJob, progress: &Progress<'_>, now: Timestamp) -> Course {
    let policy = &job.spec.completion_policy;
    let waits = progress.nodes.is_empty() && !selects_nothing(job);
    if policy.is_never() {
        return if waits { Course::Waits } else { Course::Runs };
    }
    if !waits && progress.is_done() {
        return Course::Done;
    }
    if policy.active_deadline_seconds.is_some() && until_deadline(job, now).is_none() {
        return Course::Late;
    }
    if !waits {
        return Course::Runs;
    }
    let may_end = policy.active_deadline_seconds.is_none() && policy.ttl_seconds_after_finished.is_some();
    if may_end && until_no_node(job, now).is_none() {
        return Course::NoNode;
    }
    Course::Waits
}

/// Does the job name its nodes, and none?
fn selects_nothing(job: &ImagePullJob) -> bool {
    let spec = &job.spec;
    let names = spec
        .selector
        .as_ref()
        .and_then(|selector| selector.names.as_ref());
    spec.pod_selector.is_none() && names.is_some_and(Vec::is_empty)
}

/// How long a job without a deadline goes on waiting for a node, if it has a time to live.
fn until_no_node(job: &ImagePullJob, now: Timestamp) -> Option<Duration> {
    let policy = &job.spec.completion_policy;
    let seconds = policy.ttl_seconds_after_finished?;
    if policy.is_never() || policy.active_deadline_seconds.is_some() {
        return None;
    }
    let start = job.status.start_time.unwrap_or(jobs::stored(now));
    jobs::left(start, i64::from(seconds).max(LEAST_WAIT), now)
}

/// How long it is until the deadline, if the job has one that is to come.
fn until_deadline(job: &ImagePullJob, now: Timestamp) -> Option<Duration> {
    let policy = &job.spec.completion_policy;
    let seconds = policy.active_deadline_seconds.filter(|_| !policy.is_never())?;
    jobs::left(job.status.start_time.unwrap_or(jobs::stored(now)), seconds, now)
}
