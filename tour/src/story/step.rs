//! What a step is, and what several of them have in common.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use crate::act::{Act, PatchKind};
use crate::pods::{Change, Pod, Ready};
use crate::stage::{Copy, View};
use crate::subject::Subject;

/// One step of the tour.
#[derive(Clone, Debug)]
pub struct Step {
    /// The workload that it is about.
    pub of: &'static Subject,
    /// Its heading.
    pub title: &'static str,
    /// What happens and what it is good for.
    pub text: &'static str,
    /// The change.
    pub act: fn(&[Pod]) -> Act,
    /// Has the cluster got there? Called with the pods of before.
    pub settled: fn(&[Pod], &View) -> Result<bool>,
    /// A question to the cluster when it is there.
    pub question: Option<Act>,
    /// What must be true then.
    pub claims: fn(&Outcome) -> Vec<Claim>,
    /// Whose costs are shown.
    pub costs: Costs,
}

/// Whose costs are shown after a step?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Costs {
    /// Its own.
    Own,
    /// Its own, next to those of the step before it.
    NextToPrevious,
}

/// What a step led to.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// The pods that were there.
    pub before: &'a [Pod],
    /// Uids of the volume claims that were there, by name.
    pub disks: &'a BTreeMap<String, String>,
    /// Copies that were there, by namespace.
    pub copies: &'a BTreeMap<String, Copy>,
    /// What is there now.
    pub after: &'a View,
    /// What became of the pods.
    pub change: &'a Change,
    /// Answer to the question, empty without one.
    pub answer: &'a str,
}

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// In words.
    pub text: String,
    /// Was it so?
    pub holds: bool,
}

pub(super) fn patch(operations: &[Value]) -> Act {
    Act::Patch {
        kind: PatchKind::Json,
        body: operations.to_vec().into(),
    }
}

pub(super) fn image(image: &str) -> Value {
    set("/spec/template/spec/containers/0/image", image)
}

pub(super) fn partition(pods: u64) -> Value {
    set("/spec/updateStrategy/rollingUpdate/partition", pods)
}

pub(super) fn set(path: &str, value: impl Into<Value>) -> Value {
    json!({"op": "add", "path": path, "value": value.into()})
}

/// Is the set as its specification requires, with `held` pods on an old revision and all in service?
pub(super) fn is_rolled_out(now: &View, held: u64) -> Result<bool> {
    let Some(wanted) = replicas(now) else {
        return Ok(false);
    };
    let updated = wanted.saturating_sub(held);
    // The status of a StatefulSet leaves a zero out.
    let status = match updated {
        0 => json!({"replicas": wanted, "readyReplicas": wanted}),
        _ => json!({"replicas": wanted, "readyReplicas": wanted, "updatedReadyReplicas": updated}),
    };
    let in_service = now.pods.iter().filter(|pod| pod.ready == Ready::Yes).count();
    Ok(now.pods.len() as u64 == wanted && in_service as u64 == wanted && now.is_done(&status)?)
}

fn replicas(view: &View) -> Option<u64> {
    view.set.pointer("/spec/replicas").and_then(Value::as_u64)
}

pub(super) fn claim(text: impl Into<String>, holds: bool) -> Claim {
    Claim {
        text: text.into(),
        holds,
    }
}

/// How many pods run an image and are in service.
pub(super) fn running(pods: &[Pod], image: &str) -> usize {
    pods.iter()
        .filter(|pod| pod.image == image && pod.ready == Ready::Yes)
        .count()
}

pub(super) fn all_run(outcome: &Outcome, image: &str) -> Claim {
    let count = running(&outcome.after.pods, image);
    let holds = replicas(outcome.after) == Some(count as u64) && outcome.after.pods.len() == count;
    claim(format!("all pods run {image} and are in service"), holds)
}

pub(super) fn held_by_the_partition(outcome: &Outcome) -> Claim {
    let Change {
        untouched, restarted, ..
    } = outcome.change;
    let is_held = |name: &String| {
        let pod = format!("pods/{name}:");
        outcome
            .answer
            .lines()
            .any(|line| line.contains(&pod) && line.contains("the partition holds it"))
    };
    claim(
        "explain names the partition for every pod that it holds, and for no other",
        untouched.iter().all(is_held) && !restarted.iter().any(is_held),
    )
}

pub(super) fn all_stay(outcome: &Outcome) -> Claim {
    let Change {
        disturbed, new, gone, ..
    } = outcome.change;
    let holds = disturbed.is_empty() && new.is_empty() && gone.is_empty();
    claim(
        "they are the same pods: uid, name, address and node did not change",
        holds,
    )
}
