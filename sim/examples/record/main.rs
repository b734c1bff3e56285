//! Records what a real kube-apiserver answers to the sequences that `tests/it/differential` replays.
//!
//! Give it the address of a `kubectl proxy` of a fresh cluster that runs nothing but etcd and kube-apiserver, and,
//! if not all families are wanted, the letters of those that are: `cargo run -p kruise-sim --example record --
//! 127.0.0.1:8001 wt`. Family `g` is recorded only when named, and needs kube-controller-manager with
//! `--controllers=garbage-collector-controller,namespace-controller`.
//!
//! A real server does not always agree with itself: recorded again, one sequence in 150 differs, by the order of a
//! Go map or by whether a write that changes nothing fell into the second of the one before (then its field
//! managers are as they were, and it takes no revision).

#![allow(clippy::disallowed_methods, reason = "a server lives in real time")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what goes wrong ends the recording"
)]

mod bodies;
mod families;
mod generate;
mod server;
mod step;
#[path = "../../tests/transcript/mod.rs"]
mod transcript;

use std::time::Duration;

use families::{FAMILIES, Family};
use serde_json::{Value, json};
use transcript::step::{Memory, Step};
use transcript::{DEFINITIONS, Transcript, definition, folder, mask};

/// How long a real server may take to serve what was defined.
const SETTLES: Duration = Duration::from_secs(3);

/// Sequences have a namespace each: several are recorded at a time.
const THREADS: u64 = 8;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(address) = arguments.next() else {
        eprintln!("usage: record ADDRESS [LETTERS OF FAMILIES]");
        std::process::exit(2);
    };
    let wanted = arguments.next();
    let install = Step::new("POST", DEFINITIONS, definition());
    record(&address, "", vec![install]);
    std::thread::sleep(SETTLES);
    for family in FAMILIES {
        let is_wanted = match &wanted {
            Some(letters) => letters.contains(family.letter),
            None => !family.controllers,
        };
        if is_wanted {
            let file = folder().join(format!("transcripts/{}.jsonl", family.letter));
            std::fs::write(&file, record_family(&address, family).concat()).unwrap();
            println!("{}", file.display());
        }
    }
}

fn record_family(address: &str, family: &Family) -> Vec<String> {
    let of_thread = |first| {
        let indexes = (first..family.count).step_by(THREADS as usize);
        let lines = indexes.map(|index| {
            let (name, steps) = family.sequence(index);
            line(&record(address, &name, steps))
        });
        lines.collect::<Vec<_>>()
    };
    let mut lines = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|first| scope.spawn(move || of_thread(first)))
            .collect();
        let lines = threads.into_iter().flat_map(|thread| thread.join().unwrap());
        lines.collect::<Vec<_>>()
    });
    lines.sort();
    lines
}

fn line(transcript: &Transcript) -> String {
    let steps: Vec<Value> = transcript
        .steps
        .iter()
        .map(|(step, answer)| json!({"request": step.to_json(), "answer": answer.to_json()}))
        .collect();
    format!("{}\n", json!({"name": transcript.name, "steps": steps}))
}

fn record(address: &str, name: &str, steps: Vec<Step>) -> Transcript {
    let mut memory = Memory::new(name);
    let mut recorded = Vec::new();
    for step in steps {
        let raw = server::answer(address, &step, &memory);
        memory.remember(&raw.body);
        let masked = mask::answer(&raw, &memory);
        recorded.push((step, masked));
    }
    Transcript {
        name: name.to_owned(),
        steps: recorded,
    }
}
