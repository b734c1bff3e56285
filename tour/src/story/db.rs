//! The StatefulSet.

use serde_json::json;

use super::step::{
    Claim, Costs, Outcome, Step, all_run, claim, held_by_the_partition, image, is_rolled_out, partition,
    patch, running,
};
use crate::act::{Act, PatchKind};
use crate::subject::DB;

/// Images in the order in which they are rolled out. Nothing is pulled.
const FIRST: &str = "nginx:3";
const CANARY: &str = "nginx:4";
/// Pods that stay on the first image.
const PARTITION: u64 = 2;
/// The pod with the highest number: it is updated first and scaled away first.
const LAST: &str = "db-2";
const LAST_DISK: &str = "data-db-2";

/// What a StatefulSet does.
pub(super) const STEPS: [Step; 4] = [
    Step {
        of: &DB,
        title: "Pods with names and disks",
        text: "A StatefulSet gives each pod a name and a volume claim of its own. Each is created when the one before it\n\
               is in service.",
        act: |_| Act::Apply,
        settled: |_, now| is_rolled_out(now, 0),
        question: None,
        claims: |outcome| {
            vec![
                one_after_another(outcome),
                each_has_its_disk(outcome),
                all_run(outcome, FIRST),
            ]
        },
        costs: Costs::Own,
    },
    Step {
        of: &DB,
        title: "Update in place, from the last one down",
        text: "The image changes as in a CloneSet: the pod stays. The highest number is first; the partition keeps the\n\
               two others on the old image.",
        act: |_| patch(&[partition(PARTITION), image(CANARY)]),
        settled: |_, now| is_rolled_out(now, PARTITION),
        question: Some(Act::Explain),
        claims: |outcome| {
            vec![
                the_last_is_updated_in_place(outcome),
                held_by_the_partition(outcome),
                all_disks_stay(outcome),
            ]
        },
        costs: Costs::Own,
    },
    Step {
        of: &DB,
        title: "Scale a name away",
        text: "The pod with the highest number goes. Its volume claim stays.",
        act: |_| replicas(2),
        settled: |_, now| is_rolled_out(now, PARTITION),
        question: None,
        claims: |outcome| vec![only_the_last_went(outcome), all_disks_stay(outcome)],
        costs: Costs::Own,
    },
    Step {
        of: &DB,
        title: "And back",
        text: "The name returns, and with it the volume claim. The partition counts pods, so the new one has the new image.",
        act: |_| replicas(3),
        settled: |_, now| is_rolled_out(now, PARTITION),
        question: None,
        claims: |outcome| {
            vec![
                the_last_came_back(outcome),
                all_disks_stay(outcome),
                each_has_its_disk(outcome),
            ]
        },
        costs: Costs::Own,
    },
];

fn replicas(replicas: u64) -> Act {
    Act::Patch {
        kind: PatchKind::Merge,
        body: json!({"spec": {"replicas": replicas}}),
    }
}

fn one_after_another(outcome: &Outcome) -> Claim {
    let pods = &outcome.after.pods;
    let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
    let mut pairs = pods.iter().zip(pods.iter().skip(1));
    let in_order = pairs.all(|(first, second)| {
        let ([_, ready], [created, _]) = (&first.times, &second.times);
        !ready.is_empty() && ready <= created
    });
    claim(
        "they are db-0, db-1 and db-2, and each was created after the one before was in service",
        names == ["db-0", "db-1", LAST] && in_order,
    )
}

fn each_has_its_disk(outcome: &Outcome) -> Claim {
    let after = outcome.after;
    let mut pods = after.pods.iter();
    let holds = pods.all(|pod| {
        let disk = format!("data-{}", pod.name);
        pod.disks == [disk.as_str()] && after.disks.contains_key(&disk)
    });
    claim("each has the volume claim of its name", holds)
}

fn all_disks_stay(outcome: &Outcome) -> Claim {
    let same = outcome.after.disks == *outcome.disks;
    claim(
        "the three volume claims are the same ones",
        same && outcome.disks.len() == 3 && outcome.disks.contains_key(LAST_DISK),
    )
}

fn the_last_is_updated_in_place(outcome: &Outcome) -> Claim {
    let change = outcome.change;
    let holds = change.restarted == [LAST]
        && change.untouched.len() as u64 == PARTITION
        && running(&outcome.after.pods, CANARY) == 1;
    claim(
        format!("{LAST} runs {CANARY} and is the same pod; the others were not touched"),
        holds,
    )
}

fn only_the_last_went(outcome: &Outcome) -> Claim {
    let change = outcome.change;
    let holds = change.gone == [LAST] && change.new.is_empty() && change.untouched.len() as u64 == PARTITION;
    claim(format!("{LAST} is gone, the others were not touched"), holds)
}

fn the_last_came_back(outcome: &Outcome) -> Claim {
    let change = outcome.change;
    let holds = change.new == [LAST]
        && change.untouched.len() as u64 == PARTITION
        && running(&outcome.after.pods, CANARY) == 1;
    claim(
        format!("{LAST} is back with {CANARY}, the others were not touched"),
        holds,
    )
}
