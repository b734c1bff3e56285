//! Ephemeral containers that kubelets run.

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::{TOOL, WEB, on_nodes};
use crate::cluster::{LIMIT, text};

/// Ends well in the pod `good`, and badly in any other.
const SCRIPT: &str = "sleep 1; test \"$(cat /etc/hostname)\" = good || exit 7";

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn results_of_ephemeral_containers_are_reported_mixed_ones_too() {
    let on = on_nodes("nodes-ephemeral");
    let kubectl = &on.scenario.kubectl;
    for name in ["bad", "good"] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {"nodeSelector": {"type": "real"}, "terminationGracePeriodSeconds": 1,
                     "containers": [{"name": "main", "image": WEB}]},
        });
        kubectl.create(&pod).unwrap();
    }
    let running = || -> anyhow::Result<Vec<Value>> {
        let mut pods = kubectl.list("pods", "app=web")?;
        pods.retain(|pod| pod["status"]["containerStatuses"][0]["ready"] == true);
        pods.sort_by_key(|pod| text(pod, "/metadata/name"));
        Ok(pods)
    };
    wait::until_true("the pods are ready", LIMIT, || Ok(running()?.len() == 2)).unwrap();
    let before = running().unwrap();

    let job = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "EphemeralJob", "metadata": {"name": "dump"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}}, "parallelism": 2,
            "template": {"ephemeralContainers": [{"name": "dumper", "image": TOOL, "imagePullPolicy": "IfNotPresent",
                "terminationMessagePolicy": "File", "command": ["sh", "-c", SCRIPT]}]},
        },
    });
    kubectl.create(&job).unwrap();
    let mut job = Value::Null;
    wait::until_true("the job has ended", LIMIT, || {
        job = kubectl.get("ephemeraljobs", "dump")?;
        Ok(job["status"]["completionTime"].is_string())
    })
    .unwrap();
    let status = &job["status"];
    let counts = ["match", "succeeded", "failed", "running", "waiting"].map(|name| status[name].as_i64());
    assert_eq!(counts, [2, 1, 1, 0, 0].map(Some), "{status}");
    assert_eq!(status["phase"], "Failed");
    let after = running().unwrap();
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(
            after["status"]["containerStatuses"], before["status"]["containerStatuses"],
            "no container of the pod restarts"
        );
        let code = i64::from(text(after, "/metadata/name") == "bad") * 7;
        let ended = &after["status"]["ephemeralContainerStatuses"][0]["state"]["terminated"];
        assert_eq!(ended["exitCode"], code, "{ended}");
    }
    let message = "1 pod succeeded, 1 failed: bad (dumper ended with exit code 7)";
    wait::until_true("an event says which", LIMIT, || {
        let events = kubectl.list("events", "")?;
        Ok(events
            .iter()
            .any(|event| event["reason"] == "JobFailed" && event["message"] == message))
    })
    .unwrap();
}
