//! The same requests to this API and to a real one, answers compared.
//!
//! `tests/differential/transcripts` holds families of sequences of requests with the masked answers of kube-apiserver
//! 1.34; the default run replays them. Masked are uids, versions, times, addresses and generated names;
//! `managedFields`, which this server does not keep, is left out. Sequences that are known to differ are listed, each
//! with its reason, in `tests/differential/known.txt`.
//!
//! To record anew, give the address of a `kubectl proxy` of a fresh cluster that runs nothing but etcd and
//! kube-apiserver: `SIM_RECORD=127.0.0.1:8001 cargo test -p kruise-sim --test it record`. `SIM_FAMILIES=wt` records
//! these families only. Family `g` is recorded only when named, and needs kube-controller-manager with
//! `--controllers=garbage-collector-controller,namespace-controller`. A real server does not always agree with itself:
//! recorded again, one sequence in 150 differs, by the order of a Go map or by whether a write that changes nothing
//! fell into the second of the one before (then its field managers are as they were, and it takes no revision).

mod bodies;
mod delta;
mod families;
mod generate;
mod mask;
mod record;
mod report;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use kruise_sim::Outcome;
use serde_json::{Value, json};

use self::families::{FAMILIES, Family};
use self::step::{Answer, Memory, Step};
use crate::server::Server;

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
        // a real server's caches do not reach back to its beginning either
        server.api.compact();
        let mut memory = Memory::new(&self.name);
        for (index, (step, expected)) in self.steps.iter().enumerate() {
            let raw = replay(&mut server, step, &memory);
            memory.remember(&raw.body);
            let found = mask::answer(&raw, &memory);
            if &found != expected {
                let Step {
                    method, target, body, ..
                } = step;
                let (real, sim) = (expected.code, found.code);
                let places = delta::delta(&expected.body, &found.body);
                return Some(format!(
                    "step {index}: {method} {target} accept {}\n    body {body}\n    real {real} sim {sim}\n{places}",
                    step.accept
                ));
            }
        }
        None
    }
}

/// This server's answer to a step.
fn replay(server: &mut Server, step: &Step, memory: &Memory) -> Answer {
    if matches!(step.method.as_str(), "PAUSE" | "WAIT") {
        server.api.tick(server.now);
    }
    if step.method == "PAUSE" {
        return Answer::none();
    }
    match server.api.handle(&step.request(memory), server.now) {
        Outcome::Respond(response) => Answer {
            code: response.code,
            body: response.value(),
        },
        Outcome::Watch(id) => {
            let mut events = server.events(id);
            server.pass(1);
            events.extend(server.events(id));
            let lines = events.into_iter().filter(|(kind, _)| kind != "END");
            Answer {
                code: 200,
                body: lines
                    .map(|(kind, object)| json!({"type": kind, "object": object}))
                    .collect(),
            }
        }
        Outcome::Call(call) => panic!("there is no webhook: {call:?}"),
    }
}

fn file(family: &Family) -> PathBuf {
    folder().join(format!("transcripts/{}.jsonl", family.letter))
}

fn transcripts() -> Vec<Transcript> {
    let texts = FAMILIES
        .iter()
        .map(|family| std::fs::read_to_string(file(family)).unwrap());
    texts
        .flat_map(|text| text.lines().map(Transcript::parse).collect::<Vec<_>>())
        .collect()
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
    let all = transcripts.len();
    crate::socket::say(&format!("{equal} of {all} sequences are equal"));
    assert!(report.is_empty(), "unexpected differences:\n{report}");
    assert!(equal * 100 >= transcripts.len() * 97);
    let equal: Vec<&String> = known.keys().filter(|name| !different.contains(*name)).collect();
    assert!(
        equal.is_empty(),
        "known differences that are none any more: {equal:?}"
    );
}

#[test]
fn the_corpus_is_worth_its_name() {
    let transcripts = transcripts();
    let shares = report::Shares::of(&transcripts);
    crate::socket::say(&shares.to_string());
    assert!(shares.sequences >= 1000);
    assert!(transcripts.iter().all(|one| one.steps.len() >= 5));
    assert!(shares.errors >= 30, "{shares}");
    assert!(shares.last_errors >= 30, "{shares}");
    for (method, share) in &shares.methods {
        assert!(*share >= 5, "{method}: {share} %");
    }
    for (kind, share) in &shares.patches {
        assert!(*share >= 3, "{kind}: {share} %");
    }
}

/// Without an address there is nothing to record.
#[test]
fn record() {
    let Ok(address) = std::env::var("SIM_RECORD") else {
        return;
    };
    let wanted = std::env::var("SIM_FAMILIES").ok();
    let install = Step::new("POST", DEFINITIONS, definition());
    record::record(&address, "", vec![install]);
    // a real server takes a moment to serve what was defined
    std::thread::sleep(std::time::Duration::from_secs(3));
    for family in FAMILIES {
        let is_wanted = match &wanted {
            Some(letters) => letters.contains(family.letter),
            None => !family.controllers,
        };
        if is_wanted {
            let lines = record_family(&address, family);
            std::fs::write(file(family), lines.concat()).unwrap();
        }
    }
}

/// Sequences have a namespace each: several are recorded at a time.
fn record_family(address: &str, family: &Family) -> Vec<String> {
    const THREADS: u64 = 8;
    let mut lines = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|first| {
                scope.spawn(move || {
                    let indexes = (first..family.count).step_by(8);
                    let lines = indexes.map(|index| {
                        let (name, steps) = family.sequence(index);
                        format!("{}\n", record::record(address, &name, steps).line())
                    });
                    lines.collect::<Vec<_>>()
                })
            })
            .collect();
        let lines = threads.into_iter().flat_map(|thread| thread.join().unwrap());
        lines.collect::<Vec<_>>()
    });
    lines.sort();
    lines
}
