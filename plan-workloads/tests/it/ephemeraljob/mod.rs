//! What is planned for an EphemeralJob. Each file in `tests/cases/ephemeraljob` describes the job `shop/dump`,
//! pods, and rounds: what happens, and which writes the plan then has. The writes are written by hand, from the
//! requirements; the whole plan is in the `.plan` file beside it. Run with `UPDATE_EXPECT=1` to write the plans
//! anew, and read the difference; with `CASE=part-of-a-name` to see some alone.
//!
//! A pod is one line: its name, and words. `CONTAINER=STATE` is an ephemeral container of the job: `added`, `waits`,
//! `unrunnable`, `runs`, or an exit code; `other:CONTAINER=STATE` one of another job. `deleting`, `ended` and
//! `unselected` are what they say. Pods are created in the order of their lines.

mod properties;
mod world;

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use kruise_plan_kit::Explain;
use kruise_plan_test_kit::{Expected, compare, differences, line, merge, spoken};
use serde::Deserialize;
use serde_json::Value;

use world::World;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    /// What the case shows, in a sentence.
    about: String,
    /// Merged over a plain specification: one container `dump`, in the pods with the label of the job.
    #[serde(default)]
    spec: Value,
    /// Merged over the metadata.
    #[serde(default)]
    metadata: Value,
    /// The stored status; none if left out.
    #[serde(default)]
    status: Value,
    #[serde(default)]
    pods: Vec<String>,
    rounds: Vec<Round>,
}

/// What happens, and the plan after it. Its writes are carried out before the next round.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Round {
    /// Merged over the specification.
    #[serde(default)]
    edit: Value,
    /// Merged over the metadata.
    #[serde(default)]
    metadata: Value,
    /// Further pods, or what happens to pods that there are.
    #[serde(default)]
    pods: Vec<String>,
    /// Pods that are gone.
    #[serde(default)]
    gone: Vec<String>,
    /// Pods of which the server refused a write.
    #[serde(default)]
    refused: Vec<String>,
    /// Seconds that pass.
    #[serde(default)]
    pass: i64,
    /// `all`: nothing of the plan is carried out; `status`: its status is not stored.
    #[serde(default)]
    fails: String,
    /// The writes, in any order: `verb name`.
    writes: Vec<String>,
    /// `Reason: words`: each of the plan's own events, if given, has the words of one of these.
    events: Option<Vec<String>>,
    /// Seconds until the plan is wanted again.
    again: Option<u64>,
    /// Members of the status afterwards.
    #[serde(default)]
    status: BTreeMap<String, Value>,
    /// Conditions afterwards, if given, each as `Type Status Reason: message`.
    conditions: Option<Vec<String>>,
    /// `subject: words`: a line about the pod, or `the set`, has these words.
    #[serde(default)]
    why: Vec<String>,
}

fn happen(round: &Round, world: &mut World) {
    world.edit("spec", &round.edit);
    world.edit("metadata", &round.metadata);
    for line in &round.pods {
        world.pod(line);
    }
    for name in &round.gone {
        assert!(world.pods.remove(name).is_some(), "there is a pod {name}");
    }
    let uids = round.refused.iter().map(|name| (format!("uid-{name}"), 1));
    world.memory.refused = uids.collect();
    world.pass(round.pass);
}

/// What differs from the status that the file says.
fn reported(round: &Round, world: &World) -> Vec<String> {
    let status = &world.job["status"];
    let differs = |(key, wanted): &(&String, &Value)| status[key.as_str()] != **wanted;
    let wrong = round.status.iter().filter(differs);
    let mut wrong: Vec<String> = wrong
        .map(|(key, wanted)| format!("status {key}: {}, not {wanted}", status[key]))
        .collect();
    if let Some(wanted) = &round.conditions {
        let conditions = world.conditions();
        if conditions != *wanted {
            wrong.push(format!("conditions {conditions:#?}, not {wanted:#?}"));
        }
    }
    wrong
}

fn run(file: &str) -> Result<String, String> {
    let case: Case = serde_saphyr::from_str(file).map_err(|error| error.to_string())?;
    let mut world = World::new();
    world.edit("spec", &case.spec);
    world.edit("metadata", &case.metadata);
    if !case.status.is_null() {
        merge(&mut world.job["status"], &case.status);
    }
    for line in &case.pods {
        world.pod(line);
    }
    let mut out = format!("{}\n", case.about);
    let mut wrong = Vec::new();
    for (index, round) in case.rounds.iter().enumerate() {
        happen(round, &mut world);
        let mut plan = world.plan(Explain::Yes);
        if case.rounds.len() > 1 {
            write!(out, "\n# round {}\n", index + 1).unwrap();
        }
        write!(out, "\n{}", spoken(&plan)).unwrap();
        let expected = Expected {
            writes: &round.writes,
            events: round.events.as_deref(),
            again: round.again,
            why: &round.why,
        };
        let mut found = differences(&plan, &expected, |text| text, line);
        match &*round.fails {
            "" => world.execute(&plan),
            "status" => {
                plan.status = None;
                world.execute(&plan);
            }
            "all" => {}
            other => panic!("what fails is {other}?"),
        }
        found.extend(reported(round, &world));
        wrong.extend(found.iter().map(|text| format!("round {}: {text}", index + 1)));
    }
    if wrong.is_empty() {
        return Ok(out);
    }
    Err(format!("{}\n{out}", wrong.join("\n")))
}

#[test]
fn every_round_of_an_ephemeral_job_has_its_writes_and_the_plan_that_stands_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/ephemeraljob");
    compare(&folder, 20, run);
}
