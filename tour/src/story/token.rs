//! A Secret in many namespaces.

use serde_json::{Value, json};

use super::step::{Claim, Costs, Outcome, Step, claim, patch, set};
use crate::act::Act;
use crate::stage::View;
use crate::subject::TOKEN;

/// Namespaces that get a copy, in the order of their names.
const NAMESPACES: [&str; 2] = ["tour-eu", "tour-us"];
/// The namespace of the team that is excluded.
const EXCLUDED: &str = "tour-sandbox";
/// What is in the Secret at first, and then.
const FIRST: &str = "Zmlyc3Q=";
const SECOND: &str = "c2Vjb25k";

/// What a ResourceDistribution does.
pub(super) const STEPS: [Step; 2] = [
    Step {
        of: &TOKEN,
        title: "A Secret in many namespaces",
        text: "A ResourceDistribution holds a Secret, and keeps a copy in every namespace that it selects.",
        act: |_| Act::Apply,
        settled: |_, now| is_distributed(now),
        question: None,
        claims: |outcome| vec![all_have(outcome, FIRST), the_sandbox_has_none(outcome)],
        costs: Costs::Own,
    },
    Step {
        of: &TOKEN,
        title: "Rotate it",
        text: "The Secret changes in one place, and the copies follow.",
        act: |_| patch(&[set("/spec/resource/data/token", SECOND)]),
        settled: |_, now| is_distributed(now),
        question: Some(Act::Explain),
        claims: |outcome| {
            vec![
                all_have(outcome, SECOND),
                they_are_the_same(outcome),
                the_sandbox_has_none(outcome),
                explained(outcome),
            ]
        },
        costs: Costs::Own,
    },
];

/// Does the status of the newest specification say that every namespace has its copy?
fn is_distributed(now: &View) -> anyhow::Result<bool> {
    let count = NAMESPACES.len();
    now.is_done(&json!({"desired": count, "succeeded": count}))
}

fn all_have(outcome: &Outcome, value: &str) -> Claim {
    let copies = &outcome.after.copies;
    let has = |namespace: &&str| {
        let copy = copies.get(*namespace);
        copy.and_then(|copy| copy.data.get("token"))
            .and_then(Value::as_str)
            == Some(value)
    };
    claim(
        format!("{} have the Secret as it is now", NAMESPACES.join(" and ")),
        NAMESPACES.iter().all(has),
    )
}

fn the_sandbox_has_none(outcome: &Outcome) -> Claim {
    let namespaces: Vec<&String> = outcome.after.copies.keys().collect();
    claim(
        format!("{EXCLUDED} has none, and neither has any other namespace"),
        namespaces == NAMESPACES,
    )
}

fn they_are_the_same(outcome: &Outcome) -> Claim {
    let (before, after) = (outcome.copies, &outcome.after.copies);
    let is_same = |namespace: &&str| {
        let uid = |copies: &std::collections::BTreeMap<String, crate::stage::Copy>| {
            copies.get(*namespace).map(|copy| copy.uid.clone())
        };
        uid(before).is_some() && uid(before) == uid(after)
    };
    claim(
        "the copies are the same ones, with new data",
        NAMESPACES.iter().all(is_same),
    )
}

fn explained(outcome: &Outcome) -> Claim {
    let has_copy = |namespace: &str| {
        let line = format!("{namespace}: has its copy");
        outcome.answer.lines().any(|found| found.trim() == line)
    };
    claim(
        "explain names the namespaces that have a copy",
        NAMESPACES.into_iter().all(has_copy)
            && !outcome.answer.contains(&format!("{EXCLUDED}: has its copy")),
    )
}
