//! A manager that is killed at any moment of a rollout does nothing twice.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::{Duration, Instant};

use kruise_e2e::audit::{Entry, MANAGER};
use kruise_e2e::manager::SHORT_LEASE;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{
    Flagged, LEASE, LIMIT, Scenario, Stopped, audit_log, container, restart_manager, scenario_alone, web,
};

/// Pods of the set.
const PODS: u32 = 20;

/// Kills per test run; `KRUISE_E2E_CRASHES` sets another number.
fn crashes() -> u32 {
    std::env::var("KRUISE_E2E_CRASHES").map_or(5, |text| text.parse().unwrap())
}

/// One kill in ten happens under the lease that a manager has by itself, so that the next one waits long.
fn default_lease(run: u32) -> bool {
    run % 10 == 9
}

/// Waits until a manager that was just started holds a lease of so many seconds.
pub(crate) fn until_held(scenario: &Scenario, seconds: u32) {
    let system = scenario.kubectl.in_namespace("kruise-system");
    wait::until_true(&format!("a lease of {seconds} s is held"), LIMIT, || {
        Ok(system.get("lease", LEASE)?["spec"]["leaseDurationSeconds"] == seconds)
    })
    .unwrap();
}

/// Starts a manager with the default lease and waits until it holds one.
fn lead_by_default(scenario: &Scenario) {
    restart_manager(scenario.kubectl.kubeconfig(), &[]);
    until_held(scenario, 15);
}

/// Kills the leader; the next one is of the same kind.
fn kill_leader(kubeconfig: &Path, run: u32) {
    if default_lease(run) {
        restart_manager(kubeconfig, &[]);
    } else {
        restart_manager(kubeconfig, SHORT_LEASE);
    }
}

/// Writes of pods, as the server answered them.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// How often each verb succeeded for each pod.
    pub(crate) done: BTreeMap<(String, String), u32>,
    /// Verbs of requests whose client was gone before the answer (504): done or not, the log cannot tell.
    unanswered: Vec<String>,
}

impl Writes {
    /// Those of a namespace.
    pub(crate) fn of(requests: &[Entry], namespace: &str) -> Self {
        let mut writes = Self::default();
        let of_pods = |request: &&Entry| request.namespace == namespace && request.resource == "pods";
        for request in requests
            .iter()
            .filter(of_pods)
            .filter(|request| request.is_write())
        {
            let Entry { verb, name, code, .. } = request.clone();
            match code {
                0..300 => *writes.done.entry((verb, name)).or_default() += 1,
                504 => writes.unanswered.push(verb),
                _ => {}
            }
        }
        writes
    }

    /// Was this done to `pods` pods, to each once? Requests without an answer fill what is missing; a surplus that they
    /// hide shows in the other verb: a pod too many has to be deleted.
    pub(crate) fn once(&self, verb: &str, pods: u32) -> bool {
        let done = self.done.iter().filter(|((of, _), _)| of == verb);
        let most = done.clone().map(|(_, times)| *times).max().unwrap_or(0);
        let done: u32 = done.map(|(_, times)| times).sum();
        let unanswered = self.unanswered.iter().filter(|of| *of == verb).count();
        most <= 1 && done <= pods && done + u32::try_from(unanswered).unwrap() >= pods
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_new_leader_requests_the_current_version_of_each_resource() {
    let scenario = scenario_alone("new-leader");
    scenario.kubectl.apply(&web(1)).unwrap();
    scenario.until_status(&json!({"readyReplicas": 1}));
    let stopped = Stopped::shared(scenario.kubectl.kubeconfig());
    let scale = ["scale", "clonesets", "web", "--replicas=3"];
    scenario.kubectl.run(&scale).unwrap();
    let mut log = audit_log();
    drop(stopped);
    scenario.until_status(&json!({"replicas": 3, "readyReplicas": 3}));
    let asked = log.read_new(MANAGER).unwrap();
    // What its plans are made from.
    for collection in [
        "/apis/apps.kruise.io/v1beta1/clonesets",
        "/api/v1/pods",
        "/api/v1/persistentvolumeclaims",
        "/apis/apps/v1/controllerrevisions",
    ] {
        let question = format!("{collection}?limit=1");
        assert!(asked.iter().any(|entry| entry.uri == question), "{question}");
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_killed_manager_creates_deletes_and_restarts_no_pod_twice() {
    let scenario = scenario_alone("crash");
    let random = RandomState::new();
    // Nobody frees it here: whoever comes next waits for the lease of the dead.
    let _flagged = Flagged::shared(scenario.kubectl.kubeconfig(), SHORT_LEASE);
    until_held(&scenario, 2);
    scenario.kubectl.apply(&web(PODS)).unwrap();
    scenario.until_status(&json!({"readyReplicas": PODS}));
    let begin = Instant::now();
    let mut half_way = 0;
    for run in 0..crashes() {
        if default_lease(run) {
            lead_by_default(&scenario);
        }
        let uids = scenario.uids();
        let moment = Duration::from_millis(random.hash_one(run) % 600);
        let mut log = audit_log();
        // Even runs update in place, odd ones recreate.
        let image = format!("nginx:{run}-0");
        let in_place = run % 2 == 0;
        let patch = container(&image, &format!("new-{run}"));
        let patch = if in_place {
            keep_variable(&scenario.pods(), patch)
        } else {
            patch
        };
        scenario.patch(&patch);
        wait::observe_for(moment);
        let mut requests = log.read_new(MANAGER).unwrap();
        let begun = Writes::of(&requests, "crash");
        kill_leader(scenario.kubectl.kubeconfig(), run);
        scenario.until_status(&json!({"updatedReadyReplicas": PODS, "replicas": PODS}));

        requests.extend(log.read_new(MANAGER).unwrap());
        let writes = Writes::of(&requests, "crash");
        let at = format!("run {run} at {moment:?}: {writes:?}");
        half_way += u32::from(!begun.done.is_empty() && begun.done.len() < writes.done.len());
        let (recreated, patched) = if in_place { (0, PODS) } else { (PODS, 0) };
        assert!(
            writes.once("create", recreated) && writes.once("delete", recreated),
            "{at}"
        );
        if in_place {
            assert_eq!(scenario.uids(), uids, "{at}");
            assert!(writes.once("patch", patched), "{at}");
        }
        if default_lease(run) {
            restart_manager(scenario.kubectl.kubeconfig(), SHORT_LEASE);
        }
    }
    let slow = (0..crashes()).filter(|run| default_lease(*run)).count();
    let seconds = begin.elapsed().as_secs();
    println!(
        "{} kills in {seconds} s: {half_way} half-way through the pods, {slow} under the default lease",
        crashes()
    );
}

/// The patch with the variable that the pods have now: only the image changes.
fn keep_variable(pods: &[Value], mut patch: Value) -> Value {
    let current = pods
        .first()
        .unwrap()
        .pointer("/spec/containers/0/env/0/value")
        .unwrap()
        .clone();
    *patch
        .pointer_mut("/spec/template/spec/containers/0/env/0/value")
        .unwrap() = current;
    patch
}
