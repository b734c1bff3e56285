//! Recorded sequences of requests, with the masked answers of kube-apiserver 1.34: what the test that replays them
//! and the command that records them (`examples/record`) have in common.
//!
//! Masked are uids, versions, times, addresses and generated names; `managedFields`, which are compared
//! elsewhere (`src/managed/tests.rs`), are left out.

pub mod mask;
pub mod step;

use std::path::PathBuf;

use serde_json::Value;

use step::{Answer, Step};

pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// One recorded sequence.
pub struct Transcript {
    pub name: String,
    pub steps: Vec<(Step, Answer)>,
}

/// Where the transcripts are.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/differential")
}

/// The custom resource that sequences work with.
pub fn definition() -> Value {
    let text = std::fs::read_to_string(folder().join("definition.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}
