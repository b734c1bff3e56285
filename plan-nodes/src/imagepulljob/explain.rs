//! Why a node has not pulled yet, in words.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kruise_plan_kit::{Plan, Why};

use super::{
    progress::{Node, Progress, State},
    snapshot::Snapshot,
    status::Course,
};

/// Explains the course of the job, and each of its nodes that nothing is written to.
pub(super) fn explain(
    snapshot: &Snapshot<'_>,
    progress: &Progress<'_>,
    (course, has_secrets, parallelism): (Course, bool, usize),
    plan: &mut Plan,
    now: Timestamp,
) {
    plan.why
        .insert(0, Why::of_set(summary(snapshot, progress, course)));
    if !has_secrets {
        plan.why
            .push(Why::of_set("asks no node until all pull secrets are copied"));
    }
    let targets = plan
        .writes
        .iter()
        .flat_map(|object| &object.steps)
        .map(|step| step.write.target());
    let asked: BTreeSet<String> = targets
        .filter(|target| target.resource == kruise_api::nodeimage::RESOURCE)
        .map(|target| target.name.clone())
        .collect();
    for node in &progress.nodes {
        let name = &node.view.metadata.name;
        if !asked.contains(name) {
            plan.why
                .push(Why::of_node(name, describe(node, course, parallelism, now)));
        }
    }
    let unlisted = snapshot.unlisted.iter();
    plan.why.extend(unlisted.map(|name| {
        Why::of_node(
            name,
            "is not asked: it has no NodeImage, which a node gets once it has been ready for a while",
        )
    }));
}

fn summary(snapshot: &Snapshot<'_>, progress: &Progress<'_>, course: Course) -> String {
    let what = match course {
        Course::Waits => "waits, as no node that it selects has a NodeImage",
        Course::NoNode => "ends, as no node that it selects has got a NodeImage",
        Course::Runs => "pulls",
        Course::Done => "ends, as every node has pulled or failed",
        Course::Late => "ends at its deadline",
    };
    let [waiting, active, succeeded, failed] =
        [State::Waiting, State::Active, State::Succeeded, State::Failed].map(|state| progress.count(state));
    format!(
        "the job {what}: of {} nodes for {}, {succeeded} succeeded, {failed} failed, {active} are active, {waiting} wait",
        progress.desired(),
        snapshot.job.spec.image,
    )
}

/// How a node is that nothing is written to.
fn describe(node: &Node<'_>, course: Course, parallelism: usize, now: Timestamp) -> String {
    let message = node
        .status
        .map(|status| status.message.as_str())
        .unwrap_or_default();
    let because = if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    };
    match node.state {
        State::Succeeded => "has the image".to_owned(),
        State::Failed => format!("could not pull the image{because}"),
        State::Waiting if course.ends() => "is not asked: the job ends".to_owned(),
        State::Waiting if parallelism == 0 => "waits: parallelism 0 pauses the job".to_owned(),
        State::Waiting => format!("waits: no more than {parallelism} nodes pull at a time"),
        State::Active => match node.status {
            Some(status) => format!("is asked, and its agent reports {}{because}", status.phase),
            None => silent(node, now),
        },
    }
}

fn silent(node: &Node<'_>, now: Timestamp) -> String {
    let asked = node.tag.and_then(|tag| tag.created_at);
    let asked = asked.map(|asked| now.duration_since(asked).max(SignedDuration::ZERO));
    let seconds = asked.map_or(0, |asked| asked.as_secs());
    format!(
        "was asked {seconds} s ago, and its agent has not reported yet; without a report for ten minutes it has failed"
    )
}
