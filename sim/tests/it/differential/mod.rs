//! The same requests to this API and to a real one, answers compared.
//!
//! `tests/differential/transcripts` holds families of sequences of requests with the masked answers of
//! kube-apiserver 1.34; the default run replays them. Masked are uids, versions, times, addresses and generated
//! names; `managedFields`, which are compared elsewhere (`src/managed/tests.rs`), are left out. Sequences that are
//! known to differ are listed, each with its reason, in `tests/differential/known.txt`.

mod delta;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use kruise_sim::{Method, Outcome, Request};
use serde_json::{Value, json};

use crate::server::Server;
use crate::transcript::step::{Answer, Memory, Step};
use crate::transcript::{DEFINITIONS, Transcript, definition, folder, mask};

impl Step {
    pub fn request(&self, memory: &Memory) -> Request {
        let method = Method::parse(&self.method).unwrap_or(Method::Get);
        let mut request = Request::new(method, &memory.fill(&self.target), None)
            .content_type(&self.content_type)
            .accept(&self.accept);
        request.body = self.bytes(memory);
        request
    }

    pub fn of_json(value: &Value) -> Self {
        let text = |name: &str| value[name].as_str().unwrap_or("application/json").to_owned();
        Self {
            method: text("method"),
            target: text("target"),
            content_type: text("contentType"),
            accept: text("accept"),
            body: value["body"].clone(),
        }
    }
}

impl Answer {
    pub fn of_json(value: &Value) -> Self {
        Self {
            code: u16::try_from(value["code"].as_u64().unwrap()).unwrap(),
            body: value["body"].clone(),
        }
    }
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

fn transcripts() -> Vec<Transcript> {
    let files = std::fs::read_dir(folder().join("transcripts")).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
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
    println!("{equal} of {all} sequences are equal");
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
    println!("{shares}");
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
