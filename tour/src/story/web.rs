//! The CloneSet.

use serde_json::{Value, json};

use super::step::{
    Claim, Costs, Outcome, Step, all_run, all_stay, claim, held_by_the_partition, image, is_rolled_out,
    partition, patch, running, set,
};
use crate::act::{Act, PatchKind};
use crate::pods::{Change, Pod, Ready};
use crate::subject::WEB;

/// Pods that the canary leaves on the old image.
const PARTITION: u64 = 3;
/// Images in the order in which they are rolled out. Nothing is pulled.
const FIRST: &str = "nginx:1";
const SECOND: &str = "nginx:2";
const THIRD: &str = "nginx:3";
const CANARY: &str = "nginx:4";

/// What a CloneSet does.
pub(super) const STEPS: [Step; 7] = [
    Step {
        of: &WEB,
        title: "Create a CloneSet",
        text: "A CloneSet keeps a number of equal pods, as a Deployment does.",
        act: |_| Act::Apply,
        settled: |_, now| is_rolled_out(now, 0),
        question: None,
        claims: |outcome| vec![all_run(outcome, FIRST)],
        costs: Costs::Own,
    },
    Step {
        of: &WEB,
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
        of: &WEB,
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
        of: &WEB,
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
        of: &WEB,
        title: "Roll back",
        text: "The canary does not please: the old image returns. Only pods that had left it are touched.",
        act: |_| patch(&[partition(0), image(THIRD)]),
        settled: |_, now| is_rolled_out(now, 0),
        question: None,
        claims: claims_of_the_rollback,
        costs: Costs::Own,
    },
    Step {
        of: &WEB,
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
        of: &WEB,
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

fn policy(policy: &str) -> Value {
    set("/spec/updateStrategy/rollingUpdate/podUpdatePolicy", policy)
}

/// The pod that the tour picks: none that an order would put first or last.
fn chosen(pods: &[Pod]) -> String {
    pods.get(pods.len() / 2)
        .map(|pod| pod.name.clone())
        .unwrap_or_default()
}

fn all_replaced(outcome: &Outcome) -> Claim {
    let (old, new) = (outcome.before.len(), outcome.after.pods.len());
    let holds = outcome.change.gone.len() == old && outcome.change.new.len() == new && old == new;
    claim("none of the old pods is left; as many new ones came", holds)
}

fn all_restarted(outcome: &Outcome) -> Claim {
    let holds = outcome.change.restarted.len() == outcome.before.len();
    claim("every container restarted exactly once", holds)
}

fn claims_of_the_canary(outcome: &Outcome) -> Vec<Claim> {
    let Change {
        untouched, restarted, ..
    } = outcome.change;
    let updated = outcome.before.len().saturating_sub(PARTITION as usize);
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
        held_by_the_partition(outcome),
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
