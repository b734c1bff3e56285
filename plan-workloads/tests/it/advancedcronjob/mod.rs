//! What is planned for a schedule. Each file in `tests/cases/advancedcronjob` describes a schedule, its jobs, and
//! rounds: what happens, and which writes the plan then has. The writes are written by hand, from the requirements;
//! the whole plan is in the `.plan` file beside it. Run with `UPDATE_EXPECT=1` to write the plans anew, and read
//! the difference; with `CASE=part-of-a-name` to see some alone.
//!
//! The schedule is `ops/tick`, created at midnight of 2026-01-01. A time is `HH:MM` or `HH:MM:SS` of that day, or
//! whole. A job is named by its activation.

mod properties;
mod takeover;
mod world;

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use kruise_plan_kit::{Explain, ObjectWrites, Plan};
use kruise_plan_test_kit::{compare, merge, spoken};
use serde::Deserialize;
use serde_json::{Value, json};

use world::{World, at};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    /// What the case shows, in a sentence.
    about: String,
    /// Merged over a plain specification: a Job every minute, and no limits.
    #[serde(default)]
    spec: Value,
    /// Merged over the metadata.
    #[serde(default)]
    metadata: Value,
    /// Merged over an empty status.
    #[serde(default)]
    status: Value,
    /// The kind of its jobs.
    #[serde(default = "plain_job")]
    kind: String,
    /// `ACTIVATION WORD…`. The status lists each job, except those with the word `new`.
    #[serde(default)]
    jobs: Vec<String>,
    /// The time zone of the process.
    zone: Option<String>,
    /// The cluster does not serve the kind of its jobs.
    #[serde(default)]
    unserved: bool,
    rounds: Vec<Round>,
}

/// What happens, and the plan after it. Its writes are carried out before the next round.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Round {
    /// What the clock says; a round without it is at the time of the one before.
    now: Option<String>,
    /// Merged over the specification.
    #[serde(default)]
    edit: Value,
    /// `ACTIVATION complete` or `failed`.
    #[serde(default)]
    ends: Vec<String>,
    /// Jobs that somebody else deletes.
    #[serde(default)]
    gone: Vec<String>,
    /// Jobs that do not exist, and whose creation was not answered.
    #[serde(default)]
    late: Vec<String>,
    /// The manager ends after so many writes of the plan.
    crash: Option<usize>,
    /// The writes: `verb activation`, those of one object joined by `then`.
    writes: Vec<String>,
    /// `Reason: words`: each of the plan's own events has the words of one of these.
    #[serde(default)]
    events: Vec<String>,
    /// Seconds until the plan is wanted again.
    again: Option<f64>,
    /// `active` and `last` of the status afterwards.
    #[serde(default)]
    status: BTreeMap<String, Value>,
    /// `subject: words`: a line about the job, or `the set`, has these words.
    #[serde(default)]
    why: Vec<String>,
}

fn plain_job() -> String {
    "Job".into()
}

fn world(case: &Case) -> World {
    let mut world = World::new(&case.kind);
    if !case.spec.is_null() {
        merge(&mut world.cron["spec"], &case.spec);
    }
    if !case.metadata.is_null() {
        merge(&mut world.cron["metadata"], &case.metadata);
    }
    world.cron["status"] = json!({"type": case.kind});
    for line in &case.jobs {
        let (activation, words) = line.split_once(' ').unwrap_or((line, ""));
        world.add(at(activation), words);
    }
    if !case.status.is_null() {
        merge(&mut world.cron["status"], &case.status);
    }
    if let Some(zone) = &case.zone {
        world.set_local(zone);
    }
    world.is_served = !case.unserved;
    world
}

/// The writes of one object in the words of a file.
fn line(object: &ObjectWrites) -> String {
    let steps = object.steps.iter().map(|step| {
        let verb = step.write.intent().as_str();
        match verb {
            "record-activation" => verb.to_owned(),
            _ => format!("{verb} {}", World::spoken(&step.write.target().name)),
        }
    });
    steps.collect::<Vec<_>>().join(" then ")
}

/// What differs from what the file says about a round.
fn differences(round: &Round, plan: &Plan) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut writes: Vec<String> = plan.writes.iter().map(line).collect();
    let mut wanted = round.writes.clone();
    writes.sort();
    wanted.sort();
    if writes != wanted {
        wrong.push(format!("writes {writes:?}, not {wanted:?}"));
    }
    let events = plan.events.iter();
    let events: Vec<String> = events
        .map(|event| World::spoken(&format!("{}: {}", event.reason, event.message)))
        .collect();
    let is_like = |event: &String, wanted: &String| {
        let (reason, words) = wanted.split_once(": ").unwrap();
        event.starts_with(&format!("{reason}: ")) && event.contains(words)
    };
    let is_same = events.len() == round.events.len()
        && events
            .iter()
            .zip(&round.events)
            .all(|(event, wanted)| is_like(event, wanted));
    if !is_same {
        wrong.push(format!("events {events:?}, not {:?}", round.events));
    }
    if let Some(again) = round.again {
        let have = plan.requeue.map(|requeue| requeue.as_secs_f64());
        if have.is_none_or(|have| (have - again).abs() > 1e-6) {
            wrong.push(format!("again in {have:?}, not {again}"));
        }
    }
    for wanted in &round.why {
        let (about, words) = wanted.split_once(": ").unwrap();
        let about = if about == "the set" { "" } else { about };
        let has = plan
            .why
            .iter()
            .any(|why| World::spoken(&why.about) == about && World::spoken(&why.text).contains(words));
        if !has {
            wrong.push(format!("no line says {wanted:?}"));
        }
    }
    wrong
}

fn reported(round: &Round, world: &World) -> Vec<String> {
    let active = world.cron["status"]["active"].as_array().cloned();
    let active = active.unwrap_or_default().into_iter();
    let active: Vec<String> = active
        .map(|job| World::spoken(job["name"].as_str().unwrap()))
        .collect();
    let last = world.cron["status"]["lastScheduleTime"].as_str();
    let have = BTreeMap::from([
        ("active", json!(active)),
        (
            "last",
            json!(last.map(|last| World::short(last.parse().unwrap()))),
        ),
    ]);
    let wrong = round
        .status
        .iter()
        .filter(|(key, wanted)| have[key.as_str()] != **wanted);
    wrong
        .map(|(key, wanted)| format!("status {key}: {}, not {wanted}", have[key.as_str()]))
        .collect()
}

fn happen(round: &Round, world: &mut World) {
    if let Some(now) = &round.now {
        world.now = at(now);
    }
    if !round.edit.is_null() {
        merge(&mut world.cron["spec"], &round.edit);
        world.touch();
    }
    for line in &round.ends {
        let (activation, how) = line.split_once(' ').unwrap();
        world.end(at(activation), how);
    }
    for activation in &round.gone {
        world.jobs.remove(&World::name(at(activation))).unwrap();
    }
    world.late = round.late.iter().map(|text| World::name(at(text))).collect();
}

fn run(file: &str) -> Result<String, String> {
    let case: Case = serde_saphyr::from_str(file).map_err(|error| error.to_string())?;
    let mut world = world(&case);
    let mut out = format!("{}\n", case.about);
    let mut wrong = Vec::new();
    for (index, round) in case.rounds.iter().enumerate() {
        happen(round, &mut world);
        let plan = world.plan(Explain::Yes);
        if case.rounds.len() > 1 {
            write!(out, "\n# round {}\n", index + 1).unwrap();
        }
        write!(out, "\n{}", World::spoken(&spoken(&plan))).unwrap();
        let mut found = differences(round, &plan);
        match round.crash {
            Some(writes) => world.execute_some(&plan, writes),
            None => world.execute(&plan),
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
fn every_round_of_a_schedule_has_its_writes_and_the_plan_that_stands_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/advancedcronjob");
    compare(&folder, 30, run);
}
