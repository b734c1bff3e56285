//! Resources that change in place: what reaches processes, and how a kubelet refuses what it cannot give.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use super::runtime::version;
use super::{OnNodes, TOOL, WEB, containers, identity, on_nodes_gated, status_of, web_of};
use crate::cluster::{LIMIT, explained, text};

/// A server that requests so much of a processor.
fn server(request: &str, limit: &str) -> Value {
    json!([{"name": "main", "image": WEB, "resources": {"requests": {"cpu": request}, "limits": {"cpu": limit}}}])
}

/// Hundredths of a processor that a process may use, from the kernel.
fn share(pid: u32) -> Option<u64> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let root = Path::new("/sys/fs/cgroup");
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let read = |file: PathBuf| fs::read_to_string(file).ok();
        let (quota, period) = if controllers.is_empty() {
            let Some(text) = read(root.join(path).join("cpu.max")) else {
                continue;
            };
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.to_owned(), period.to_owned())
        } else if controllers.split(',').any(|one| one == "cpu") {
            let of = |name: &str| {
                ["cpu", controllers]
                    .into_iter()
                    .find_map(|mount| read(root.join(mount).join(path).join(name)))
            };
            (of("cpu.cfs_quota_us")?, of("cpu.cfs_period_us")?)
        } else {
            continue;
        };
        let [quota, period] = [quota, period].map(|number| number.trim().parse::<u64>().ok());
        return Some(quota? * 100 / period?);
    }
    None
}

fn share_of(on: &OnNodes) -> Option<u64> {
    share(on.runtime.processes(&on.pod()).containers.get("main")?.pid)
}

fn condition(object: &Value, kind: &str) -> Value {
    let all = object["status"]["conditions"].as_array();
    let found = all.into_iter().flatten().find(|one| one["type"] == kind);
    found.cloned().unwrap_or_default()
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn more_processor_time_reaches_the_running_process_and_the_pod_stays_in_service() {
    let on = on_nodes_gated("nodes-more-cpu");
    on.scenario
        .kubectl
        .apply(&web_of(1, &server("50m", "200m")))
        .unwrap();
    on.until_updated(1);
    let (before, running) = (on.pod(), on.runtime.processes(&on.pod()));
    assert_eq!(share_of(&on), Some(20));
    let watch = Watch::start(&on.scenario.kubectl, "pods", "app=web").unwrap();
    watch.until_shown(1, LIMIT).unwrap();

    on.scenario.patch(&containers(&server("60m", "400m")));
    on.scenario
        .until_status(&json!({"replicas": 1, "updatedAvailableReplicas": 1, "availableReplicas": 1}));
    let after = on.pod();
    assert_eq!(
        share_of(&on),
        Some(40),
        "the kernel has the new share before the update is over"
    );
    assert_eq!(identity(&after), identity(&before));
    assert_eq!(on.runtime.processes(&after), running, "the same processes run");
    assert_eq!(status_of(&after, "main")["resources"]["limits"]["cpu"], "400m");
    assert_eq!(version(&after).as_deref(), Some("1"));
    for event in watch.stop().unwrap() {
        let ready = condition(&event["object"], "Ready");
        assert_eq!(ready["status"], "True", "{}", event["object"]["status"]);
    }
}

/// Thousandths of a processor that the node of a pod has for all pods.
fn processors(on: &OnNodes, pod: &Value) -> u64 {
    let node = on
        .scenario
        .kubectl
        .get("node", &text(pod, "/spec/nodeName"))
        .unwrap();
    let cpu = text(&node, "/status/allocatable/cpu");
    match cpu.strip_suffix('m') {
        Some(thousandths) => thousandths.parse().unwrap(),
        None => cpu.parse::<u64>().unwrap() * 1000,
    }
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn what_a_node_has_no_room_for_now_is_waited_for_and_given_when_there_is_room() {
    let on = on_nodes_gated("nodes-no-room");
    let kubectl = &on.scenario.kubectl;
    kubectl.apply(&web_of(1, &server("10m", "50m"))).unwrap();
    on.until_updated(1);
    let (before, running) = (on.pod(), on.runtime.processes(&on.pod()));
    let all = processors(&on, &before);
    let share = |quarters: u64| format!("{}m", all * quarters / 4);
    let requests = json!({"requests": {"cpu": share(3)}});
    let neighbour = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "neighbour"},
        "spec": {"nodeName": before["spec"]["nodeName"], "terminationGracePeriodSeconds": 1,
                 "containers": [{"name": "main", "image": TOOL, "resources": requests}]},
    });
    kubectl.apply(&neighbour).unwrap();
    wait::until_true("the neighbour has its place", LIMIT, || {
        Ok(kubectl.get("pod", "neighbour")?["status"]["phase"] == "Running")
    })
    .unwrap();

    on.scenario.patch(&containers(&server(&share(2), &share(2))));
    wait::until_true("the kubelet has no room", LIMIT, || {
        Ok(condition(&on.pod(), "PodResizePending")["reason"] == "Deferred")
    })
    .unwrap();
    wait::until_true("the explanation says so", LIMIT, || {
        let output = explained(&on.scenario, &["clone/web", "--namespace", "nodes-no-room"]);
        Ok(output.contains("has no room for the resources that container main asks for (Deferred)"))
    })
    .unwrap();
    on.scenario
        .until_status(&json!({"updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 0}));
    let failed = condition(&kubectl.get("clonesets", "web").unwrap(), "FailedUpdate");
    assert_ne!(failed["status"], "True", "what is waited for has not failed");

    kubectl.run(&["delete", "pod", "neighbour"]).unwrap();
    // Kubelets look again at what they deferred every three minutes, if not at once.
    let given = json!({"updatedAvailableReplicas": 1, "availableReplicas": 1});
    on.scenario.until_status_within(LIMIT * 4, "web", &given);
    let after = on.pod();
    assert_eq!(identity(&after), identity(&before));
    assert_eq!(on.runtime.processes(&after), running, "the same processes run");
    assert_eq!(
        status_of(&after, "main")["resources"]["limits"]["cpu"],
        given_as(all / 2)
    );
}

/// How a server writes thousandths of a processor.
fn given_as(thousandths: u64) -> String {
    if thousandths.is_multiple_of(1000) {
        (thousandths / 1000).to_string()
    } else {
        format!("{thousandths}m")
    }
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn what_no_node_can_give_holds_the_rollout_and_going_back_ends_it() {
    let on = on_nodes_gated("nodes-too-much-cpu");
    let kubectl = &on.scenario.kubectl;
    kubectl.apply(&web_of(3, &server("10m", "200m"))).unwrap();
    on.until_updated(3);
    let identities = |pods: &[Value]| {
        let mut all: Vec<_> = pods.iter().map(identity).collect();
        all.sort();
        all
    };
    let before = on.scenario.pods();

    on.scenario.patch(&containers(&server("4000", "4000")));
    wait::until("a kubelet can never give it", LIMIT, || {
        let refused = |pod: &Value| condition(pod, "PodResizePending")["reason"] == "Infeasible";
        Ok(on.scenario.pods().into_iter().find(refused))
    })
    .unwrap();
    wait::until("the set says so", LIMIT, || {
        let failed = condition(&kubectl.get("clonesets", "web")?, "FailedUpdate");
        let message = failed["message"].as_str().unwrap_or_default();
        Ok((failed["status"] == "True" && message.contains("ever")).then_some(()))
    })
    .unwrap();
    wait::until_true("an event says so", LIMIT, || {
        Ok(kubectl
            .list("events", "")?
            .iter()
            .any(|event| event["reason"] == "ResizeInfeasible"))
    })
    .unwrap();
    // As long as it would take others to follow.
    wait::observe_for(Duration::from_secs(5));
    on.scenario.until_status(
        &json!({"replicas": 3, "updatedReplicas": 1, "readyReplicas": 3, "availableReplicas": 2}),
    );

    on.scenario.patch(&containers(&server("10m", "200m")));
    on.scenario
        .until_status(&json!({"replicas": 3, "updatedAvailableReplicas": 3, "availableReplicas": 3}));
    wait::until_true("the set says that it is over", LIMIT, || {
        Ok(condition(&kubectl.get("clonesets", "web")?, "FailedUpdate")["status"] == "False")
    })
    .unwrap();
    let after = on.scenario.pods();
    assert_eq!(identities(&after), identities(&before));
    assert!(
        after
            .iter()
            .all(|pod| status_of(pod, "main")["restartCount"] == 0)
    );
}
