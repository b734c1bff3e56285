//! What conversion costs. The only test of its process, because memory is the process's own.

use std::{fs, time::Instant};

use kruise_admission::convert::convert;
use serde_json::{Value, json};

const SETS: usize = if cfg!(debug_assertions) { 2_000 } else { 10_000 };

/// The most memory the process has had, in bytes.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// A set of about 4 KiB, most of it environment variables as in life.
fn set() -> String {
    let env: Vec<Value> = (0..70)
        .map(|number| json!({"name": format!("SETTING_{number}"), "value": "a value of some length"}))
        .collect();
    let container = json!({"name": "main", "image": "example.org/app:1", "env": env});
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "metadata": {"name": "a", "namespace": "b", "uid": "c", "labels": {"d": "e"}},
        "spec": {
            "replicas": 3,
            "scaleStrategy": {"disablePVCReuse": true},
            "selector": {"matchLabels": {"d": "e"}},
            "template": {"metadata": {"labels": {"d": "e"}}, "spec": {"containers": [container]}},
        },
    })
    .to_string()
}

#[test]
#[ignore = "a measurement: cargo test -p kruise-admission --test it -- --ignored measurements::"]
fn a_long_list_takes_half_as_much_again_at_most() {
    let set = set();
    let mut body = Vec::with_capacity(SETS * (set.len() + 1) + 1024);
    let head = r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1",
        "request":{"uid":"u","desiredAPIVersion":"apps.kruise.io/v1beta1","objects":["#;
    body.extend_from_slice(head.as_bytes());
    for number in 0..SETS {
        body.extend_from_slice(if number == 0 { b"" } else { b"," });
        body.extend_from_slice(set.as_bytes());
    }
    body.extend_from_slice(b"]}}");
    let (before, since) = (peak(), Instant::now());
    let length = body.len();
    let answer = convert(&kruise_api::kinds::ALL, body).unwrap();
    let (grown, took) = (peak() - before, since.elapsed());
    println!(
        "{SETS} sets of {} B: {:?} each, body {} KiB, answer {} KiB, {} KiB more memory",
        set.len(),
        took / SETS as u32,
        length / 1024,
        answer.iter().map(Vec::len).sum::<usize>() / 1024,
        grown / 1024
    );
    assert!(grown <= length / 2, "{grown} for {length}");
    let answer: Value = serde_json::from_slice(&answer.concat()).unwrap();
    let converted = answer["response"]["convertedObjects"].as_array().unwrap();
    assert_eq!(converted.len(), SETS);
    assert_eq!(
        converted[SETS - 1]["spec"]["scaleStrategy"]["enablePVCReuse"],
        false
    );
}
