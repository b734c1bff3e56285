//! The budget of the CloneSet, and a drain.

use serde_json::{Value, json};

use super::step::{Claim, Costs, Outcome, Step, claim, is_rolled_out};
use crate::act::Act;
use crate::pods::{Pod, Ready};
use crate::subject::{BUDGET, WEB};

/// What a PodUnavailableBudget does.
pub(super) const STEPS: [Step; 2] = [
    Step {
        of: &WEB,
        title: "A budget",
        text: "A PodUnavailableBudget limits how many pods of the CloneSet are out of service at a time, whoever takes them\n\
               out.",
        act: |_| Act::Add(&BUDGET),
        settled: |_, now| Ok(status(&now.budget, "totalReplicas") == json!(now.pods.len())),
        question: None,
        claims: |outcome| vec![one_may_go(outcome), none_was_touched(outcome)],
        costs: Costs::Own,
    },
    Step {
        of: &WEB,
        title: "Drain a node",
        text: "All pods of a node are to go. What would take one pod too many out of service is refused, and kubectl tries\n\
               again until the pod in place of the one before is in service.",
        act: |pods| Act::Drain {
            node: fullest(pods),
            label: WEB.label,
        },
        settled: |before, now| {
            let node = fullest(before);
            Ok(now.pods.iter().all(|pod| pod.node != node) && is_rolled_out(now, 0)?)
        },
        question: Some(Act::Uncordon),
        claims: |outcome| {
            vec![
                the_node_is_empty(outcome),
                others_were_not_touched(outcome),
                one_after_the_other(outcome),
            ]
        },
        costs: Costs::Own,
    },
];

fn status(budget: &Value, name: &str) -> Value {
    let found = budget.get("status").and_then(|status| status.get(name));
    found.cloned().unwrap_or_default()
}

/// The node with the most pods, of those the first by name.
fn fullest(pods: &[Pod]) -> String {
    let on = |node: &str| pods.iter().filter(|pod| pod.node == node).count();
    let nodes = pods.iter().map(|pod| pod.node.as_str());
    let fullest = nodes.max_by(|a, b| on(a).cmp(&on(b)).then(b.cmp(a)));
    fullest.unwrap_or_default().to_owned()
}

fn is_evicted(pod: &Pod, before: &[Pod]) -> bool {
    pod.node == fullest(before)
}

fn one_may_go(outcome: &Outcome) -> Claim {
    let budget = &outcome.after.budget;
    let pods = outcome.after.pods.len();
    let all_but_one = pods.saturating_sub(1);
    let holds = status(budget, "unavailableAllowed") == 1
        && status(budget, "desiredAvailable") == json!(all_but_one)
        && status(budget, "currentAvailable") == json!(pods);
    claim(
        format!(
            "the budget says that {all_but_one} of {pods} pods must stay in service, and that one may go"
        ),
        holds,
    )
}

pub(super) fn none_was_touched(outcome: &Outcome) -> Claim {
    claim(
        "no pod was touched",
        outcome.change.untouched.len() == outcome.before.len() && outcome.change.new.is_empty(),
    )
}

fn the_node_is_empty(outcome: &Outcome) -> Claim {
    let node = fullest(outcome.before);
    let mut pods = outcome.after.pods.iter();
    let gone = outcome
        .before
        .iter()
        .filter(|pod| is_evicted(pod, outcome.before));
    let gone: Vec<&str> = gone.map(|pod| pod.name.as_str()).collect();
    claim(
        format!("{node} has no pods any more; as many came elsewhere"),
        outcome.change.gone == gone
            && outcome.change.new.len() == gone.len()
            && pods.all(|pod| pod.node != node && pod.ready == Ready::Yes),
    )
}

fn others_were_not_touched(outcome: &Outcome) -> Claim {
    let others = outcome
        .before
        .iter()
        .filter(|pod| !is_evicted(pod, outcome.before));
    let others: Vec<&str> = others.map(|pod| pod.name.as_str()).collect();
    claim(
        "pods of other nodes were not touched",
        outcome.change.untouched == others,
    )
}

/// A CloneSet creates a pod as soon as one is evicted, so the times of the new ones show when the old ones went.
/// Times are whole seconds, and whoever is refused waits for one at least.
fn one_after_the_other(outcome: &Outcome) -> Claim {
    let is_new = |pod: &&Pod| outcome.change.new.contains(&pod.name);
    let mut times: Vec<&[String; 2]> = outcome
        .after
        .pods
        .iter()
        .filter(is_new)
        .map(|pod| &pod.times)
        .collect();
    times.sort();
    let mut pairs = times.iter().zip(times.iter().skip(1));
    let in_turn = pairs.all(|([first, ready], [next, _])| first < next && !ready.is_empty() && ready <= next);
    claim(
        "each was evicted only when the pod in place of the one before was in service",
        in_turn,
    )
}
