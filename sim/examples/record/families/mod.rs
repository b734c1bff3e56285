//! Families of sequences, each about one part of the API. The first is about everything; see [`generate`].

mod custom;
mod encoding;
mod garbage;
mod kinds;
mod namespace;
mod page;
mod strategic;
mod subresource;
mod table;
mod watch;

use serde_json::{Value, json};

use crate::bodies::{SAMPLES, Sample};
use crate::generate::{self, Dice, object};
use crate::transcript::step::Step;

/// Sequences about one thing.
pub struct Family {
    /// Starts the names of its sequences, and names the file of its transcripts.
    pub letter: char,
    pub count: u64,
    /// What follows the creation of the namespace.
    steps: fn(&mut Dice) -> Vec<Step>,
    /// Whether the garbage collector and the namespace controller run beside the server.
    pub controllers: bool,
}

const fn family(letter: char, count: u64, steps: fn(&mut Dice) -> Vec<Step>) -> Family {
    Family {
        letter,
        count,
        steps,
        controllers: false,
    }
}

pub const FAMILIES: &[Family] = &[
    family('x', 480, |_| Vec::new()),
    family('c', 80, custom::steps),
    family('e', 40, encoding::steps),
    family('k', 60, kinds::steps),
    family('m', 80, strategic::steps),
    family('n', 30, namespace::steps),
    family('p', 50, page::steps),
    family('s', 100, subresource::steps),
    family('t', 60, table::steps),
    family('w', 100, watch::steps),
    Family {
        controllers: true,
        ..family('g', 40, garbage::steps)
    },
];

/// How many of a hundred sequences end in a request that is meant to fail.
const LAST_FAULTS: usize = 45;

impl Family {
    /// The name of a sequence, which is its namespace, and its steps.
    pub fn sequence(&self, index: u64) -> (String, Vec<Step>) {
        if self.letter == 'x' {
            return generate::sequence(index);
        }
        let mut dice = Dice::new(index * 31 + u64::from(u32::from(self.letter)) * 1009 + 7);
        let mut steps = vec![post("/api/v1/namespaces", json!({"metadata": {"name": "$ns"}}))];
        steps.extend((self.steps)(&mut dice));
        if dice.roll(100) < LAST_FAULTS {
            steps.push(fault(&mut dice));
        }
        (format!("{}{index:04}", self.letter), steps)
    }
}

fn post(target: &str, body: Value) -> Step {
    Step::new("POST", target, body)
}

fn get(target: &str) -> Step {
    Step::new("GET", target, Value::Null)
}

fn put(target: &str, body: Value) -> Step {
    Step::new("PUT", target, body)
}

fn delete(target: &str, body: Value) -> Step {
    Step::new("DELETE", target, body)
}

/// `kind` is `json`, `merge` or `strategic-merge`.
fn patch(kind: &str, target: &str, body: Value) -> Step {
    Step::patch(kind, target, body)
}

fn sample(dice: &mut Dice) -> &'static Sample {
    &SAMPLES[dice.roll(SAMPLES.len())]
}

/// A sample by the end of its path.
fn named(plural: &str) -> &'static Sample {
    let mut found = SAMPLES.iter().filter(|sample| sample.path.ends_with(plural));
    found.next().expect("a sample")
}

/// A good object with a label.
fn labelled(sample: &Sample, name: &str, tier: &str) -> Value {
    object(sample, name, &json!({"metadata": {"labels": {"tier": tier}}}))
}

/// A request that fails wherever it is made.
fn fault(dice: &mut Dice) -> Step {
    let sample = sample(dice);
    let one = format!("{}/absent", sample.path);
    match dice.roll(9) {
        0 => get(&one),
        1 => patch("merge", &one, json!({"metadata": {"labels": {"a": "b"}}})),
        2 => patch(
            "json",
            &one,
            json!([{"op": "remove", "path": "/metadata/labels"}]),
        ),
        3 => delete(&one, Value::Null),
        4 => post(sample.path, object(sample, "Bad_Name", &json!({}))),
        5 => post(sample.path, object(sample, "z", &json!({"kind": "Other"}))),
        6 => get(&format!("{}?labelSelector=a%20in%20b", sample.path)),
        7 => get(&format!("{}?watch=true&resourceVersion=abc", sample.path)),
        _ => put(&one, object(sample, "other", &json!({}))),
    }
}
