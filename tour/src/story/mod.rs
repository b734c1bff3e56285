//! The story: which acts, in which order, and what must be true after each.
//!
//! A step is data: an act made from the pods that are there, a condition that ends the wait, and claims about what
//! became of the pods. The claims are what the tour is for; one that does not hold ends it with an error.

use anyhow::Result;
use serde_json::{Value, json};

use crate::act::{Act, PatchKind};
use crate::pods::{Change, Pod, Ready};
use crate::stage::View;

/// Pods that the canary leaves on the old image.
const PARTITION: u64 = 3;
/// Images in the order in which they are rolled out. Nothing is pulled.
const FIRST: &str = "nginx:1";
const SECOND: &str = "nginx:2";
const THIRD: &str = "nginx:3";
const CANARY: &str = "nginx:4";

/// One step of the tour.
#[derive(Clone, Debug)]
pub struct Step {
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

/// The whole story.
pub const STEPS: [Step; 7] = [
    Step {
        title: "Create a CloneSet",
        text: "A CloneSet keeps a number of equal pods, as a Deployment does.",
        act: |_| Act::Apply,
        settled: |_, now| is_rolled_out(now, 0),
        question: None,
        claims: |outcome| vec![all_run(outcome, FIRST)],
        costs: Costs::Own,
    },
    Step {
        title: "Update in place",
        text: "The image changes and the pods stay: each goes out of service, gets the new image, and comes back. It\n\
               keeps its name, its address, its node, its volumes and its other containers.",
        act: |_| patch(&[image(SECOND)]),
        settled: |_, now| is_rolled_out(now, 0),
        question: None,
        claims: |outcome| {
            vec![
                all_stay(outcome),
                all_restarted(outcome),
                all_run(outcome, SECOND),
            ]
        },
        costs: Costs::Own,
    },
    Step {
        title: "The same by recreation",
        text: "The same kind of change the way a Deployment makes it: every pod is deleted and another is created,\n\
               scheduled and started. The new one may start while the old one still stops, which a container cannot; what is\n\
               lost is the place. (An address may be given again: the uid says whether it is the same pod.)",
        act: |_| patch(&[policy("ReCreate"), image(THIRD)]),
        settled: |_, now| is_rolled_out(now, 0),
        question: None,
        claims: |outcome| vec![all_replaced(outcome), all_run(outcome, THIRD)],
        costs: Costs::NextToPrevious,
    },
    Step {
        title: "A canary",
        text: "In place again, and with a partition: three pods stay on the old image until it is lowered. kruise\n\
               explain says for every pod what holds it.",
        act: |_| patch(&[policy("InPlaceIfPossible"), partition(PARTITION), image(CANARY)]),
        settled: |_, now| is_rolled_out(now, PARTITION),
        question: Some(Act::Explain),
        claims: claims_of_the_canary,
        costs: Costs::Own,
    },
    Step {
        title: "Roll back",
        text: "The canary does not please: the old image returns. Only pods that had left it are touched.",
        act: |_| patch(&[partition(0), image(THIRD)]),
        settled: |_, now| is_rolled_out(now, 0),
        question: None,
        claims: claims_of_the_rollback,
        costs: Costs::Own,
    },
    Step {
        title: "Scale down, and choose who goes",
        text: "A pod is named together with the new number of replicas: that one goes, whatever the usual order is.",
        act: |pods| {
            let (left, gone) = (pods.len().saturating_sub(1), [chosen(pods)]);
            Act::Patch {
                kind: PatchKind::Merge,
                body: json!({"spec": {"replicas": left, "scaleStrategy": {"podsToDelete": gone}}}),
            }
        },
        settled: |_, now| is_rolled_out(now, 0),
        question: None,
        claims: |outcome| vec![only_the_chosen_went(outcome), its_name_left_the_spec(outcome)],
        costs: Costs::Own,
    },
    Step {
        title: "Replace one pod",
        text: "A label on a pod, the number of replicas unchanged: that pod goes and a new one comes. Good for a pod on\n\
               a node that is about to be drained.",
        act: |pods| Act::Label {
            pod: chosen(pods),
            key: "apps.kruise.io/specified-delete",
            value: "true",
        },
        settled: |before, now| {
            // a label changes no generation, so the status may be from before
            let is_new = |pod: &&Pod| before.iter().all(|old| old.uid != pod.uid);
            let came = now.pods.iter().filter(is_new).count();
            let is_gone = now.pods.iter().all(|pod| pod.name != chosen(before));
            Ok(is_gone && came == 1 && is_rolled_out(now, 0)?)
        },
        question: None,
        claims: |outcome| vec![only_the_chosen_went(outcome), one_came(outcome)],
        costs: Costs::Own,
    },
];

fn patch(operations: &[Value]) -> Act {
    Act::Patch {
        kind: PatchKind::Json,
        body: operations.to_vec().into(),
    }
}

fn image(image: &str) -> Value {
    set("/spec/template/spec/containers/0/image", image)
}

fn policy(policy: &str) -> Value {
    set("/spec/updateStrategy/rollingUpdate/podUpdatePolicy", policy)
}

fn partition(pods: u64) -> Value {
    set("/spec/updateStrategy/rollingUpdate/partition", pods)
}

fn set(path: &str, value: impl Into<Value>) -> Value {
    json!({"op": "add", "path": path, "value": value.into()})
}

/// The pod that the tour picks: none that an order would put first or last.
fn chosen(pods: &[Pod]) -> String {
    pods.get(pods.len() / 2)
        .map(|pod| pod.name.clone())
        .unwrap_or_default()
}

/// Is the set as its specification requires, with `held` pods on an old revision and all in service?
fn is_rolled_out(now: &View, held: u64) -> Result<bool> {
    let Some(wanted) = replicas(now) else {
        return Ok(false);
    };
    let updated = wanted.saturating_sub(held);
    let status = json!({"replicas": wanted, "readyReplicas": wanted, "updatedReadyReplicas": updated});
    let in_service = now.pods.iter().filter(|pod| pod.ready == Ready::Yes).count();
    Ok(now.pods.len() as u64 == wanted && in_service as u64 == wanted && now.is_done(&status)?)
}

fn replicas(view: &View) -> Option<u64> {
    view.set.pointer("/spec/replicas").and_then(Value::as_u64)
}

fn claim(text: impl Into<String>, holds: bool) -> Claim {
    Claim {
        text: text.into(),
        holds,
    }
}

/// How many pods run an image and are in service.
fn running(pods: &[Pod], image: &str) -> usize {
    pods.iter()
        .filter(|pod| pod.image == image && pod.ready == Ready::Yes)
        .count()
}

fn all_run(outcome: &Outcome, image: &str) -> Claim {
    let count = running(&outcome.after.pods, image);
    let holds = replicas(outcome.after) == Some(count as u64) && outcome.after.pods.len() == count;
    claim(format!("all pods run {image} and are in service"), holds)
}

fn all_stay(outcome: &Outcome) -> Claim {
    let Change {
        disturbed, new, gone, ..
    } = outcome.change;
    let holds = disturbed.is_empty() && new.is_empty() && gone.is_empty();
    claim(
        "they are the same pods: uid, name, address and node did not change",
        holds,
    )
}

fn all_restarted(outcome: &Outcome) -> Claim {
    let holds = outcome.change.restarted.len() == outcome.before.len();
    claim("every container restarted exactly once", holds)
}

fn all_replaced(outcome: &Outcome) -> Claim {
    let (old, new) = (outcome.before.len(), outcome.after.pods.len());
    let holds = outcome.change.gone.len() == old && outcome.change.new.len() == new && old == new;
    claim("none of the old pods is left; as many new ones came", holds)
}

fn claims_of_the_canary(outcome: &Outcome) -> Vec<Claim> {
    let Change {
        untouched, restarted, ..
    } = outcome.change;
    let updated = outcome.before.len().saturating_sub(PARTITION as usize);
    let is_held = |name: &String| {
        let pod = format!("pods/{name}:");
        outcome
            .answer
            .lines()
            .any(|line| line.contains(&pod) && line.contains("the partition holds it"))
    };
    let ready = outcome
        .after
        .pods
        .iter()
        .filter(|pod| pod.ready == Ready::Yes)
        .count();
    vec![
        claim(
            format!("{updated} pods run {CANARY}, updated in place"),
            restarted.len() == updated && running(&outcome.after.pods, CANARY) == updated,
        ),
        claim(
            format!("{PARTITION} pods were not touched"),
            untouched.len() as u64 == PARTITION,
        ),
        claim("all are in service", ready == outcome.before.len()),
        claim(
            "explain names the partition for every pod that it holds, and for no other",
            untouched.iter().all(is_held) && !restarted.iter().any(is_held),
        ),
    ]
}

fn claims_of_the_rollback(outcome: &Outcome) -> Vec<Claim> {
    let (canaries, others): (Vec<&Pod>, Vec<&Pod>) =
        outcome.before.iter().partition(|pod| pod.image == CANARY);
    let names = |pods: Vec<&Pod>| pods.into_iter().map(|pod| pod.name.clone()).collect::<Vec<_>>();
    vec![
        claim(
            "the canaries went back in place",
            names(canaries) == outcome.change.restarted,
        ),
        claim(
            "the others were not touched",
            names(others) == outcome.change.untouched,
        ),
        all_run(outcome, THIRD),
    ]
}

fn only_the_chosen_went(outcome: &Outcome) -> Claim {
    let chosen = chosen(outcome.before);
    let holds = outcome.change.gone == [chosen.as_str()]
        && outcome.change.untouched.len() + 1 == outcome.before.len();
    claim(format!("{chosen} is gone, the others were not touched"), holds)
}

fn its_name_left_the_spec(outcome: &Outcome) -> Claim {
    let named = outcome.after.set.pointer("/spec/scaleStrategy/podsToDelete/0");
    let nobody_came = outcome.change.new.is_empty();
    claim(
        "nobody took its place, and its name is out of podsToDelete",
        named.is_none() && nobody_came,
    )
}

fn one_came(outcome: &Outcome) -> Claim {
    claim("one pod came in its place", outcome.change.new.len() == 1)
}
