//! What is planned for jobs and nodes. Each file in `tests/cases` describes nodes, jobs of the namespace `shop` and
//! rounds: what happens, and which writes one plan then has. The writes are written by hand, from the requirements;
//! the whole plan is in the `.plan` file beside it. Run with `UPDATE_EXPECT=1` to write the plans anew, and read
//! the difference; with `CASE=part-of-a-name` to see some alone.
//!
//! What happens is a line: `NODE reports IMAGE PHASE`, `pass SECONDS`, `node NAME`, `delete KIND NAME` or `settle`,
//! which lets all controllers run until none has anything to do.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use kruise_plan_kit::{Explain, ResourceId};
use kruise_plan_test_kit::{Expected, compare, differences, line, spoken};
use serde::Deserialize;
use serde_json::Value;

use crate::world::World;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    /// What the case shows, in a sentence.
    about: String,
    /// Nodes with NodeImages.
    #[serde(default)]
    nodes: Vec<String>,
    /// Pull secrets in `shop`.
    #[serde(default)]
    secrets: Vec<String>,
    /// Specifications of jobs, merged over the defaults.
    #[serde(default)]
    jobs: BTreeMap<String, Value>,
    /// Specifications of lists, merged over the defaults.
    #[serde(default)]
    lists: BTreeMap<String, Value>,
    rounds: Vec<Round>,
}

/// What happens, and the plan after it. Its writes are carried out before the next round.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Round {
    #[serde(default)]
    happens: Vec<String>,
    /// What is planned: `job NAME`, `list NAME` or `node NAME`.
    plan: String,
    /// The writes, in any order: `verb name`.
    writes: Vec<String>,
    /// `Reason: words`: each of the plan's own events, if given, has the words of one of these.
    events: Option<Vec<String>>,
    /// Seconds until the plan is wanted again.
    again: Option<u64>,
    /// Members of the status of the job or list afterwards.
    #[serde(default)]
    status: BTreeMap<String, Value>,
    /// `subject: words`: a line about the node, the job, or `the set`, has these words.
    #[serde(default)]
    why: Vec<String>,
}

fn resource(kind: &str) -> ResourceId {
    match kind {
        "job" => kruise_api::imagepulljob::RESOURCE,
        "list" => kruise_api::imagelistpulljob::RESOURCE,
        "secret" => ResourceId::SECRETS,
        "node" => ResourceId::NODES,
        other => panic!("what is a {other}?"),
    }
}

fn happen(world: &mut World, event: &str) {
    match event.split_whitespace().collect::<Vec<&str>>()[..] {
        ["settle"] => drop(world.settle()),
        ["pass", seconds] => world.pass(seconds.parse().unwrap()),
        ["node", name] => world.node(name),
        ["delete", "node", name] => world.delete(ResourceId::NODES, "", name),
        ["delete", kind, name] => world.delete(resource(kind), "shop", name),
        [node, "reports", image, phase] => world.report(node, image, phase),
        _ => panic!("what happens is {event}?"),
    }
}

fn run(file: &str) -> Result<String, String> {
    let case: Case = serde_saphyr::from_str(file).map_err(|error| error.to_string())?;
    let mut world = World::new();
    for node in &case.nodes {
        world.node(node);
    }
    for secret in &case.secrets {
        world.secret("shop", secret, "Y3JlZGVudGlhbHM=");
    }
    for (name, spec) in &case.jobs {
        world.job(name, spec);
    }
    for (name, spec) in &case.lists {
        world.list(name, spec);
    }
    let mut out = format!("{}\n", case.about);
    let mut wrong = Vec::new();
    for (index, round) in case.rounds.iter().enumerate() {
        for event in &round.happens {
            happen(&mut world, event);
        }
        world.explain = Explain::Yes;
        let (kind, name) = round.plan.split_once(' ').unwrap();
        let plan = match kind {
            "job" => world.plan_job(name),
            "list" => world.plan_list(name),
            "node" => world.plan_node(name),
            other => panic!("who plans a {other}?"),
        };
        write!(
            out,
            "\n# round {}: {}\n\n{}",
            index + 1,
            round.plan,
            spoken(&plan)
        )
        .unwrap();
        let expected = Expected {
            writes: &round.writes,
            events: round.events.as_deref(),
            again: round.again,
            why: &round.why,
        };
        let mut found = differences(&plan, &expected, |text| text, line);
        world.execute(&plan);
        let object = if kind == "node" {
            Some(world.image(name))
        } else {
            world.get(resource(kind), "shop", name)
        };
        let status = object.map_or(&Value::Null, |object| &object["status"]);
        let differs = |(key, wanted): &(&String, &Value)| status[key.as_str()] != **wanted;
        let unlike = round.status.iter().filter(differs);
        found.extend(unlike.map(|(key, wanted)| format!("status {key}: {}, not {wanted}", status[key])));
        wrong.extend(found.iter().map(|text| format!("round {}: {text}", index + 1)));
    }
    if wrong.is_empty() {
        return Ok(out);
    }
    Err(format!("{}\n{out}", wrong.join("\n")))
}

#[test]
fn every_round_has_its_writes_and_the_plan_that_stands_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    compare(&folder, 10, run);
}
