//! One workload for each zone.

use serde_json::{Value, json};

use super::step::{Claim, Costs, Outcome, Step, all_stay, claim, is_rolled_out, patch, running, set};
use crate::act::Act;
use crate::pods::{Pod, Ready};
use crate::stage::View;
use crate::subject::FLEET;

/// The subsets, each named after its zone, and how many pods each has.
const SUBSETS: [(&str, usize); 3] = [("zone-a", 1), ("zone-b", 1), ("zone-c", 2)];
/// The subset that is updated first.
const CANARY: &str = "zone-a";
/// Pods of the others.
const HELD: u64 = 3;
const IMAGE: &str = "nginx:4";

/// What a UnitedDeployment does.
pub(super) const STEPS: [Step; 2] = [
    Step {
        of: &FLEET,
        title: "One workload for each zone",
        text: "A UnitedDeployment keeps a CloneSet in each of three zones, all of one template, and shares its replicas among\n\
               them.",
        act: |_| Act::Apply,
        settled: |_, now| is_rolled_out(now, 0),
        question: None,
        claims: |outcome| vec![each_has_its_share(outcome), they_belong_to_it(outcome)],
        costs: Costs::Own,
    },
    Step {
        of: &FLEET,
        title: "A canary in one zone",
        text: "The image changes for all; partitions keep two of the zones on the old one.",
        act: |_| {
            let image = "/spec/template/cloneSetTemplate/spec/template/spec/containers/0/image";
            let held = SUBSETS.iter().filter(|(name, _)| *name != CANARY);
            let partitions: serde_json::Map<String, Value> = held
                .map(|(name, pods)| ((*name).to_owned(), json!(pods)))
                .collect();
            let strategy = json!({"type": "Manual", "manualUpdate": {"partitions": partitions}});
            patch(&[set("/spec/updateStrategy", strategy), set(image, IMAGE)])
        },
        settled: |_, now| is_rolled_out(now, HELD),
        question: Some(Act::Explain),
        claims: |outcome| {
            vec![
                all_stay(outcome),
                only_the_canary_is_updated(outcome),
                explained(outcome),
            ]
        },
        costs: Costs::Own,
    },
];

/// The workload of a subset.
fn child<'v>(now: &'v View, subset: &str) -> Option<&'v Value> {
    let mut children = now.children.iter();
    children.find(|child| {
        let labels = child.pointer("/metadata/labels");
        labels.and_then(|labels| labels.get("apps.kruise.io/subset-name")) == Some(&subset.into())
    })
}

/// Pods of the workload of a subset.
fn pods<'v>(now: &'v View, subset: &str) -> Vec<&'v Pod> {
    let name = child(now, subset).and_then(|child| child.pointer("/metadata/name")?.as_str());
    let prefix = name.map(|name| format!("{name}-"));
    let is_its = |pod: &&Pod| prefix.as_ref().is_some_and(|prefix| pod.name.starts_with(prefix));
    now.pods.iter().filter(is_its).collect()
}

fn each_has_its_share(outcome: &Outcome) -> Claim {
    let now = outcome.after;
    let has_share = |(subset, share): &(&str, usize)| {
        let pods = pods(now, subset);
        let is_there = |pod: &&Pod| pod.ready == Ready::Yes && now.zone(pod) == *subset;
        pods.len() == *share && pods.iter().all(is_there)
    };
    let shares = SUBSETS.map(|(subset, share)| format!("{share} in {subset}"));
    claim(
        format!(
            "its pods run in the zones of their subsets: {}",
            shares.join(", ")
        ),
        SUBSETS.iter().all(has_share),
    )
}

fn they_belong_to_it(outcome: &Outcome) -> Claim {
    let now = outcome.after;
    let uid = now.set.pointer("/metadata/uid").filter(|uid| uid.is_string());
    let is_owned = |child: &Value| child.pointer("/metadata/ownerReferences/0/uid") == uid;
    claim(
        "there is one CloneSet for each zone, and the UnitedDeployment owns it",
        uid.is_some() && now.children.len() == SUBSETS.len() && now.children.iter().all(is_owned),
    )
}

fn only_the_canary_is_updated(outcome: &Outcome) -> Claim {
    let now = outcome.after;
    let canaries: Vec<&str> = pods(now, CANARY).iter().map(|pod| pod.name.as_str()).collect();
    let holds = outcome.change.restarted == canaries
        && !canaries.is_empty()
        && outcome.change.untouched.len() as u64 == HELD
        && running(&now.pods, IMAGE) == canaries.len();
    claim(
        format!("the pod in {CANARY} runs {IMAGE}, updated in place; the others were not touched"),
        holds,
    )
}

fn explained(outcome: &Outcome) -> Claim {
    let is_held = |subset: &str| {
        let mut lines = outcome.answer.lines();
        lines.any(|line| {
            line.contains(&format!("subset {subset} has")) && line.contains("stay at older revisions")
        })
    };
    claim(
        format!("explain says that pods of all subsets but {CANARY} stay at older revisions"),
        SUBSETS
            .iter()
            .all(|(subset, _)| is_held(subset) == (*subset != CANARY)),
    )
}
