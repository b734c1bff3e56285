//! Status, scale, eviction, binding and the rest of what is below an object.

use serde_json::{Value, json};

use super::{Dice, Sample, Step, delete, get, named, object, patch, post, put};

const PODS: &str = "/api/v1/namespaces/$ns/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/$ns/poddisruptionbudgets";

pub(super) fn steps(dice: &mut Dice) -> Vec<Step> {
    match dice.roll(4) {
        0 => statuses(dice),
        1 => scales(dice),
        2 => evictions(dice),
        _ => bindings(dice),
    }
}

const WITH_STATUS: &[&str] = &[
    "pods",
    "deployments",
    "replicasets",
    "things",
    "persistentvolumeclaims",
];

fn statuses(dice: &mut Dice) -> Vec<Step> {
    let sample = named(dice.word(WITH_STATUS));
    let one = format!("{}/a", sample.path);
    let status = format!("{one}/status");
    let mut steps = vec![post(sample.path, object(sample, "a", &json!({})))];
    for _ in 0..6 {
        steps.push(of_status(dice, sample, &one, &status));
    }
    steps
}

fn of_status(dice: &mut Dice, sample: &Sample, one: &str, status: &str) -> Step {
    let good = sample.status.map_or(Value::Null, |status| status());
    match dice.roll(12) {
        0 => get(status),
        1 => patch("merge", status, good),
        2 => patch(
            if sample.kind == "Thing" {
                "merge"
            } else {
                "strategic-merge"
            },
            status,
            good,
        ),
        3 => put(status, object(sample, "a", &good)),
        4 => put(
            status,
            object(
                sample,
                "a",
                &json!({"metadata": {"resourceVersion": "$rv(1)"}, "status": good["status"]}),
            ),
        ),
        5 => patch(
            "json",
            status,
            json!([{"op": "add", "path": "/status/replicas", "value": 7}]),
        ),
        6 => patch("merge", status, json!({"status": null})),
        7 => patch("merge", status, json!({"status": "x"})),
        8 => patch(
            "merge",
            status,
            json!({"metadata": {"labels": {"of": "status"}, "finalizers": ["example.com/x"]}}),
        ),
        9 => delete(status, Value::Null),
        10 => post(status, object(sample, "a", &json!({}))),
        _ => patch(
            "merge",
            one,
            json!({"status": {"replicas": 3, "phase": "Failed"}}),
        ),
    }
}

fn scales(dice: &mut Dice) -> Vec<Step> {
    let sample = named(dice.word(&["deployments", "replicasets", "things", "configmaps"]));
    let scale = format!("{}/a/scale", sample.path);
    let of = |replicas: Value| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "a", "namespace": "$ns"}, "spec": {"replicas": replicas}})
    };
    let mut steps = vec![post(sample.path, object(sample, "a", &json!({})))];
    for _ in 0..6 {
        steps.push(match dice.roll(13) {
            0 | 1 => get(&scale),
            2 => put(&scale, of(json!(dice.roll(5)))),
            3 => put(&scale, of(json!(-1))),
            4 => {
                let mut body = of(json!(4));
                body["metadata"]["resourceVersion"] = "$rv(1)".into();
                put(&scale, body)
            }
            5 => patch("merge", &scale, json!({"spec": {"replicas": dice.roll(9)}})),
            6 => patch(
                "json",
                &scale,
                json!([{"op": "replace", "path": "/spec/replicas", "value": 6}]),
            ),
            7 => patch(
                "json",
                &scale,
                json!([{"op": "replace", "path": "/spec/none", "value": 6}]),
            ),
            8 => patch("merge", &scale, json!({"spec": {"replicas": "x"}})),
            9 => patch("strategic-merge", &scale, json!({"spec": {"replicas": 2}})),
            10 => delete(&scale, Value::Null),
            11 => get(&format!("{}/absent/scale", sample.path)),
            _ => patch("merge", &scale, json!({"spec": {"replicas": -4}})),
        });
    }
    steps.push(get(&format!("{}/a", sample.path)));
    steps
}

fn eviction(pod: &str, options: Value) -> Value {
    let mut body =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "$ns"}});
    if !options.is_null() {
        body["deleteOptions"] = options;
    }
    body
}

fn evictions(dice: &mut Dice) -> Vec<Step> {
    let pod = named("pods");
    let budget = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    let mut steps = vec![
        post(PODS, object(pod, "a", &json!({}))),
        post(PODS, object(pod, "c", &json!({}))),
        post(BUDGETS, budget.clone()),
    ];
    if dice.roll(4) == 0 {
        let mut second = budget;
        second["metadata"]["name"] = "b2".into();
        steps.push(post(BUDGETS, second));
    }
    for name in ["a", "c"] {
        let phase = dice.word(&["Running", "Running", "Pending", "Succeeded"]);
        let ready = dice.word(&["True", "False"]);
        let status = json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}});
        steps.push(patch("strategic-merge", &format!("{PODS}/{name}/status"), status));
    }
    let allowed = dice.roll(2);
    let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1 + allowed,
        "desiredHealthy": 1, "expectedPods": 2}});
    steps.push(patch("merge", &format!("{BUDGETS}/b/status"), status));
    for _ in 0..3 {
        let name = dice.word(&["a", "a", "c", "absent"]);
        let options = dice.pick(vec![
            Value::Null,
            Value::Null,
            json!({"dryRun": ["All"]}),
            json!({"preconditions": {"uid": "$uid(2)"}}),
            json!({"gracePeriodSeconds": 0}),
            json!({"preconditions": {"resourceVersion": "1"}}),
        ]);
        let named = if dice.roll(6) == 0 { "other" } else { name };
        steps.push(post(&format!("{PODS}/{name}/eviction"), eviction(named, options)));
    }
    steps.push(get(&format!("{BUDGETS}/b")));
    steps.push(get(&format!("{PODS}/a")));
    steps
}

fn bindings(dice: &mut Dice) -> Vec<Step> {
    let pod = named("pods");
    let binding = |name: &str, target: Value| json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "annotations": {"bound": "yes"}}, "target": target});
    let one = format!("{PODS}/a");
    let mut steps = vec![post(PODS, object(pod, "a", &json!({})))];
    for _ in 0..7 {
        let node = json!({"apiVersion": "v1", "kind": "Node", "name": "node-1"});
        steps.push(match dice.roll(14) {
            0..3 => post(&format!("{one}/binding"), binding("a", node)),
            3 => post(&format!("{one}/binding"), binding("a", json!({}))),
            4 => post(&format!("{one}/binding"), binding("b", node)),
            5 => post(&format!("{PODS}/absent/binding"), binding("absent", node)),
            6 => get(&format!("{one}/binding")),
            7 => delete(&one, json!({"gracePeriodSeconds": 5})),
            8 => delete(&one, json!({"gracePeriodSeconds": 0})),
            9 => get(&format!("{one}/ephemeralcontainers")),
            10 => patch(
                "strategic-merge",
                &one,
                json!({"spec": {"tolerations": [{"key": "x", "operator": "Exists"}]}}),
            ),
            11 => patch(
                "merge",
                &one,
                json!({"metadata": {"finalizers": ["example.com/hold"]}}),
            ),
            12 => get(&format!("{PODS}?fieldSelector=spec.nodeName%3Dnode-1")),
            _ => get(&one),
        });
    }
    steps
}
