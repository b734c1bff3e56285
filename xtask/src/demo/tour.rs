//! Tells the story: acts, waits, shows, and checks every claim.

use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kruise_e2e::audit::Class;

use super::pods::{Change, Pod, Ready};
use super::screen::Screen;
use super::stage::{Requests, Stage};
use super::story::{Claim, Costs, Outcome, Step};
use super::table::Table;
use crate::interrupt;

/// Longest time of one step.
const LIMIT: Duration = Duration::from_mins(2);

/// What a step took.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    title: &'static str,
    change: Change,
    seconds: f64,
    requests: Requests,
}

impl Record {
    fn per_pod(&self, requests: u64) -> f64 {
        requests as f64 / self.change.size().max(1) as f64
    }

    fn of_the_manager(&self) -> u64 {
        self.requests.manager.total(Class::Counted)
    }
}

/// Tells all steps. Fails, naming the step, as soon as a claim does not hold.
pub(crate) fn tell(
    stage: &mut impl Stage,
    screen: &mut Screen<impl Write>,
    steps: &[Step],
) -> Result<Vec<Record>> {
    // What happened before the story belongs to no step.
    stage.requests()?;
    let mut pods = stage.view()?.pods;
    let mut records = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        screen.heading(&format!("{}/{}  {}", index + 1, steps.len(), step.title))?;
        screen.text(step.tale)?;
        let (record, after) = play(stage, screen, step, &pods)
            .with_context(|| format!("step {}: {}", index + 1, step.title))?;
        pods = after;
        records.push(record);
        if step.costs == Costs::NextToPrevious {
            let both = records.get(records.len().saturating_sub(2)..).unwrap_or_default();
            screen.text(&format!("\n{}", costs(both)))?;
        }
        screen.pause()?;
        interrupt::check()?;
    }
    Ok(records)
}

fn play(
    stage: &mut impl Stage,
    screen: &mut Screen<impl Write>,
    step: &Step,
    before: &[Pod],
) -> Result<(Record, Vec<Pod>)> {
    let line = (step.act)(before);
    screen.command(&line)?;
    let start = Instant::now();
    let printed = stage.run(&line)?;
    interrupt::wait_until_true("the cluster is as the step wants it", LIMIT, || {
        (step.settled)(before, &stage.view()?)
    })?;
    let seconds = start.elapsed().as_secs_f64();
    screen.text(&printed)?;
    let requests = stage.requests()?;

    let after = stage.view()?;
    let change = Change::between(before, &after.pods);
    screen.text(&format!("\n{}", listing(&after.pods, &change)))?;
    let mut answer = String::new();
    if let Some(question) = step.ask {
        let line = question();
        screen.command(&line)?;
        answer = stage.run(&line)?;
        screen.text(&answer)?;
    }
    screen.gap()?;
    let record = Record {
        title: step.title,
        change,
        seconds,
        requests,
    };
    let outcome = Outcome {
        before,
        after: &after,
        change: &record.change,
        answer: &answer,
    };
    judge(screen, &(step.claims)(&outcome))?;
    screen.text(&price(&record))?;
    Ok((record, after.pods))
}

fn judge(screen: &mut Screen<impl Write>, claims: &[Claim]) -> Result<()> {
    claims.iter().try_for_each(|claim| screen.claim(claim))?;
    let broken: Vec<&str> = claims
        .iter()
        .filter(|claim| !claim.holds)
        .map(|claim| claim.text.as_str())
        .collect();
    if broken.is_empty() {
        return Ok(());
    }
    bail!("does not hold: {}", broken.join("; "))
}

/// The pods that are there, with what became of each, and the names of those that went.
fn listing(pods: &[Pod], change: &Change) -> String {
    let mut table = Table::new(["NAME", "UID", "ADDRESS", "NODE", "RESTARTS", "IMAGE", "READY", ""]);
    for pod in pods {
        let Pod {
            name,
            uid,
            address,
            node,
            restarts,
            image,
            ready,
        } = pod;
        let ready = match ready {
            Ready::Yes => "yes",
            Ready::No => "no",
        };
        table.push([
            name.clone(),
            uid.chars().take(8).collect(),
            address.clone(),
            node.clone(),
            restarts.to_string(),
            image.clone(),
            ready.to_owned(),
            if change.new.contains(name) {
                "new"
            } else {
                "the same pod"
            }
            .to_owned(),
        ]);
    }
    let mut text = table.to_string();
    if !change.gone.is_empty() {
        // Writing to a String cannot fail.
        let _infallible = writeln!(text, "gone: {}", change.gone.join(", "));
    }
    text
}

fn price(record: &Record) -> String {
    let manager = record.of_the_manager();
    let pods = match record.change.size() {
        1 => "1 pod".to_owned(),
        size => format!("{size} pods"),
    };
    format!(
        "  took {:.1} s and {manager} requests of the manager for {pods}:\n  {}",
        record.seconds, record.requests.manager
    )
}

/// What steps took, side by side.
pub(crate) fn costs(records: &[Record]) -> Table<6> {
    let heading = [
        "STEP",
        "PODS",
        "IN PLACE",
        "SECONDS",
        "MANAGER'S REQUESTS A POD",
        "OTHERS' REQUESTS A POD",
    ];
    let mut table = Table::new(heading);
    for record in records {
        table.push([
            record.title.to_owned(),
            record.change.size().to_string(),
            record.change.restarted.len().to_string(),
            format!("{:.1}", record.seconds),
            format!("{:.2}", record.per_pod(record.of_the_manager())),
            format!("{:.2}", record.per_pod(record.requests.others)),
        ]);
    }
    table
}
