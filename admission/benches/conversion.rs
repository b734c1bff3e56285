//! What a list of 10,000 CloneSets costs when it is read in another version: `cargo bench -p kruise-admission`.
//!
//! A set is 4 KiB, as a server sends it. Holds that one takes at most 50 µs of CPU, and that the resident set, body and
//! answer included, never grows beyond one and a half times the body. What the executable takes, with HTTP and TLS
//! around it, is held by `kruise/tests/it/conversion.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::{collections::BTreeMap, fs, hint::black_box, process::ExitCode};

use kruise_admission::convert::convert;
use serde_json::{Value, json};

const SETS: usize = 10_000;
const BYTES: usize = 4096;
const MOST_MICROSECONDS: f64 = 50.0;
const MOST_BODIES: f64 = 1.5;

/// A set of about [`BYTES`] bytes.
fn set(version: &str, index: usize) -> Value {
    let env: Vec<Value> = (0..10)
        .map(|n| json!({"name": format!("VARIABLE_{n}"), "value": format!("value number {n}")}))
        .collect();
    let containers: Vec<Value> = ["main", "log"]
        .iter()
        .map(|name| {
            json!({"name": name, "image": "registry.example.com/shop/web:1.2.3", "env": env,
                   "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}},
                   "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 5}})
        })
        .collect();
    let labels: BTreeMap<String, String> = (0..7)
        .map(|n| (format!("example.com/label-{n}"), format!("value-{n}")))
        .collect();
    let strategy = match version {
        "v1alpha1" => json!({"type": "InPlaceIfPossible", "maxUnavailable": "20%", "partition": 0}),
        _ => json!({"type": "RollingUpdate", "rollingUpdate": {
            "podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "20%", "partition": 0}}),
    };
    let mut set = json!({
        "apiVersion": format!("apps.kruise.io/{version}"), "kind": "CloneSet",
        "metadata": {"name": format!("web-{index}"), "namespace": "shop", "uid": format!("uid-{index:08}"),
                     "labels": labels, "annotations": {"example.com/notes": ""}},
        "spec": {"replicas": 5, "selector": {"matchLabels": {"app": "web"}}, "updateStrategy": strategy,
                 "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}},
        "status": {"replicas": 5, "readyReplicas": 5, "availableReplicas": 5, "updatedReplicas": 5},
    });
    let missing = BYTES.saturating_sub(set.to_string().len());
    set["metadata"]["annotations"]["example.com/notes"] = "n".repeat(missing).into();
    set
}

fn body(from: &str, to: &str) -> Vec<u8> {
    let head = json!({"uid": "u", "desiredAPIVersion": format!("apps.kruise.io/{to}"), "objects": []});
    let review =
        json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": head});
    let text = review.to_string();
    let (before, after) = text.split_once("[]").unwrap();
    let mut body = Vec::with_capacity(SETS * (BYTES + 1) + text.len());
    body.extend_from_slice(before.as_bytes());
    for index in 0..SETS {
        body.push(if index == 0 { b'[' } else { b',' });
        serde_json::to_writer(&mut body, &set(from, index)).unwrap();
    }
    body.push(b']');
    body.extend_from_slice(after.as_bytes());
    body
}

/// Nanoseconds that this thread has run: neighbours on the machine do not show.
fn on_cpu() -> u64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// The resident set (`VmRSS`) or its peak (`VmHWM`), in bytes.
fn resident(which: &str) -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(which)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Converts once and says what it took; whether that is within the bars.
fn measure(from: &str, to: &str) -> bool {
    let before = resident("VmRSS");
    let body = body(from, to);
    // The peak starts anew.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let start = on_cpu();
    let length = body.len();
    let answer = convert(&kruise_api::kinds::ALL, black_box(body)).unwrap();
    let microseconds = (on_cpu() - start) as f64 / 1e3 / SETS as f64;
    let peak = resident("VmHWM").saturating_sub(before);
    let bodies = |bytes: usize| bytes as f64 / length as f64;
    let peak = bodies(peak);
    println!(
        "{from} to {to}: {SETS} sets, body {length} bytes, answer {:.3} bodies; {microseconds:.1} µs of CPU a set (at \
         most {MOST_MICROSECONDS}); peak {peak:.3} bodies (at most {MOST_BODIES})",
        bodies(answer.iter().map(Vec::len).sum()),
    );
    microseconds <= MOST_MICROSECONDS && peak <= MOST_BODIES
}

fn main() -> ExitCode {
    let within = [measure("v1alpha1", "v1beta1"), measure("v1beta1", "v1alpha1")];
    if within.contains(&false) {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
