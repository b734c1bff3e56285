//! What every scenario starts from: a cluster with three nodes, definitions and our webhook configurations.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use kruise_sim::{Config, DEFAULT_STAGES, Method, Options, Request, Timings, World};
use serde_json::{Value, json};

use super::random::{Purpose, Random};

/// The container of a pod crashes once, or fails its readiness, or comes to its end, as an annotation says. Of a
/// pod that comes to its end by itself, or by another image, readiness is not simulated: a pod enters one stage at
/// a time.
const STAGES: &str = r#"
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: dst-crash}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchAnnotations: {dst/fault: crash}
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
    - {key: '.status.containerStatuses[]? | select(.state.running) | .name', operator: In, values: [main]}
  next:
    step: {kind: Crash, container: main, exitCode: 3}
    patches:
    - {root: metadata, type: merge, template: 'annotations: {dst/fault: crashed}'}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: dst-unready}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchAnnotations: {dst/fault: unready}
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
    - {key: '.metadata.annotations["dst/end"]', operator: DoesNotExist}
    - {key: '.metadata.annotations["dst/swapped"]', operator: DoesNotExist}
  next: {step: {kind: Readiness, container: main, passes: false}}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: dst-ready}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchAnnotations: {dst/fault: ready}
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
    - {key: '.metadata.annotations["dst/end"]', operator: DoesNotExist}
    - {key: '.metadata.annotations["dst/swapped"]', operator: DoesNotExist}
  next: {step: {kind: Readiness, container: main, passes: true}}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: dst-succeeds}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchAnnotations: {dst/end: succeeds}
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
    - {key: '.status.containerStatuses[]? | select(.state.running) | .name', operator: In, values: [main]}
  delay: {durationMilliseconds: 500, jitterDurationMilliseconds: 12000}
  next: {step: {kind: Crash, container: main, exitCode: 0, reason: Completed}}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: dst-fails}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchAnnotations: {dst/end: fails}
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
    - {key: '.status.containerStatuses[]? | select(.state.running) | .name', operator: In, values: [main]}
  delay: {durationMilliseconds: 500, jitterDurationMilliseconds: 12000}
  next: {step: {kind: Crash, container: main, exitCode: 3}}
"#;

/// Containers with the image of a program that ends at once end, in pods that say so.
const SWAPPED: &str = r#"
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: dst-swapped-PLACE}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchAnnotations: {dst/swapped: ends}
    matchExpressions:
    - key: '.status.containerStatuses[]? | select(.state.running and .image == "ends:1") | .name'
      operator: In
      values: [log-PLACE]
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
  delay: {durationMilliseconds: 300}
  next: {step: {kind: Crash, container: log-PLACE, exitCode: 0, reason: Completed}}
"#;

/// Names of the nodes.
pub const NODES: [&str; 3] = ["n1", "n2", "n3"];

/// What clocks show at first.
pub fn origin() -> Timestamp {
    // 2026-01-01T00:00:00Z
    Timestamp::from_second(1_767_225_600).unwrap_or_default()
}

/// A node. Kubelets of three versions are in every cluster: one that reports no generations and hashes whole
/// containers, one without faults, and one that reports the readiness of the container before.
pub fn node(name: &str) -> Value {
    let version = match name {
        "n1" => "v1.30.14",
        "n2" => "v1.34.2",
        _ => "v1.36.0",
    };
    json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"nodeInfo": {"kubeletVersion": version}}})
}

/// A cluster that is up, with these definitions. It booted once for all scenarios that have the same; what differs
/// by seed comes after that. Uids from before follow from no seed of a scenario, so no object gets one of them
/// again.
pub fn world(seed: u64, definitions: &[Value]) -> anyhow::Result<World> {
    static BOOTED: Mutex<BTreeMap<Vec<String>, World>> = Mutex::new(BTreeMap::new());
    let name = |one: &Value| one["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let names: Vec<String> = definitions.iter().map(name).collect();
    let mut booted = BOOTED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut world = match booted.get(&names) {
        Some(world) => world.clone(),
        None => booted.entry(names).or_insert(boot(definitions)?).clone(),
    };
    drop(booted);
    world.reseed(seed);
    Ok(world)
}

fn boot(definitions: &[Value]) -> anyhow::Result<World> {
    let config = Config {
        seed: Random::new(0, Purpose::BOOT).draw(),
        window: 100_000,
        ..Config::default()
    };
    let swapped = ["0", "1"].map(|place| SWAPPED.replace("PLACE", place));
    let stages = format!(
        "{DEFAULT_STAGES}\n---\n{STAGES}\n---\n{}",
        swapped.join("\n---\n")
    );
    let options = Options {
        stages,
        timings: Timings::default(),
        daemon: true,
        events: false,
        garbage: Duration::ZERO,
        patience: SignedDuration::ZERO,
        ..Options::default()
    };
    let mut world = World::new(&config, &options, origin()).context("the world does not boot")?;
    let mut post = |path: &str, body: &Value| {
        let response = world
            .handle(&Request::new(Method::Post, path, Some(body)))
            .response();
        let response = response.with_context(|| format!("{path} is not answered"))?;
        anyhow::ensure!(response.code == 201, "{path}: {}", response.value());
        anyhow::Ok(())
    };
    for definition in definitions {
        post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            definition,
        )?;
    }
    post(
        "/api/v1/namespaces",
        &json!({"metadata": {"name": "kruise-system"}}),
    )?;
    for object in
        kruise_admission::manifests::configurations(kruise_kinds::webhooks(), "kruise-system", false)
    {
        let plural = format!("{}s", object["kind"].as_str().unwrap_or_default().to_lowercase());
        post(
            &format!("/apis/admissionregistration.k8s.io/v1/{plural}"),
            &object,
        )?;
    }
    for name in NODES {
        post("/api/v1/nodes", &node(name))?;
    }
    world.advance(origin());
    Ok(world)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn answer(world: &mut World, request: &Request) -> Value {
        world.handle(request).response().unwrap().value()
    }

    fn uid(object: &Value) -> String {
        object["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    #[test]
    fn no_object_of_a_scenario_gets_a_uid_of_the_cluster_that_booted() {
        let collections = [
            "/api/v1/nodes",
            "/api/v1/namespaces",
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        ];
        for seed in 0..20 {
            let mut world = world(seed, &[]).unwrap();
            let mut uids = BTreeSet::new();
            for path in collections {
                let list = answer(&mut world, &Request::new(Method::Get, path, None));
                uids.extend(list["items"].as_array().unwrap().iter().map(uid));
            }
            let booted = uids.len();
            assert!(booted > 5);
            for number in 0..100 {
                let map = json!({"metadata": {"name": format!("m{number}")}});
                let path = "/api/v1/namespaces/default/configmaps";
                let made = answer(&mut world, &Request::new(Method::Post, path, Some(&map)));
                uids.insert(uid(&made));
            }
            assert_eq!(uids.len(), booted + 100, "seed {seed}");
        }
    }
}
