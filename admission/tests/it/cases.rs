//! Inputs from public reports of faults, in words of our own, and what admission says to each of them.
//!
//! A file has steps. Each is an object that is created, or an `old` one that is changed, and what its author is
//! told: it is `refused`, `warned` of, or neither. `cluster` has what reviews look up: an object for a path, a text
//! for a setting; what is not there does not exist. What admission cannot show is shown by the tests that
//! docs/scenarios/reported.md names.

use kruise_admission::lookup::StoredKind;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use kruise_admission::lookup::{Lookup, LookupResult, Pod};
use kruise_admission::table::{Subject, Webhook, webhooks};
use kruise_admission::{Lookups, Options, Outcome, Request, Response};
use kruise_api::workloadspread::WorkloadSpread;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What the case shows, in a sentence.
    about: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// What is different in this step.
    #[serde(default)]
    note: String,
    review: Value,
    #[serde(default)]
    old: Value,
    /// Feature gates that are on.
    #[serde(default)]
    gates: Vec<String>,
    /// What reviews look up, by path or name of a setting.
    #[serde(default)]
    cluster: BTreeMap<String, Value>,
    /// Parts of the message of the refusal.
    #[serde(default)]
    refused: Vec<String>,
    /// The beginning of each warning.
    #[serde(default)]
    warned: Vec<String>,
}

/// The defaults of gates with these on.
fn options(gates: &[String]) -> Options {
    let mut options = Options {
        distributions: true,
        pull_jobs: true,
        ..Options::DEFAULT
    };
    for gate in gates {
        match gate.as_str() {
            "ResourcesDeletionProtection" => options.deletion_protection = true,
            "StatefulSetAutoResizePVCGate" => options.claims_resized = true,
            "RecreatePodWhenChangeVCTInCloneSetGate" => options.claims_recreate = true,
            "CloneSetShortHash" => options.short_hash = true,
            other => panic!("gate {other} is none of this suite"),
        }
    }
    options
}

fn is_for(webhook: &Webhook, object: &Value) -> bool {
    match webhook.subject {
        Subject::Pods => object["kind"] == "Pod",
        Subject::Kind(kind) => object["kind"] == kind.kind.kind,
        _ => false,
    }
}

impl Step {
    fn look_up(&self, lookup: &Lookup) -> LookupResult {
        let object = |path: &str| self.cluster.get(path).cloned();
        let found = |object: Option<Value>| object.map_or(LookupResult::NotFound, LookupResult::Object);
        match lookup {
            Lookup::Path(path) => found(object(path)),
            Lookup::Setting(name) => object(name).map_or(LookupResult::NotFound, |text| {
                LookupResult::Text(text.as_str().unwrap().to_owned())
            }),
            Lookup::Workload { workload, .. } => {
                found(object(&format!("{}/{}", workload.kind, workload.name)))
            }
            Lookup::All(kind, _) if *kind == StoredKind::of::<WorkloadSpread>() => {
                LookupResult::all::<WorkloadSpread>(self.spreads())
            }
            Lookup::One(kind, name) if *kind == StoredKind::of::<WorkloadSpread>() => {
                let spread = self
                    .spreads()
                    .into_iter()
                    .find(|one| one.metadata.name == name.name);
                spread.map_or(LookupResult::NotFound, |spread| {
                    LookupResult::one::<WorkloadSpread>(Ok(spread))
                })
            }
            Lookup::All(kind, _) => kind.all(Vec::new()),
            Lookup::DryRunCreate { .. } => LookupResult::Accepted,
            Lookup::PodOwner { .. } => LookupResult::Pod(Pod {
                controller: None,
                deleting: false,
            }),
            _ => LookupResult::NotFound,
        }
    }

    /// The WorkloadSpreads of the cluster.
    fn spreads(&self) -> Vec<Arc<WorkloadSpread>> {
        let spreads = self
            .cluster
            .values()
            .filter(|object| object["kind"] == "WorkloadSpread");
        spreads
            .map(|object| Arc::new(WorkloadSpread::from_value(object.clone()).unwrap()))
            .collect()
    }

    /// One webhook's response.
    fn response(&self, webhook: &Webhook, object: &Value) -> Response {
        let (group, version) = match object["apiVersion"].as_str().unwrap().split_once('/') {
            Some(parts) => parts,
            None => ("", object["apiVersion"].as_str().unwrap()),
        };
        let operation = if self.old.is_null() { "CREATE" } else { "UPDATE" };
        let review = json!({"uid": "u", "operation": operation, "name": object["metadata"]["name"],
            "namespace": object["metadata"]["namespace"].as_str().unwrap_or_default(), "object": object, "oldObject": self.old,
            "kind": {"group": group, "version": version, "kind": object["kind"]}});
        let mut request = Request::from_review(review).unwrap();
        request.now = "2026-02-02T00:00:00Z".parse().unwrap();
        let mut lookups = Lookups::default();
        for _ in 0..10 {
            match webhook.review(&request, options(&self.gates), &lookups, &mut |_, _| {}) {
                Outcome::Response(response) | Outcome::Widen(_, response) | Outcome::Refused(_, response) => {
                    return response;
                }
                Outcome::Missing(missing) => {
                    for lookup in missing {
                        let result = self.look_up(&lookup);
                        lookups.insert(lookup, result);
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        panic!("never decided")
    }

    /// Takes the object through the webhooks as an API server does: the refusal, or the warnings.
    fn play(&self) -> Result<Vec<String>, String> {
        let mut object = self.review.clone();
        let mut said = Vec::new();
        let mut seen = 0;
        for webhook in webhooks(kruise_admission::kinds::ALL).filter(|webhook| is_for(webhook, &self.review))
        {
            seen += 1;
            match self.response(&webhook, &object) {
                Response::Deny { message, .. } => return Err(message),
                Response::Allow { patch, warnings } => {
                    said.extend(warnings);
                    if let Some(patch) = patch {
                        let patch: json_patch::Patch = serde_json::from_str(&patch).unwrap();
                        json_patch::patch(&mut object, &patch).unwrap();
                    }
                }
            }
        }
        assert!(seen > 0, "no webhook is for {}", self.review["kind"]);
        Ok(said)
    }

    /// What is not as the file says; `None` if all is.
    fn difference(&self) -> Option<String> {
        let played = self.play();
        let is_as_said = match &played {
            Err(message) => {
                let is_said = |part: &String| message.contains(part.as_str());
                !self.refused.is_empty() && self.refused.iter().all(is_said)
            }
            Ok(warnings) => {
                let mut pairs = warnings.iter().zip(&self.warned);
                self.refused.is_empty()
                    && warnings.len() == self.warned.len()
                    && pairs.all(|(warning, start)| warning.starts_with(start.as_str()))
            }
        };
        (!is_as_said).then(|| format!("{}: {played:#?}", self.note))
    }
}

#[test]
fn each_reported_input_is_refused_warned_of_or_passes_as_its_file_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "yaml"));
    files.sort();
    let mut differences = Vec::new();
    let mut steps = 0;
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let case: Case = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (index, step) in case.steps.iter().enumerate() {
            steps += 1;
            let difference = step.difference();
            differences
                .extend(difference.map(|text| format!("{name}, step {index} ({}): {text}", case.about)));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(steps > 25, "only {steps} steps are played");
}
