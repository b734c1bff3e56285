//! Plans as text. Each file in `tests/cases/daemonset` describes a set, nodes and pods, and rounds: what happens,
//! and which writes the plan then has. Those are worked out from the requirements and are in the file itself; the
//! whole plan is beside it. Run with `UPDATE_EXPECT=1` to write the plans anew, and read the difference; with
//! `CASE=part-of-a-name` to see some alone.
//!
//! A pod is one line, as for CloneSets. It is on the node that its name begins with, up to a dot. Pods that the set
//! creates are called by their node ([`crate::node_names`]). Besides: `unbound`: only its affinity names the node;
//! `plain`: it lacks the gate of updates in place; `older`: its owner reference has the older version.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use kruise_plan_kit::{Explain, Intent, ObjectWrites, Phase, Write};
use kruise_plan_test_kit::{
    Expected, Letters, budget, change, compare, differences, line, merge, node, pinned, pod, spoken,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::world::{NAMES, World, owner};

const NOW: &str = "2026-01-01T01:00:00Z";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    /// What the case shows, in a sentence.
    about: String,
    /// Merged over a plain specification: new pods take the place of old ones, one node at a time.
    #[serde(default)]
    spec: Value,
    /// Merged over the metadata.
    #[serde(default)]
    metadata: Value,
    /// Merged over the status that fits `update`.
    #[serde(default)]
    status: Value,
    /// Templates by letter, merged over a plain one; stored in this order.
    #[serde(default)]
    templates: BTreeMap<String, Value>,
    /// Letters of the stored revisions, oldest first; all templates if left out.
    revisions: Option<Vec<String>>,
    /// Template of the set.
    #[serde(default = "first")]
    update: String,
    /// `NAME WORD…`; n1, n2 and n3 if left out.
    #[serde(default = "three")]
    nodes: Vec<String>,
    #[serde(default)]
    pods: Vec<String>,
    /// PodUnavailableBudgets; a pod names its own with `budget=`.
    #[serde(default)]
    budgets: Vec<String>,
    /// Gates and flags that differ from their defaults.
    #[serde(default)]
    gates: Vec<String>,
    /// A label of a stored revision, by letter.
    #[serde(default)]
    labelled: BTreeMap<String, String>,
    /// A revision that is stored once more under a name that ends in this, by letter.
    #[serde(default)]
    twins: BTreeMap<String, String>,
    /// Jobs that pull images: letter of the revision and container.
    #[serde(default)]
    jobs: Vec<String>,
    /// Revisions whose names the last execution found taken.
    #[serde(default)]
    taken: Vec<String>,
    /// Nodes whose pods the server refused to create.
    #[serde(default)]
    refused: Vec<String>,
    /// What it said to the last attempt.
    create_error: Option<String>,
    rounds: Vec<Round>,
}

/// What happens, and the plan after it. Its writes are carried out before the next round.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Round {
    /// Merged over the specification.
    #[serde(default)]
    edit: Value,
    /// The template that the set gets.
    update: Option<String>,
    /// Nodes that join, or are there in place of others: `NAME WORD…`.
    #[serde(default)]
    nodes: Vec<String>,
    /// Nodes that leave.
    #[serde(default)]
    leave: Vec<String>,
    /// `NAME WORD…`: what happens to pods.
    #[serde(default)]
    touch: Vec<String>,
    /// Pods that come into being, or are there in place of others.
    #[serde(default)]
    pods: Vec<String>,
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
    /// The writes, in any order: `verb name`, those of one object joined by `then`. Where there are several
    /// templates, a new pod is followed by `at` and its letter.
    writes: Vec<String>,
    /// `Reason: words`: each of the plan's own events, if given, has the words of one of these.
    events: Option<Vec<String>>,
    /// Seconds until the plan is wanted again.
    again: Option<u64>,
    /// Members of the status afterwards; a revision is `<letter hash>`.
    #[serde(default)]
    status: BTreeMap<String, Value>,
    /// `subject: words`: a line about the pod, the node, or `the set`, has these words.
    #[serde(default)]
    why: Vec<String>,
}

fn first() -> String {
    "a".into()
}

fn three() -> Vec<String> {
    ["n1", "n2", "n3"].map(str::to_owned).to_vec()
}

fn base_template() -> Value {
    json!({"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "main", "image": "agent:1"}]}})
}

fn add_budgets(world: &mut World, lines: &[String]) {
    for line in lines {
        let budget = budget(line, world.now);
        let name = budget["metadata"]["name"].as_str().unwrap().to_owned();
        world.budgets.insert(name, budget);
    }
}

fn set_gate(gate: &str, world: &mut World) {
    let options = &mut world.options;
    match gate {
        "DaemonSetPruneIneligibleNodes" => options.prune_ineligible = true,
        "PreDownloadImageForDaemonSetUpdate" => options.images_ahead = true,
        "PodUnavailableBudgetUpdateGate" => world.cluster.gates.updates = true,
        "-PodWebhook" => options.pod_ready_gate = false,
        "-assign-pods-by-scheduler" => options.by_scheduler = false,
        other => panic!("a gate {other}?"),
    }
}

fn world(case: &Case, names: &Letters) -> World {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "agent"}}, "revisionHistoryLimit": 10, "burstReplicas": 250,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
            "rollingUpdateType": "Standard", "maxUnavailable": 1, "maxSurge": 0}},
    });
    if !case.spec.is_null() {
        merge(&mut spec, &case.spec);
    }
    spec["template"] = names.get(&case.update).0.clone();
    let mut world = World::new(spec, NOW.parse().unwrap());
    if !case.metadata.is_null() {
        merge(&mut world.set["metadata"], &case.metadata);
    }
    for gate in &case.gates {
        set_gate(gate, &mut world);
    }
    for line in &case.nodes {
        join(&mut world, line);
    }
    let taken = case.taken.iter().map(|letter| names.get(letter).1.to_owned());
    world.memory.taken_names.extend(taken);
    let refused = case.refused.iter().map(|node| NAMES.of(node, None));
    world.memory.refused_names.extend(refused);
    world.memory.create_error.clone_from(&case.create_error);
    world.memory.scale_error.clone_from(&case.create_error);
    let stored = case.revisions.clone().unwrap_or_else(|| names.letters());
    for (index, letter) in stored.iter().enumerate() {
        let mut revision = names.revision(letter, index + 1, &json!([owner()]));
        let hash = names.get(letter).1.rsplit('-').next().unwrap();
        revision["metadata"]["labels"] = json!({"app": "agent", "controller-revision-hash": hash});
        if let Some(label) = case.labelled.get(letter) {
            revision["metadata"]["labels"][label] = json!("true");
        }
        if let Some(suffix) = case.twins.get(letter) {
            let mut twin = revision.clone();
            let name = format!("agent-{suffix}");
            twin["metadata"]["name"] = json!(name);
            twin["metadata"]["uid"] = json!(format!("revision-{suffix}"));
            twin["metadata"]["labels"]["controller-revision-hash"] = json!(suffix);
            twin["revision"] = json!(0);
            world.revisions.insert(name, twin);
        }
        world.revisions.insert(names.get(letter).1.to_owned(), revision);
    }
    for line in &case.jobs {
        let (letter, container) = line.split_once(' ').unwrap();
        let name = format!("{}-{container}", names.get(letter).1);
        let hash = names.get(letter).1.rsplit('-').next().unwrap();
        let metadata = json!({"name": name, "namespace": "shop", "uid": format!("uid-{letter}-{container}"),
                              "resourceVersion": "8", "ownerReferences": [owner()],
                              "labels": {"controller.kubernetes.io/hash": hash}});
        world.jobs.insert(name, json!({"metadata": metadata}));
    }
    if !stored.is_empty() {
        let hash = names.get(&case.update).1.rsplit('-').next().unwrap();
        let nodes = case.nodes.len();
        world.set["status"] = json!({
            "observedGeneration": 1, "desiredNumberScheduled": nodes, "currentNumberScheduled": case.pods.len().min(nodes),
            "numberMisscheduled": 0, "numberReady": 0, "updatedNumberScheduled": 0, "updateRevision": hash});
    }
    if !case.status.is_null() {
        merge(&mut world.set["status"], &case.status);
    }
    add_budgets(&mut world, &case.budgets);
    add_pods(&mut world, names, &case.pods);
    world
}

fn join(world: &mut World, line: &str) {
    let (name, node) = node(line);
    world.nodes.insert(name, node);
}

fn add_pods(world: &mut World, names: &Letters, lines: &[String]) {
    for line in lines {
        let (own, words): (Vec<&str>, Vec<&str>) = line
            .split_whitespace()
            .partition(|word| ["unbound", "plain", "older"].contains(word) || word.starts_with("hash="));
        let mut owner = owner();
        if own.contains(&"older") {
            owner["apiVersion"] = json!("apps.kruise.io/v1alpha1");
        }
        let words = words.join(" ");
        let mut pod = pod(&words, |letter| names.labelled(letter), &owner, world.now);
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        let node = name.split('.').next().unwrap().to_owned();
        let labels = pod["metadata"]["labels"].as_object_mut().unwrap();
        let hash = labels.remove("pod-template-hash").unwrap();
        if labels.contains_key("controller-revision-hash") {
            labels.insert("controller-revision-hash".into(), hash);
        }
        if let Some(hash) = own.iter().find_map(|word| word.strip_prefix("hash=")) {
            labels.insert("controller-revision-hash".into(), json!(hash));
        }
        if labels["lifecycle.apps.kruise.io/state"] == "Normal" {
            labels.remove("lifecycle.apps.kruise.io/state");
        }
        pod["spec"]["affinity"] = pinned(&node);
        pod["spec"]["nodeName"] = json!(node);
        if own.contains(&"unbound") {
            pod["spec"]["nodeName"] = Value::Null;
            pod["status"] = json!({"phase": "Pending"});
        }
        if own.contains(&"plain") {
            pod["spec"]["readinessGates"] = json!([{"conditionType": "KruisePodReady"}]);
        }
        world.pods.insert(name, pod);
    }
}

/// Nodes read better than hashes.
fn with_short_names(world: &World, names: &Letters, text: String) -> String {
    NAMES.spoken(&world.cluster, &world.nodes, names.spoken(text))
}

fn happen(round: &Round, world: &mut World, names: &Letters) {
    if let Some(letter) = &round.update {
        let template = names.get(letter).0.clone();
        world.edit(|spec| spec["template"] = template);
    }
    if !round.edit.is_null() {
        world.edit(|spec| merge(spec, &round.edit));
    }
    for name in &round.leave {
        assert!(world.nodes.remove(name).is_some(), "there is a node {name}");
    }
    for line in &round.nodes {
        join(world, line);
    }
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
    add_budgets(world, &round.budgets);
    add_pods(world, names, &round.pods);
    let all = round.work.iter().any(|name| name == "all");
    let at_work: Vec<String> = if all {
        world.pods.keys().cloned().collect()
    } else {
        round.work.iter().map(|name| NAMES.real(world, name)).collect()
    };
    world.work(&at_work);
    world.pass(round.pass);
}

/// The writes of one object in a line. Where there are several templates, a new pod is followed by `at` and its
/// revision.
fn line_at(object: &ObjectWrites, several: bool) -> String {
    let text = line(object);
    let pod = object.steps.first().map(|step| &step.write);
    match pod {
        Some(Write::Create {
            intent: Intent::CREATE_POD,
            body,
            ..
        }) if several => {
            let revision = &body.render()["metadata"]["labels"]["controller-revision-hash"];
            format!("{text} at {}", revision.as_str().unwrap())
        }
        _ => text,
    }
}

/// What differs from the status that the file says.
fn reported(round: &Round, world: &World, names: &Letters) -> Vec<String> {
    let mut wrong = Vec::new();
    for (key, wanted) in &round.status {
        let have = names.spoken(world.set["status"][key].to_string());
        let wanted = wanted.to_string();
        if have != wanted {
            wrong.push(format!("status {key}: {have}, not {wanted}"));
        }
    }
    wrong
}

fn run(file: &str) -> Result<String, String> {
    let case: Case = serde_saphyr::from_str(file).map_err(|error| error.to_string())?;
    let names = Letters::of("agent", &base_template(), &case.templates);
    let mut world = world(&case, &names);
    let mut out = format!("{}\n", case.about);
    let mut wrong = Vec::new();
    for (index, round) in case.rounds.iter().enumerate() {
        happen(round, &mut world, &names);
        let plan = world.plan(Explain::Yes);
        if case.rounds.len() > 1 {
            write!(out, "\n# round {}\n", index + 1).unwrap();
        }
        let late: Vec<String> = plan
            .writes
            .iter()
            .filter(|object| object.phase != Phase::Pods)
            .map(|object| format!("phase {:?}: {}\n", object.phase, line(object)))
            .collect();
        let text = with_short_names(&world, &names, spoken(&plan) + &late.concat());
        write!(out, "\n{text}").unwrap();
        let expected = Expected {
            writes: &round.writes,
            events: round.events.as_deref(),
            again: round.again,
            why: &round.why,
        };
        let several = names.letters().len() > 1;
        let mut found = differences(
            &plan,
            &expected,
            |text| with_short_names(&world, &names, text).replace(" hash>", ">"),
            |object| line_at(object, several),
        );
        world.execute(&plan);
        found.extend(reported(round, &world, &names));
        wrong.extend(found.iter().map(|text| format!("round {}: {text}", index + 1)));
    }
    if wrong.is_empty() {
        return Ok(out);
    }
    Err(format!("{}\n{out}", wrong.join("\n")))
}

#[test]
fn every_round_of_a_case_has_its_writes_and_the_plan_that_stands_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/daemonset");
    compare(&folder, 1, run);
}
