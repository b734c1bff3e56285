//! How large and how fast. Bars are for release builds; the default run uses a tenth of the pods and no bar on time.
//! The only measurement here, because it measures the memory of the whole process and times that others would stretch.

use std::time::Instant;

use kruise_sim::{Method, Request};
use serde_json::{Value, json};

use crate::server::Server;

fn rich_pod(index: usize) -> Value {
    let container = |name: &str| {
        let env: Vec<Value> = (0..10)
            .map(|n| json!({"name": format!("VARIABLE_{n}"), "value": format!("value-{n}")}))
            .collect();
        json!({"name": name, "image": "registry.example.com/team/app:1.2.3", "env": env,
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}})
    };
    let many = |kind: &str, count: usize| -> Value {
        (0..count)
            .map(|n| {
                (
                    format!("example.com/{kind}-{n}"),
                    json!(format!("{kind}-value-{n}")),
                )
            })
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    json!({"metadata": {"name": format!("pod-{index}"), "labels": many("label", 12), "annotations": many("annotation", 8)},
        "spec": {"containers": [container("a"), container("b"), container("c")]}})
}

/// Memory of this process, in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let words = line.unwrap().split_whitespace().next();
    words.unwrap().parse().unwrap()
}

#[test]
#[ignore = "a measurement: cargo test -p kruise-sim --test it -- --ignored measurements::"]
fn pods_are_small_and_reads_are_fast() {
    let pods: usize = std::env::var("SIM_PODS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(2000);
    let started = Instant::now();
    let mut server = Server::new();
    println!("boot {:?}", started.elapsed());
    let before = resident();
    let started = Instant::now();
    for index in 0..pods {
        assert_eq!(
            server.post("/api/v1/namespaces/default/pods", &rich_pod(index)).0,
            201
        );
    }
    println!("{pods} creations in {:?}", started.elapsed());
    let kib = (resident() - before) / pods.max(1);
    println!("{kib} KiB a pod, {} MiB in all", resident() / 1024);
    // The text of a pod alone takes several: a measurement that sees nothing fails.
    assert!((2..=20).contains(&kib), "{kib} KiB a pod");
    let mut times: Vec<_> = (0..1000)
        .map(|index| {
            let target = format!("/api/v1/namespaces/default/pods/pod-{}", index * pods / 1000);
            let request = Request::new(Method::Get, &target, None);
            let started = Instant::now();
            let outcome = server.api.handle(&request, server.now);
            let elapsed = started.elapsed();
            assert_eq!(outcome.response().unwrap().code, 200);
            elapsed
        })
        .collect();
    times.sort();
    println!("GET p50 {:?}, p99 {:?}", times[500], times[990]);
    let started = Instant::now();
    server.api.tick(server.now);
    println!("idle tick {:?}", started.elapsed());
}
