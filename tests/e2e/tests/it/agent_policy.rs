//! Tokens of agents of two nodes under the printed rights and policy: what an agent writes, what OpenKruise's
//! daemon writes, and what somebody who has broken into a node tries.

use std::path::{Path, PathBuf};

use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, kubeconfig_of_account, kubectl, scenario_gated, text, variable};
use crate::installation::manifests;
use crate::own_nodes::Nodes;
use crate::{containerrecreaterequest as requests, probes};

const NAMESPACE: &str = "agent-policy";
const ACCOUNT: &str = "kruise-daemon";

/// Applies the rights of agents and their policy, without their DaemonSet.
pub(crate) fn grant(scenario: &Scenario) {
    let printed = manifests(&[
        "--agent",
        "--image=example/kruise:1",
        "--feature-gates=ImagePullJobGate=true",
    ]);
    let is_of_agents = |object: &&str| {
        object.contains("name: kruise-daemon")
            && !object.contains("kind: DaemonSet")
            && !object.contains("kind: CustomResourceDefinition")
    };
    let objects: Vec<&str> = printed.split("---\n").filter(is_of_agents).collect();
    let everywhere = Kubectl::new(kubectl(), scenario.kubectl.kubeconfig());
    everywhere
        .run_with_input(&["apply", "-f", "-"], &objects.join("---\n"))
        .unwrap();
}

/// A kubeconfig with a token that is bound to a pod of the agents' account on a node, as kubelets ask for, or to no
/// object.
fn token(system: &Kubectl, node: Option<&str>, dir: &Path) -> PathBuf {
    let Some(node) = node else {
        return kubeconfig_of_account(system, ACCOUNT, &[], &dir.join("without"));
    };
    let pod = format!("agent-of-{node}");
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod},
        "spec": {"nodeName": node, "serviceAccountName": ACCOUNT, "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "daemon", "image": "kruise:1"}]},
    });
    system.create(&object).unwrap();
    let name = format!("--bound-object-name={pod}");
    let config = kubeconfig_of_account(
        system,
        ACCOUNT,
        &["--bound-object-kind=Pod", &name],
        &dir.join(node),
    );
    assert!(config.exists());
    config
}

/// Pods `mine` and `theirs` on the two nodes, a request for each, and an event of each node.
fn populate(scenario: &Scenario, nodes: &Nodes) {
    let kubectl = &scenario.kubectl;
    for (name, node) in [("mine", &nodes.names[0]), ("theirs", &nodes.names[1])] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "web"}, "annotations": {"shop.example/note": "1"}},
            "spec": {"nodeName": node, "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "app", "image": "nginx:1"}]},
        });
        kubectl.create(&pod).unwrap();
        wait::until_true("the pod runs", LIMIT, || {
            let pod = kubectl.get("pods", name)?;
            Ok(pod["status"]["containerStatuses"][0]["containerID"].is_string())
        })
        .unwrap();
        let request = requests::request(name, name, &json!({"activeDeadlineSeconds": 3600}));
        let request = kubectl.create(&request).unwrap();
        assert_eq!(
            request["metadata"]["labels"]["crr.apps.kruise.io/node-name"],
            **node
        );
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "reason": "Killing", "message": "m",
            "involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": name}, "type": "Normal", "count": 1,
            "source": {"component": "kruise-daemon-crr", "host": node},
        });
        kubectl.create(&event).unwrap();
    }
}

/// Sends a write as an agent: whether it was accepted, and the message if not.
fn send(agent: &Kubectl, admin: &Kubectl, write: &Value) -> (bool, String) {
    let field = |name: &str| text(write, &format!("/{name}"));
    let at = field("at");
    let object = at.trim_end_matches("/status");
    let stored = match &*field("verb") {
        "create" => Value::Null,
        _ => admin.raw("GET", object, None).unwrap().1,
    };
    let body = write["body"]
        .to_string()
        .replace("$uid", &text(&stored, "/metadata/uid"));
    let body: Value = serde_json::from_str(&body).unwrap();
    let (method, kind, body) = match (&*field("verb"), &*field("type")) {
        ("create", _) => ("POST", "application/json", body),
        ("update", _) => {
            let mut whole = stored;
            for (name, value) in body.as_object().unwrap() {
                for (inner, value) in value.as_object().unwrap() {
                    whole[name][inner] = value.clone();
                }
            }
            ("PUT", "application/json", whole)
        }
        (_, "json") => ("PATCH", "application/json-patch+json", body),
        (_, "merge") => ("PATCH", "application/merge-patch+json", body),
        _ => ("PATCH", "application/strategic-merge-patch+json", body),
    };
    let (code, answer) = agent
        .raw(method, &format!("{at}?dryRun=All"), Some((kind, &body)))
        .unwrap();
    (code < 300, text(&answer, "/message"))
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_token_of_a_nodes_agent_writes_what_agents_must_about_that_node_and_nothing_else() {
    let scenario = scenario_gated(NAMESPACE);
    let admin = &scenario.kubectl;
    let system = admin.in_namespace("kruise-system");
    let nodes = Nodes::new(&scenario, 2);
    grant(&scenario);
    wait::until_true("the nodes have NodeImages", LIMIT, || {
        Ok(nodes
            .names
            .iter()
            .all(|node| admin.get("nodeimages", node).is_ok()))
    })
    .unwrap();
    probes::until_listed(&nodes, admin);
    populate(&scenario, &nodes);
    let dir = PathBuf::from(variable("KRUISE_E2E_DIR")).join(NAMESPACE);
    let [own, other] = [0, 1].map(|at: usize| nodes.names[at].as_str());
    let bound = admin.with_kubeconfig(token(&system, Some(own), &dir));
    let unbound = admin.with_kubeconfig(token(&system, None, &dir));

    let writes = include_str!("../../../../fixtures/agent-writes.json");
    let writes = writes
        .replace("$own", own)
        .replace("$other", other)
        .replace("$ns", NAMESPACE);
    let writes: Vec<Value> = serde_json::from_str(&writes).unwrap();
    let found = |write: &Value| {
        let agent = if write["token"].is_null() {
            &bound
        } else {
            &unbound
        };
        let (is_accepted, message) = send(agent, admin, write);
        let is_as_expected = match &*text(write, "/expected") {
            "allowed" => is_accepted,
            "rights" => message.contains(" cannot ") && message.contains("system:serviceaccount:"),
            part => message.contains(part),
        };
        (is_as_expected, message)
    };
    let is_refused = |write: &&Value| write["what"] == "a failed pod of another node";
    let sign = writes.iter().find(is_refused).unwrap();
    wait::until_true("the policy is in force", LIMIT, || Ok(found(sign).0)).unwrap();
    let wrong: Vec<String> = writes
        .iter()
        .filter_map(|write| {
            let (is_as_expected, message) = found(write);
            (!is_as_expected).then(|| format!("{}: {message:?}", write["what"]))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // The same writes with the token of the other node.
    let theirs = admin.with_kubeconfig(token(&system, Some(other), &dir));
    let (is_accepted, message) = send(&theirs, admin, sign);
    assert!(
        !is_accepted && message.contains("the status of a pod"),
        "{message}"
    );
    let report = writes
        .iter()
        .find(|write| write["what"] == "a report on a pod of another node");
    let (is_accepted, message) = send(&theirs, admin, report.unwrap());
    assert!(is_accepted, "{message}");
    for node in &nodes.names {
        let delete = ["delete", "pod", &format!("agent-of-{node}"), "--wait=false"];
        system.run(&delete).unwrap();
    }
}
