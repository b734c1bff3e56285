//! What the webhook costs a pod among 200 SidecarSets, two of which are for it: `cargo bench -p kruise-admission`.
//!
//! Holds that 99 of 100 pods take at most 1 ms, from the decoded request to the answer.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a bench that cannot go on ends")]

use std::time::{Duration, Instant};

use kruise_admission::{
    Answer, Options, Request,
    pod::{Known, Outcome, review, sidecars::Sets},
};
use serde_json::{Value, json};

const SETS: usize = 200;
const PODS: usize = 20_000;
const BAR: Duration = Duration::from_millis(1);

fn set(index: usize) -> Value {
    let labels = if index % 100 == 7 {
        json!({"app": "web"})
    } else {
        json!({"app": format!("app-{index}")})
    };
    let mut set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": format!("s{index:03}")},
        "spec": {
            "selector": {"matchLabels": labels},
            "containers": [{
                "name": format!("agent-{index}"), "image": "agent:1", "shareVolumePolicy": {"type": "enabled"},
                "volumeMounts": [{"name": "spool", "mountPath": "/spool"}],
                "transferEnv": [{"sourceContainerName": "c0", "envNames": ["V1", "V2"]}],
            }],
            "volumes": [{"name": "spool", "emptyDir": {}}],
        },
    });
    kruise_admission::sidecarset::complete(&mut set);
    set
}

/// A pod of three containers with ten variables each.
fn request() -> Request {
    let variables: Vec<Value> = (0..10)
        .map(|index| json!({"name": format!("V{index}"), "value": "some value"}))
        .collect();
    let containers: Vec<Value> = (0..3)
        .map(|index| {
            json!({"name": format!("c{index}"), "image": "main:1", "env": variables,
                   "volumeMounts": [{"name": "data", "mountPath": "/data"}]})
        })
        .collect();
    let pod = json!({
        "metadata": {"generateName": "web-", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"containers": containers, "volumes": [{"name": "data", "emptyDir": {}}]},
    });
    let review = json!({"uid": "u", "operation": "CREATE", "namespace": "shop", "object": pod,
        "kind": {"group": "", "version": "v1", "kind": "Pod"}});
    Request::from_review(&review).unwrap()
}

fn main() {
    let known = Known {
        sets: Some(Sets::of((0..SETS).map(set)).into()),
        ..Known::default()
    };
    let request = request();
    let mut times: Vec<Duration> = (0..PODS)
        .map(|_| {
            let start = Instant::now();
            let outcome = review(&request, Options::default(), &known);
            let time = start.elapsed();
            let Outcome::Answer(Answer::Allow { patch: Some(_), .. }) = outcome else {
                panic!("not injected: {outcome:?}")
            };
            time
        })
        .collect();
    times.sort_unstable();
    let at = |share: usize| times.get(PODS * share / 100).copied().unwrap_or_default();
    let (middle, most) = (at(50), at(99));
    println!(
        "{SETS} sets, {PODS} pods with two of them each: half within {middle:?}, 99 % within {most:?}, bar {BAR:?}"
    );
    assert!(most <= BAR, "too slow");
}
