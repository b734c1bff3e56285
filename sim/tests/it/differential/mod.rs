//! The same requests to this API and to a real one, answers compared.
//!
//! `tests/differential/transcripts.jsonl` holds sequences of requests with the masked answers of kube-apiserver 1.34; the
//! default run replays them. Masked are uids, versions, times, addresses and generated names; `managedFields`, which
//! this server does not keep, is left out. Sequences that are known to differ are listed, each with its reason, in
//! `tests/differential/known.txt`.
//!
//! To record anew, give the address of a `kubectl proxy` of a fresh cluster that runs nothing but etcd and
//! kube-apiserver: `SIM_RECORD=127.0.0.1:8001 cargo test -p kruise-sim --test it record`.

mod bodies;
mod generate;
mod mask;
mod record;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use self::step::{Answer, Memory, Step};
use crate::server::Server;

/// Sequences that are recorded.
const SEQUENCES: u64 = 480;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/differential")
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The custom resource that sequences work with.
fn definition() -> Value {
    let text = std::fs::read_to_string(folder().join("definition.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// One recorded sequence.
struct Transcript {
    name: String,
    steps: Vec<(Step, Answer)>,
}

impl Transcript {
    fn parse(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).unwrap();
        let steps = value["steps"].as_array().unwrap().iter();
        Self {
            name: value["name"].as_str().unwrap().to_owned(),
            steps: steps
                .map(|step| (Step::of_json(&step["request"]), Answer::of_json(&step["answer"])))
                .collect(),
        }
    }

    fn line(&self) -> String {
        let steps: Vec<Value> = self
            .steps
            .iter()
            .map(|(step, answer)| json!({"request": step.to_json(), "answer": answer.to_json()}))
            .collect();
        json!({"name": self.name, "steps": steps}).to_string()
    }

    /// The first step that this server answers otherwise.
    fn difference(&self) -> Option<String> {
        let mut server = Server::new();
        server.post(DEFINITIONS, &definition());
        let mut memory = Memory::new(&self.name);
        for (index, (step, expected)) in self.steps.iter().enumerate() {
            let response = server.api.handle(&step.request(&memory), server.now).response()?;
            let raw = Answer {
                code: response.code,
                body: response.value(),
            };
            memory.remember(&raw.body);
            let found = mask::answer(&raw, &memory);
            if &found != expected {
                return Some(format!(
                    "step {index}: {} {}\n    body {}\n    real {} {}\n    sim  {} {}",
                    step.method, step.target, step.body, expected.code, expected.body, found.code, found.body
                ));
            }
        }
        None
    }
}

fn transcripts() -> Vec<Transcript> {
    let text = std::fs::read_to_string(folder().join("transcripts.jsonl")).unwrap();
    text.lines().map(Transcript::parse).collect()
}

/// Names of sequences that may differ, with the reasons.
fn known() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder().join("known.txt")).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (name, reason) = line.split_once(' ').expect("a name and a reason");
            (name.to_owned(), reason.to_owned())
        })
        .collect()
}

#[test]
fn answers_are_those_of_a_real_server() {
    let transcripts = transcripts();
    let known = known();
    let mut report = String::new();
    let mut different = BTreeSet::new();
    for transcript in &transcripts {
        if let Some(difference) = transcript.difference() {
            if !known.contains_key(&transcript.name) {
                writeln!(report, "{}: {difference}", transcript.name).unwrap();
            }
            different.insert(transcript.name.clone());
        }
    }
    let equal = transcripts.len() - different.len();
    println!("{equal} of {} sequences are equal", transcripts.len());
    assert!(report.is_empty(), "unexpected differences:\n{report}");
    let mended: Vec<&String> = known.keys().filter(|name| !different.contains(*name)).collect();
    assert!(
        mended.is_empty(),
        "known differences that are none any more: {mended:?}"
    );
}

#[test]
fn the_corpus_is_worth_its_name() {
    let transcripts = transcripts();
    assert!(transcripts.iter().all(|one| one.steps.len() >= 5));
    let steps: Vec<_> = transcripts.iter().flat_map(|one| &one.steps).collect();
    let errors = steps.iter().filter(|(_, answer)| answer.code >= 400).count();
    assert!(
        errors * 100 >= steps.len() * 30,
        "{errors} errors of {}",
        steps.len()
    );
    for kind in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        let share = steps.iter().filter(|(step, _)| step.method == kind).count() * 100 / steps.len();
        assert!(share >= 5, "{kind}: {share} %");
    }
    for kind in ["json-patch", "merge-patch", "strategic-merge-patch"] {
        let media = format!("application/{kind}+json");
        let share = steps
            .iter()
            .filter(|(step, _)| step.content_type == media)
            .count()
            * 100
            / steps.len();
        assert!(share >= 3, "{kind}: {share} %");
    }
}

/// Without an address there is nothing to record.
#[test]
fn record() {
    let Ok(address) = std::env::var("SIM_RECORD") else {
        return;
    };
    let install = Step::new("POST", DEFINITIONS, definition());
    record::record(&address, "", vec![install]);
    // a real server takes a moment to serve what was defined
    std::thread::sleep(std::time::Duration::from_secs(3));
    let mut text = String::new();
    for seed in 0..SEQUENCES {
        let (name, steps) = generate::sequence(seed);
        let transcript = record::record(&address, &name, steps);
        text.push_str(&transcript.line());
        text.push('\n');
    }
    std::fs::write(folder().join("transcripts.jsonl"), text).unwrap();
}
