//! Runs the steps: sends requests, waits, shows the result, and checks every claim.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::pods::{Change, Pod};
use crate::screen::Screen;
use crate::stage::{Requests, Stage, View};
use crate::story::{Claim, Costs, Outcome, Step};
use crate::table::Table;

/// Longest time of one step.
const LIMIT: Duration = Duration::from_mins(5);

/// What a step took.
#[derive(Clone, Debug)]
pub struct Record {
    title: &'static str,
    change: Change,
    before: usize,
    new_images: usize,
    time: Duration,
    requests: Requests,
}

impl Record {
    fn per_pod(&self, number: f64) -> f64 {
        number / self.change.size().max(1) as f64
    }
}

/// Which images ran on which nodes.
#[derive(Debug, Default)]
struct Images(BTreeSet<(String, String)>);

impl Images {
    /// Records the images of pods; returns how many images ran on a node for the first time.
    fn note(&mut self, pods: &[Pod]) -> usize {
        let before = self.0.len();
        let running = pods
            .iter()
            .filter(|pod| !pod.image.is_empty() && !pod.node.is_empty());
        self.0
            .extend(running.map(|pod| (pod.node.clone(), pod.image.clone())));
        self.0.len() - before
    }
}

/// Runs all steps.
///
/// # Errors
/// A claim does not hold, the cluster does not get there, or the tour is to stop; names the step.
pub fn run(stage: &mut impl Stage, screen: &mut Screen<impl Write>, steps: &[Step]) -> Result<Vec<Record>> {
    // Requests before the first step belong to no step.
    stage.requests()?;
    let mut images = Images::default();
    let mut records: Vec<Record> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        screen.heading(&format!("{}/{}  {}", index + 1, steps.len(), step.title))?;
        screen.text(step.text)?;
        let record = play(stage, screen, step, &mut images)
            .with_context(|| format!("step {}: {}", index + 1, step.title))?;
        records.push(record);
        if step.costs == Costs::NextToPrevious
            && let [.., first, second] = records.as_slice()
        {
            let table = costs(&[first.clone(), second.clone()]);
            screen.text(&format!("\n{table}\n{}", difference(first, second)))?;
        }
        screen.pause(&|| stage.check())?;
        stage.check()?;
    }
    Ok(records)
}

fn play(
    stage: &mut impl Stage,
    screen: &mut Screen<impl Write>,
    step: &Step,
    images: &mut Images,
) -> Result<Record> {
    let of = step.of;
    let View {
        pods: before,
        disks,
        copies,
        ..
    } = stage.view(of)?;
    let before = before.as_slice();
    images.note(before);
    let act = (step.act)(before);
    screen.command(&act.line(of, &stage.manifest(of)))?;
    let start = Instant::now();
    screen.text(&stage.run(of, &act)?)?;
    screen.gap()?;
    let new_images = wait(stage, screen, step, before, images)?;
    let time = start.elapsed();
    let requests = stage.requests()?;

    let after = stage.view(of)?;
    let change = Change::between(before, &after.pods);
    screen.text(&listing(&after.pods, &change))?;
    let mut answer = String::new();
    if let Some(question) = &step.question {
        screen.command(&question.line(of, &stage.manifest(of)))?;
        answer = stage.run(of, question)?;
        screen.text(&answer)?;
    }
    screen.gap()?;
    let record = Record {
        title: step.title,
        before: before.len(),
        change,
        new_images,
        time,
        requests,
    };
    let outcome = Outcome {
        before,
        disks: &disks,
        copies: &copies,
        after: &after,
        change: &record.change,
        answer: &answer,
    };
    judge(screen, &(step.claims)(&outcome))?;
    screen.text(&price(&record))?;
    Ok(record)
}

/// Reads the pods until the cluster is as the step requires, and shows the progress; returns how many images ran on a
/// node for the first time.
fn wait<S: Stage>(
    stage: &mut S,
    screen: &mut Screen<impl Write>,
    step: &Step,
    before: &[Pod],
    images: &mut Images,
) -> Result<usize> {
    let start = Instant::now();
    let mut new_images = 0;
    loop {
        stage.check()?;
        let view = stage.view(step.of)?;
        new_images += images.note(&view.pods);
        if (step.settled)(before, &view)? {
            screen.clear_live()?;
            return Ok(new_images);
        }
        screen.live(&progress(before, &view, start.elapsed()))?;
        if start.elapsed() > LIMIT {
            bail!(
                "not within {} s: the cluster is as the step wants it",
                LIMIT.as_secs()
            );
        }
        std::thread::sleep(S::PAUSE);
    }
}

/// The pods under way.
fn progress(before: &[Pod], view: &View, elapsed: Duration) -> String {
    let change = Change::between(before, &view.pods);
    format!("{}{:.1} s\n", listing(&view.pods, &change), elapsed.as_secs_f64())
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

/// The pods that are there, each with its outcome, and the names of those that are gone.
fn listing(pods: &[Pod], change: &Change) -> String {
    let mut table = Table::new(vec![
        "NAME", "UID", "ADDRESS", "NODE", "RESTARTS", "IMAGE", "READY", "",
    ]);
    for pod in pods {
        let outcome = if change.new.contains(&pod.name) {
            "new"
        } else {
            "the same pod"
        };
        table.push(vec![
            pod.name.clone(),
            pod.uid.chars().take(8).collect(),
            pod.address.clone(),
            pod.node.clone(),
            pod.restarts.to_string(),
            pod.image.clone(),
            pod.ready.text().to_owned(),
            outcome.to_owned(),
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
    let pods = match record.change.size() {
        1 => "1 pod".to_owned(),
        size => format!("{size} pods"),
    };
    let Requests { manager, shapes, .. } = &record.requests;
    let seconds = record.time.as_secs_f64();
    format!("  took {seconds:.2} s and {manager} requests of the manager for {pods}:\n  {shapes}")
}

/// What the second of two steps took more than the first.
fn difference(first: &Record, second: &Record) -> String {
    let seconds = |of: &Record| of.per_pod(of.time.as_secs_f64());
    let requests = |of: &Record| of.per_pod(of.requests.manager as f64);
    let lost = |of: &Record| of.before.saturating_sub(of.change.addresses_kept()) as i64;
    format!(
        "The difference: {:+.2} s a pod, {:+} addresses lost, {:+} new images, {:+.2} requests a pod.",
        seconds(second) - seconds(first),
        lost(second) - lost(first),
        second.new_images as i64 - first.new_images as i64,
        requests(second) - requests(first),
    )
}

/// What steps took, side by side.
pub fn costs(records: &[Record]) -> Table {
    let has_others = records.iter().any(|record| record.requests.others.is_some());
    let mut heading = vec![
        "STEP",
        "PODS",
        "IN PLACE",
        "ADDRESSES KEPT",
        "NEW IMAGES",
        "SECONDS",
        "A POD",
        "REQUESTS A POD",
    ];
    if has_others {
        heading.push("OTHERS' A POD");
    }
    let mut table = Table::new(heading);
    for record in records {
        let seconds = record.time.as_secs_f64();
        let mut row = vec![
            record.title.to_owned(),
            record.change.size().to_string(),
            record.change.restarted.len().to_string(),
            format!("{} of {}", record.change.addresses_kept(), record.before),
            record.new_images.to_string(),
            format!("{seconds:.2}"),
            format!("{:.2}", record.per_pod(seconds)),
            format!("{:.2}", record.per_pod(record.requests.manager as f64)),
        ];
        if has_others {
            let others = record.requests.others.unwrap_or_default();
            row.push(format!("{:.2}", record.per_pod(others as f64)));
        }
        table.push(row);
    }
    table
}
