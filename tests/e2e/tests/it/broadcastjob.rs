//! BroadcastJobs: a pod that runs to its end on each node.
//!
//! Pods of simulated nodes run until the scenario ends them.

use std::time::{Duration, Instant};

use kruise_e2e::wait::{self, Patience};
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, explained, scenario, text};
use crate::daemonset::requests::{CREATE, count, hold};
use crate::own_nodes::{GROUP, Nodes};

const JOBS: &str = "broadcastjobs";
/// Writes until each pod runs, in hundredths: those of statuses and events included.
const ALL: u64 = 220;

/// A BroadcastJob `check` for these nodes, with other members of its specification.
fn check(nodes: &Nodes, spec: &Value) -> Value {
    let mut job = json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "BroadcastJob",
        "metadata": {"name": "check"},
        "spec": {
            "template": {
                "metadata": {"labels": {"app": "check"}},
                "spec": {
                    "restartPolicy": "Never",
                    "nodeSelector": {GROUP: nodes.group},
                    "tolerations": [{"key": GROUP, "operator": "Exists"}],
                    "containers": [{"name": "main", "image": "busybox:1", "command": ["sleep", "infinity"]}],
                },
            },
        },
    });
    for (member, value) in spec.as_object().unwrap() {
        job["spec"][member] = value.clone();
    }
    job
}

/// Waits until the `fields` of the status have these values.
fn until_status(scenario: &Scenario, limit: Patience, fields: &Value) {
    wait::until_true(&format!("status of check has {fields}"), limit, || {
        let status = &scenario.kubectl.get(JOBS, "check")?["status"];
        let mut wanted = fields.as_object().unwrap().iter();
        Ok(wanted.all(|(key, value)| status[key] == *value))
    })
    .unwrap();
}

/// The pods that run on their nodes, by the names of these.
fn running(scenario: &Scenario) -> Vec<Value> {
    let mut pods = scenario.kubectl.list("pods", "app=check").unwrap();
    pods.retain(|pod| pod["status"]["phase"] == "Running");
    pods.sort_by_key(|pod| text(pod, "/spec/nodeName"));
    pods
}

/// Waits until so many pods run on their nodes.
fn until_running(scenario: &Scenario, limit: Patience, pods: usize) {
    wait::until_true(&format!("{pods} pods run"), limit, || {
        Ok(running(scenario).len() == pods)
    })
    .unwrap();
}

/// The containers of these pods end.
fn end(scenario: &Scenario, pods: &[Value], phase: &str) {
    let patch = json!({"status": {"phase": phase}});
    let end = |pod: &Value| {
        let name = text(pod, "/metadata/name");
        scenario.kubectl.patch_status("pod", &name, &patch).unwrap();
    };
    std::thread::scope(|scope| {
        for some in pods.chunks(pods.len().div_ceil(8).max(1)) {
            scope.spawn(|| some.iter().for_each(end));
        }
    });
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_broadcast_runs_on_all_nodes_and_completes_for_two_requests_a_pod() {
    let scenario = scenario("broadcastjob-requests");
    let pods = count();
    let nodes = Nodes::new(&scenario, pods);
    let limit = LIMIT + Duration::from_secs(pods as u64);
    let mut log = scenario.audit_log();
    scenario.kubectl.apply(&check(&nodes, &json!({}))).unwrap();
    until_running(&scenario, limit, pods);
    let writes = hold(&mut log, "broadcast", CREATE, pods);
    // The events of the first pods, and the first reports, weigh more the fewer pods there are.
    let first = if pods < 500 { 4_000 } else { 0 };
    assert!(writes as u64 * 100 <= ALL * pods as u64 + first, "{writes}");
    let all = running(&scenario);
    let on: Vec<String> = all.iter().map(|pod| text(pod, "/spec/nodeName")).collect();
    let mut wanted = nodes.names.clone();
    wanted.sort();
    assert_eq!(on, wanted, "one pod on each node");

    let namespace = scenario.kubectl.namespace().unwrap();
    let lines = explained(&scenario, &["bcj/check", &on[0], "--namespace", namespace]);
    assert!(lines.contains("the job runs"), "{lines}");
    let begun = Instant::now();
    end(&scenario, &all, "Succeeded");
    until_status(
        &scenario,
        limit,
        &json!({"phase": "completed", "desired": pods, "succeeded": pods, "active": 0, "failed": 0}),
    );
    wait::observe_for(Duration::from_secs(2));
    let later = log.read_new(kruise_e2e::audit::MANAGER).unwrap();
    let reports = later.iter().filter(|one| one.is_write()).count();
    println!("end of a broadcast, {pods} pods: {reports} writes");
    // Reports are merged: two a second, however fast pods end.
    let most = 2 * begun.elapsed().as_secs() + 10;
    assert!(reports as u64 <= most, "{reports} writes, {most} may be");
    let job = scenario.kubectl.get(JOBS, "check").unwrap();
    let condition = &job["status"]["conditions"][0];
    assert_eq!([&condition["type"], &condition["status"]], ["Complete", "True"]);
    assert_eq!(
        scenario.kubectl.list("pods", "app=check").unwrap().len(),
        pods,
        "nothing runs twice"
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_job_fails_at_its_deadline_is_deleted_later_and_its_pods_go() {
    let scenario = scenario("broadcastjob-deadline");
    let nodes = Nodes::new(&scenario, 3);
    let completion = json!({"type": "Always", "activeDeadlineSeconds": 20, "ttlSecondsAfterFinished": 15});
    let spec = json!({"completionPolicy": completion, "parallelism": 2});
    scenario.kubectl.apply(&check(&nodes, &spec)).unwrap();
    until_status(&scenario, LIMIT, &json!({"phase": "failed"}));
    let job = scenario.kubectl.get(JOBS, "check").unwrap();
    let condition = &job["status"]["conditions"][0];
    assert_eq!(condition["type"], "Failed");
    let message = format!(
        "Job {}/check was active longer than specified deadline",
        nodes.group
    );
    assert_eq!(condition["message"], message.as_str());
    assert_eq!(job["status"]["desired"], 3);
    wait::until_true("the pods are gone", wait::QUIET, || {
        Ok(scenario.kubectl.list("pods", "app=check")?.is_empty())
    })
    .unwrap();
    wait::until_true("the job is gone", wait::QUIET, || {
        Ok(scenario.kubectl.list(JOBS, "")?.is_empty())
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_job_without_end_runs_on_a_node_that_joins_and_on_one_whose_taint_is_removed() {
    let scenario = scenario("broadcastjob-never");
    let mut nodes = Nodes::new(&scenario, 2);
    let first = nodes.names[0].clone();
    nodes.run(&["taint", "node", &first, "other=x:NoSchedule"]);
    let spec = json!({"completionPolicy": {"type": "Never"}, "failurePolicy": {"type": "Continue"}});
    scenario.kubectl.apply(&check(&nodes, &spec)).unwrap();
    until_running(&scenario, LIMIT, 1);
    end(&scenario, &running(&scenario), "Failed");
    until_status(
        &scenario,
        LIMIT,
        &json!({"phase": "running", "desired": 1, "failed": 1, "active": 0}),
    );

    let joined = nodes.join();
    until_running(&scenario, LIMIT, 1);
    assert_eq!(text(&running(&scenario)[0], "/spec/nodeName"), joined);
    nodes.run(&["taint", "node", &first, "other-"]);
    until_running(&scenario, LIMIT, 2);
    until_status(
        &scenario,
        LIMIT,
        &json!({"phase": "running", "desired": 3, "failed": 1, "active": 2}),
    );
}
