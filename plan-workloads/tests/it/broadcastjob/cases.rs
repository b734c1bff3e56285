//! Plans as text. Each file in `tests/cases/broadcastjob` describes a job, nodes and pods, and rounds: what
//! happens, and which writes the plan then has. Those are worked out from the requirements and are in the file
//! itself; the whole plan is beside it. Run with `UPDATE_EXPECT=1` to write the plans anew, and read the
//! difference; with `CASE=part-of-a-name` to see some alone.
//!
//! A pod is one line: its name, which begins with that of its node, up to a dot, and words for what is special
//! about it; without any it runs. Pods that the job creates are called by their node ([`crate::node_names`]).
//! Besides the words of other kinds: `unbound`: only its affinity names the node; `older`: its owner reference has
//! the older version; `tolerates`: it tolerates every taint.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use jiff::SignedDuration;
use kruise_plan_kit::Explain;
use kruise_plan_test_kit::{
    Expected, budget, change, compare, differences, line, merge, node, pinned, set_condition, spoken,
    strategic, text,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::world::{API_VERSION, JOB_UID, NAMES, World, owner};

const NOW: &str = "2026-01-01T01:00:00Z";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    /// What the case shows, in a sentence.
    about: String,
    /// Merged over a plain specification: as the webhook completes it, pods restart never.
    #[serde(default)]
    spec: Value,
    /// Merged over the metadata.
    #[serde(default)]
    metadata: Value,
    /// The stored status; none if left out.
    #[serde(default)]
    status: Value,
    /// `NAME WORD…`; n1, n2 and n3 if left out.
    #[serde(default = "three")]
    nodes: Vec<String>,
    #[serde(default)]
    pods: Vec<String>,
    /// PodUnavailableBudgets; a pod names its own with `budget=`.
    #[serde(default)]
    budgets: Vec<String>,
    rounds: Vec<Round>,
}

/// What happens, and the plan after it. Its writes are carried out before the next round.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Round {
    /// Merged over the specification.
    #[serde(default)]
    edit: Value,
    /// Nodes that join, or are there in place of others: `NAME WORD…`.
    #[serde(default)]
    nodes: Vec<String>,
    /// Nodes that leave.
    #[serde(default)]
    leave: Vec<String>,
    /// `NAME WORD…`: what happens to pods.
    #[serde(default)]
    touch: Vec<String>,
    /// Budgets as they are from now on.
    #[serde(default)]
    budgets: Vec<String>,
    /// Pods that are gone.
    #[serde(default)]
    gone: Vec<String>,
    /// Pods on whose nodes all work is done, or `all`.
    #[serde(default)]
    work: Vec<String>,
    /// Seconds that pass, last.
    #[serde(default)]
    pass: i64,
    /// `all`: nothing of the plan is carried out; `writes`: only the status is stored; `status`: only that is not.
    #[serde(default)]
    fails: String,
    /// The writes, in any order: `verb name`.
    writes: Vec<String>,
    /// `Reason: words`: each of the plan's own events, if given, has the words of one of these.
    events: Option<Vec<String>>,
    /// Seconds until the plan is wanted again.
    again: Option<u64>,
    /// Members of the status afterwards.
    #[serde(default)]
    status: BTreeMap<String, Value>,
    /// Conditions afterwards, if given, each as `Type Status Reason: message`.
    conditions: Option<Vec<String>>,
    /// `subject: words`: a line about the pod, the node, or `the set`, has these words.
    #[serde(default)]
    why: Vec<String>,
}

fn three() -> Vec<String> {
    ["n1", "n2", "n3"].map(str::to_owned).to_vec()
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "check"}},
           "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "check:1"}]}})
}

fn world(case: &Case) -> World {
    let mut spec = json!({
        "parallelism": i32::MAX, "completionPolicy": {"type": "Always"}, "failurePolicy": {"type": "FailFast"},
        "template": template(),
    });
    if !case.spec.is_null() {
        merge(&mut spec, &case.spec);
    }
    let mut world = World::new(spec, NOW.parse().unwrap());
    if !case.metadata.is_null() {
        merge(&mut world.set["metadata"], &case.metadata);
    }
    if !case.status.is_null() {
        world.set["status"] = case.status.clone();
    }
    join(&mut world, &case.nodes);
    add_budgets(&mut world, &case.budgets);
    for line in &case.pods {
        add_pod(&mut world, line);
    }
    world
}

fn join(world: &mut World, lines: &[String]) {
    world.nodes.extend(lines.iter().map(|line| node(line)));
}

fn add_budgets(world: &mut World, lines: &[String]) {
    for line in lines {
        let budget = budget(line, world.now);
        let name = budget["metadata"]["name"].as_str().unwrap().to_owned();
        world.budgets.insert(name, budget);
    }
}

fn add_pod(world: &mut World, line: &str) {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap();
    let (own, words): (Vec<&str>, Vec<&str>) =
        words.partition(|word| ["unbound", "older", "tolerates"].contains(word));
    let version = if own.contains(&"older") {
        "apps.kruise.io/v1alpha1"
    } else {
        API_VERSION
    };
    let ago = |seconds| text(world.now - SignedDuration::from_secs(seconds));
    let node = name.split('.').next().unwrap();
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": "9",
                     "creationTimestamp": ago(3600), "ownerReferences": [owner(version)]},
        "spec": {"nodeName": node, "readinessGates": [{"conditionType": "KruisePodReady"}]},
        "status": {"phase": "Running", "conditions": [], "containerStatuses": [
            {"name": "main", "image": "check:1", "imageID": "i", "containerID": "cri://1", "ready": true, "restartCount": 0}]},
    });
    strategic(&mut pod, &world.set["spec"]["template"]);
    pod["metadata"]["labels"]["broadcastjob-name"] = json!("check");
    pod["metadata"]["labels"]["broadcastjob-controller-uid"] = json!(JOB_UID);
    for kind in ["Ready", "ContainersReady", "KruisePodReady"] {
        set_condition(&mut pod, kind, "True", &ago(3000));
    }
    pod["spec"]["affinity"] = pinned(node);
    if own.contains(&"unbound") {
        pod["spec"]["nodeName"] = Value::Null;
        pod["status"] = json!({"phase": "Pending"});
    }
    if own.contains(&"tolerates") {
        pod["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    }
    change(&mut pod, words.into_iter(), world.now);
    world.pods.insert(name.to_owned(), pod);
}

/// Nodes read better than hashes.
fn with_short_names(world: &World, text: String) -> String {
    NAMES.spoken(&world.cluster, &world.nodes, text)
}

fn happen(round: &Round, world: &mut World) {
    if !round.edit.is_null() {
        world.edit(|spec| merge(spec, &round.edit));
    }
    for name in &round.leave {
        assert!(world.nodes.remove(name).is_some(), "there is a node {name}");
    }
    join(world, &round.nodes);
    add_budgets(world, &round.budgets);
    let all = round.work.iter().any(|name| name == "all");
    let at_work: Vec<String> = if all {
        world.pods.keys().cloned().collect()
    } else {
        round.work.iter().map(|name| NAMES.real(world, name)).collect()
    };
    world.work(&at_work);
    for line in &round.touch {
        let mut words = line.split_whitespace();
        let name = NAMES.real(world, words.next().unwrap());
        assert!(world.pods.contains_key(&name), "there is a pod {name}");
        world.touch(&name, |pod, now, _| change(pod, words, now));
    }
    for name in &round.gone {
        let real = NAMES.real(world, name);
        assert!(world.pods.remove(&real).is_some(), "there is a pod {name}");
    }
    world.pass(round.pass);
}

/// What differs from the status that the file says.
fn reported(round: &Round, world: &World) -> Vec<String> {
    let status = &world.set["status"];
    let mut wrong = Vec::new();
    for (key, wanted) in &round.status {
        if status[key] != *wanted {
            wrong.push(format!("status {key}: {}, not {wanted}", status[key]));
        }
    }
    if let Some(wanted) = &round.conditions {
        let word = |one: &Value, member: &str| one[member].as_str().unwrap_or_default().to_owned();
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let conditions: Vec<String> = conditions
            .map(|one| {
                let [kind, status, reason, message] =
                    ["type", "status", "reason", "message"].map(|member| word(one, member));
                format!("{kind} {status} {reason}: {message}")
            })
            .collect();
        if conditions != *wanted {
            wrong.push(format!("conditions {conditions:#?}, not {wanted:#?}"));
        }
    }
    wrong
}

fn run(file: &str) -> Result<String, String> {
    let case: Case = serde_saphyr::from_str(file).map_err(|error| error.to_string())?;
    let mut world = world(&case);
    let mut out = format!("{}\n", case.about);
    let mut wrong = Vec::new();
    for (index, round) in case.rounds.iter().enumerate() {
        happen(round, &mut world);
        let plan = world.plan(Explain::Yes);
        if case.rounds.len() > 1 {
            write!(out, "\n# round {}\n", index + 1).unwrap();
        }
        write!(out, "\n{}", with_short_names(&world, spoken(&plan))).unwrap();
        let expected = Expected {
            writes: &round.writes,
            events: round.events.as_deref(),
            again: round.again,
            why: &round.why,
        };
        let mut found = differences(&plan, &expected, |text| with_short_names(&world, text), line);
        match &*round.fails {
            "" => world.execute(&plan),
            "writes" => world.report(&plan),
            "status" => {
                let mut plan = plan;
                plan.status = None;
                world.execute(&plan);
            }
            "all" => {}
            other => panic!("what fails is {other}?"),
        }
        found.extend(reported(round, &world));
        wrong.extend(found.iter().map(|text| format!("round {}: {text}", index + 1)));
    }
    if wrong.is_empty() {
        return Ok(out);
    }
    Err(format!("{}\n{out}", wrong.join("\n")))
}

#[test]
fn every_round_of_a_case_has_its_writes_and_the_plan_that_stands_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/broadcastjob");
    compare(&folder, 30, run);
}
