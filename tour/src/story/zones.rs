//! A CloneSet in two zones, one of which fails.

use serde_json::Value;

use super::guard::none_was_touched;
use super::step::{Claim, Costs, Outcome, Step, claim, is_rolled_out};
use crate::act::Act;
use crate::pods::{Pod, Ready};
use crate::stage::View;
use crate::subject::API;

/// The zone that is filled first, and fails.
const FIRST: &str = "zone-a";
/// The zone of all other pods.
const SECOND: &str = "zone-b";
/// As many pods are in the first zone at most.
const LIMIT: usize = 2;

/// What a WorkloadSpread does.
pub(super) const STEPS: [Step; 3] = [
    Step {
        of: &API,
        title: "Two zones",
        text: "A WorkloadSpread puts two of four pods into one zone and the others into a second one. The CloneSet does not\n\
               know of it.",
        act: |_| Act::Apply,
        settled: |_, now| Ok(is_rolled_out(now, 0)? && counted(&now.spread) == now.pods.len() as u64),
        question: None,
        claims: |outcome| vec![as_many_as_allowed(outcome)],
        costs: Costs::Own,
    },
    Step {
        of: &API,
        title: "A zone fails",
        text: "Its pods end. Those in their place first wait for a node of their zone; a second later they move to the\n\
               zone that is left.",
        act: |_| Act::FailZone(FIRST),
        settled: |_, now| Ok(now.pods.iter().all(|pod| now.zone(pod) != FIRST) && is_rolled_out(now, 0)?),
        question: Some(Act::Explain),
        claims: |outcome| {
            vec![
                all_are_in_the_second(outcome),
                the_second_was_not_touched(outcome),
                explained(outcome),
            ]
        },
        costs: Costs::Own,
    },
    Step {
        of: &API,
        title: "The zone is back",
        text: "Nothing moves back by itself. After five minutes, new pods go to that zone again.",
        act: |_| Act::RepairZone(FIRST),
        settled: |_, now| is_rolled_out(now, 0),
        question: None,
        claims: |outcome| vec![none_was_touched(outcome)],
        costs: Costs::Own,
    },
];

/// Pods of all subsets, as the WorkloadSpread counts them.
fn counted(spread: &Value) -> u64 {
    let subsets = spread.pointer("/status/subsetStatuses").and_then(Value::as_array);
    let counts = subsets.into_iter().flatten();
    counts
        .filter_map(|subset| subset.get("replicas").and_then(Value::as_u64))
        .sum()
}

fn is_in_service(now: &View, pod: &Pod, zone: &str) -> bool {
    pod.ready == Ready::Yes && now.zone(pod) == zone
}

fn as_many_as_allowed(outcome: &Outcome) -> Claim {
    let now = outcome.after;
    let within = |zone| {
        now.pods
            .iter()
            .filter(|pod| is_in_service(now, pod, zone))
            .count()
    };
    claim(
        format!("{LIMIT} pods run in {FIRST} and {LIMIT} in {SECOND}"),
        now.pods.len() == 2 * LIMIT && [FIRST, SECOND].map(within) == [LIMIT; 2],
    )
}

fn all_are_in_the_second(outcome: &Outcome) -> Claim {
    let now = outcome.after;
    let all = now.pods.iter().all(|pod| is_in_service(now, pod, SECOND));
    claim(
        format!("all pods run in {SECOND} and are in service"),
        all && now.pods.len() == outcome.before.len(),
    )
}

fn the_second_was_not_touched(outcome: &Outcome) -> Claim {
    let now = outcome.after;
    let others = outcome.before.iter().filter(|pod| now.zone(pod) == SECOND);
    let others: Vec<&str> = others.map(|pod| pod.name.as_str()).collect();
    claim(
        format!("the pods that {SECOND} had were not touched"),
        outcome.change.untouched == others,
    )
}

fn explained(outcome: &Outcome) -> Claim {
    let is_closed = |subset: &str| {
        let mut lines = outcome.answer.lines();
        lines.any(|line| line.contains(&format!("subset {subset} has")) && line.contains("takes no new pods"))
    };
    claim(
        format!(
            "explain says that {FIRST} takes no new pods because some found no node, and says it of no other"
        ),
        is_closed(FIRST) && !is_closed(SECOND),
    )
}
