//! Plans as text. Each file in `tests/cases/statefulset` describes a set and its objects, and rounds: what happens,
//! and which writes the plan then has. Those are worked out from the requirements and are in the file itself; the
//! whole plan is beside it. Run with `UPDATE_EXPECT=1` to write the plans anew, and read the difference; with
//! `CASE=part-of-a-name` to see some alone.
//!
//! A pod is one line, as for CloneSets. Besides: `foreign`: another set controls it; `without=TEMPLATE`: it lacks
//! the volume. Pods have the claims of the templates, all bound. A claim line adds one or changes it.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use kruise_plan_kit::{Explain, Intent, ObjectWrites, Phase, Plan, Write, inplace::VerticalScaling};
use kruise_plan_test_kit::{Letters, budget, change, compare, merge, pod, spoken, text};
use serde::Deserialize;
use serde_json::{Value, json};

use super::world::{SET_UID, World, owner};

const NOW: &str = "2026-01-01T01:00:00Z";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    /// What the case shows, in a sentence.
    about: String,
    /// Merged over a plain specification: three replicas, ordered, recreation, one unavailable.
    #[serde(default)]
    spec: Value,
    /// Merged over the metadata.
    #[serde(default)]
    metadata: Value,
    /// Merged over the status that fits `update` and `current`.
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
    /// Last revision rolled out in full.
    #[serde(default = "first")]
    current: String,
    #[serde(default)]
    pods: Vec<String>,
    /// PodUnavailableBudgets; a pod names its own with `budget=`.
    #[serde(default)]
    budgets: Vec<String>,
    #[serde(default)]
    claims: Vec<String>,
    /// Storage classes, and whether volumes of each can grow.
    #[serde(default)]
    classes: BTreeMap<String, bool>,
    /// Gates that differ from their defaults: `NAME`, or `-NAME` for one that is off.
    #[serde(default)]
    gates: Vec<String>,
    /// A label of a stored revision, by letter.
    #[serde(default)]
    labelled: BTreeMap<String, String>,
    /// Jobs that pull images: letter of the revision and container.
    #[serde(default)]
    jobs: Vec<String>,
    /// Pods that the server refused to create.
    #[serde(default)]
    refused: Vec<String>,
    /// Pods of which the server refused a write.
    #[serde(default)]
    refused_writes: Vec<String>,
    /// What it said to the last attempt to update.
    update_error: Option<String>,
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
    #[serde(default)]
    claims: Vec<String>,
    /// Pods on whose nodes all work is done, or `all`.
    #[serde(default)]
    nodes: Vec<String>,
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
    /// Members of the status afterwards; a revision is `<letter>`.
    #[serde(default)]
    status: BTreeMap<String, Value>,
    /// Names of all claims before the plan, if given.
    left: Option<Vec<String>>,
    /// `subject: words`: a line about the pod, or `the set`, has these words.
    #[serde(default)]
    why: Vec<String>,
}

fn first() -> String {
    "a".into()
}

fn base_template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}},
           "spec": {"containers": [{"name": "main", "image": "web:1"}],
                    "readinessGates": [{"conditionType": "InPlaceUpdateReady"}]}})
}

fn set_gate(gate: &str, world: &mut World) {
    let options = &mut world.options;
    match gate {
        "StatefulSetStartOrdinal" => options.start_ordinal = true,
        "StatefulSetAutoResizePVCGate" => options.resize_claims = true,
        "-StatefulSetAutoDeletePVC" => options.delete_claims = false,
        "-PodIndexLabel" => options.index_label = false,
        "-PodWebhook" => options.pod_ready_gate = false,
        "PreparingUpdateAsUpdate" => options.preparing_update_as_update = true,
        "PreDownloadImageForInPlaceUpdate" => options.images_ahead = true,
        "PodUnavailableBudgetUpdateGate" => world.cluster.gates.updates = true,
        "InPlaceWorkloadVerticalScaling" => options.vertical_scaling = VerticalScaling::Endpoint,
        other => panic!("a gate {other}?"),
    }
}

fn world(case: &Case, names: &Letters) -> World {
    let mut spec = json!({
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "serviceName": "web",
        "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
            "podUpdatePolicy": "ReCreate", "partition": 0, "maxUnavailable": 1, "minReadySeconds": 0}},
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
    world.classes.clone_from(&case.classes);
    world.memory.refused_names.extend(case.refused.iter().cloned());
    world.memory.update_error.clone_from(&case.update_error);
    let refused = case.refused_writes.iter().map(|name| (format!("uid-{name}"), 1));
    world.memory.refused = refused.collect();
    let stored = case.revisions.clone().unwrap_or_else(|| names.letters());
    for (index, letter) in stored.iter().enumerate() {
        let mut revision = names.revision(letter, index + 1, &json!([owner(true)]));
        if let Some(label) = case.labelled.get(letter) {
            revision["metadata"]["labels"] = json!({label: "true"});
        }
        world.revisions.insert(names.get(letter).1.to_owned(), revision);
    }
    for line in &case.jobs {
        let (letter, container) = line.split_once(' ').unwrap();
        let name = format!("{}-{container}", names.get(letter).1);
        let metadata = json!({"name": name, "namespace": "shop", "uid": format!("uid-{letter}-{container}"),
                              "resourceVersion": "8", "ownerReferences": [owner(true)]});
        world.jobs.insert(name, json!({"metadata": metadata}));
    }
    if !stored.is_empty() {
        world.set["status"] = json!({
            "observedGeneration": 1, "replicas": case.pods.len(), "readyReplicas": 0, "availableReplicas": 0,
            "currentReplicas": 0, "updatedReplicas": 0, "updateRevision": names.get(&case.update).1,
            "currentRevision": names.get(&case.current).1, "labelSelector": "app=web", "collisionCount": 0});
    }
    if !case.status.is_null() {
        merge(&mut world.set["status"], &case.status);
    }
    add_budgets(&mut world, &case.budgets);
    add_pods(&mut world, names, &case.pods);
    add_claims(&mut world, &case.claims);
    world
}

fn add_budgets(world: &mut World, lines: &[String]) {
    for line in lines {
        let budget = budget(line, world.now);
        let name = budget["metadata"]["name"].as_str().unwrap().to_owned();
        world.budgets.insert(name, budget);
    }
}

fn add_pods(world: &mut World, names: &Letters, lines: &[String]) {
    for line in lines {
        let (own, words): (Vec<&str>, Vec<&str>) = line
            .split_whitespace()
            .partition(|word| *word == "foreign" || word.starts_with("without="));
        let mut owner = owner(true);
        if own.contains(&"foreign") {
            owner["uid"] = json!("other-uid");
            owner["name"] = json!("other");
        }
        let mut pod = pod(
            &words.join(" "),
            |letter| names.labelled(letter),
            &owner,
            world.now,
        );
        let without: Vec<&str> = own
            .iter()
            .filter_map(|word| word.strip_prefix("without="))
            .collect();
        give_identity(world, &mut pod, &without);
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        for (template, claim) in claims_of(world, &name) {
            if without.contains(&template["metadata"]["name"].as_str().unwrap()) {
                continue;
            }
            let object = new_claim(&claim, &template["spec"]);
            world.claims.entry(claim).or_insert(object);
        }
        world.pods.insert(name, pod);
    }
}

/// Templates of the claims of a pod, and the claims' names.
fn claims_of(world: &World, pod: &str) -> Vec<(Value, String)> {
    let templates = world.set["spec"]["volumeClaimTemplates"].as_array();
    let name = |template: &Value| format!("{}-{pod}", template["metadata"]["name"].as_str().unwrap());
    let templates = templates.into_iter().flatten();
    templates
        .map(|template| (template.clone(), name(template)))
        .collect()
}

fn give_identity(world: &World, pod: &mut Value, without: &[&str]) {
    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    let labels = pod["metadata"]["labels"].as_object_mut().unwrap();
    labels.remove("pod-template-hash");
    labels.insert("statefulset.kubernetes.io/pod-name".into(), json!(name));
    let ordinal = name.rsplit('-').next().unwrap();
    labels.insert("apps.kubernetes.io/pod-index".into(), json!(ordinal));
    pod["spec"]["hostname"] = json!(name);
    pod["spec"]["subdomain"] = json!("web");
    let claims = claims_of(world, &name).into_iter();
    let volumes: Vec<Value> = claims
        .map(|(template, claim)| (template["metadata"]["name"].clone(), claim))
        .filter(|(template, _)| !without.contains(&template.as_str().unwrap()))
        .map(|(template, claim)| json!({"name": template, "persistentVolumeClaim": {"claimName": claim}}))
        .collect();
    if !volumes.is_empty() {
        pod["spec"]["volumes"] = json!(volumes);
    }
}

/// A bound claim of this specification.
fn new_claim(name: &str, spec: &Value) -> Value {
    let mut claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": "8",
                     "labels": {"app": "web"}},
        "spec": spec, "status": {"phase": "Bound"},
    });
    let capacity = &claim["spec"]["resources"]["requests"];
    if !capacity.is_null() {
        claim["status"]["capacity"] = capacity.clone();
    }
    claim
}

/// Reads lines: `NAME WORD…`.
fn add_claims(world: &mut World, lines: &[String]) {
    for line in lines {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap();
        let now = text(world.now);
        let claims = &mut world.cluster.claims;
        let claim = claims
            .entry(name.to_owned())
            .or_insert_with(|| new_claim(name, &json!({"accessModes": ["ReadWriteOnce"]})));
        let mut missing = false;
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            match key {
                "missing" => missing = true,
                "terminating" => claim["metadata"]["deletionTimestamp"] = json!(now),
                // `set`, `older`, `before`, `other`, `none`, or a pod and its uid.
                "owner" => claim["metadata"]["ownerReferences"] = owners(value),
                "controller" => {
                    let reference = json!({"apiVersion": "example.com/v1", "kind": value, "name": "other", "uid": "x", "controller": true});
                    claim["metadata"]["ownerReferences"] = json!([reference]);
                }
                "size" => claim["spec"]["resources"]["requests"]["storage"] = json!(value),
                "unbound" => claim["status"] = json!({"phase": "Pending"}),
                "capacity" => claim["status"]["capacity"]["storage"] = json!(value),
                "class" => claim["spec"]["storageClassName"] = json!(value),
                "mode" => claim["spec"]["accessModes"] = json!([value]),
                "follows" => claim["metadata"]["annotations"]["apps.kruise.io/owned-by-asts"] = json!(value),
                "filesystem" => {
                    claim["status"]["conditions"] =
                        json!([{"type": "FileSystemResizePending", "status": "True"}]);
                }
                other => panic!("a claim that is {other}?"),
            }
        }
        if missing {
            claims.remove(name);
        }
    }
}

fn owners(text: &str) -> Value {
    let of_set = |uid: &str| json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web", "uid": uid});
    match text.split_once(':') {
        None if text == "none" => json!([]),
        None if text == "set" => json!([of_set(SET_UID)]),
        None if text == "older" => {
            let mut owner = of_set(SET_UID);
            owner["apiVersion"] = json!("apps.kruise.io/v1alpha1");
            json!([owner])
        }
        None if text == "before" => json!([of_set("uid-before")]),
        None if text == "other" => {
            let mut owner = of_set("other-uid");
            owner["name"] = json!("other");
            json!([owner])
        }
        None => json!([{"apiVersion": "v1", "kind": "Pod", "name": text, "uid": format!("uid-{text}")}]),
        Some((pod, uid)) => json!([{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}]),
    }
}

fn happen(round: &Round, world: &mut World, names: &Letters) {
    if let Some(letter) = &round.update {
        let template = names.get(letter).0.clone();
        world.edit(|spec| spec["template"] = template);
    }
    if !round.edit.is_null() {
        world.edit(|spec| merge(spec, &round.edit));
    }
    for line in &round.touch {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap();
        assert!(world.pods.contains_key(name), "there is a pod {name}");
        world.touch(name, |pod, now, _| change(pod, words, now));
    }
    for name in &round.gone {
        assert!(world.pods.remove(name).is_some(), "there is a pod {name}");
    }
    if !round.gone.is_empty() {
        world.collect();
    }
    add_budgets(world, &round.budgets);
    add_pods(world, names, &round.pods);
    add_claims(world, &round.claims);
    let all = round.nodes.iter().any(|name| name == "all");
    let at_work: Vec<String> = if all {
        world.pods.keys().cloned().collect()
    } else {
        round.nodes.clone()
    };
    if !at_work.is_empty() {
        world.nodes(at_work.iter());
    }
    world.pass(round.pass);
}

/// The writes of one object in a line.
fn line(object: &ObjectWrites, several: bool) -> String {
    let steps = object.steps.iter().map(|step| {
        let write = &step.write;
        let text = format!("{} {}", write.intent().as_str(), write.target().name);
        match write {
            Write::Create {
                intent: Intent::CREATE_POD,
                body,
                ..
            } if several => {
                let revision = &body.render()["metadata"]["labels"]["controller-revision-hash"];
                format!("{text} at {}", revision.as_str().unwrap())
            }
            _ => text,
        }
    });
    steps.collect::<Vec<String>>().join(" then ")
}

/// What differs from what the file says.
fn differences(round: &Round, plan: &Plan, world: &World, names: &Letters) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut writes: Vec<String> = plan
        .writes
        .iter()
        .map(|object| names.spoken(line(object, names.letters().len() > 1)))
        .collect();
    let mut wanted = round.writes.clone();
    writes.sort();
    wanted.sort();
    if writes != wanted {
        wrong.push(format!("writes {writes:#?}, not {wanted:#?}"));
    }
    if let Some(wanted) = &round.events {
        let events = plan.events.iter();
        let events: Vec<String> = events
            .map(|event| names.spoken(format!("{}: {}", event.reason, event.message)))
            .collect();
        let says = |event: &&String, wanted: &&String| {
            let (reason, words) = wanted.split_once(": ").unwrap();
            event
                .split_once(": ")
                .is_some_and(|(have, message)| have == reason && message.contains(words))
        };
        let same = wanted
            .iter()
            .all(|one| events.iter().any(|event| says(&event, &one)))
            && events
                .iter()
                .all(|event| wanted.iter().any(|one| says(&event, &one)));
        if !same {
            wrong.push(format!("events {events:#?}, not {wanted:#?}"));
        }
    }
    let again = plan.requeue.map(|requeue| requeue.as_secs());
    if round.again.is_some() && round.again != again {
        wrong.push(format!("again in {again:?}, not {:?}", round.again));
    }
    if let Some(wanted) = &round.left
        && !world.claims.keys().eq(wanted)
    {
        let have: Vec<&String> = world.claims.keys().collect();
        wrong.push(format!("claims {have:?}, not {wanted:?}"));
    }
    for wanted in &round.why {
        let (about, words) = wanted.split_once(": ").unwrap();
        let about = if about == "the set" { "" } else { about };
        let found = plan
            .why
            .iter()
            .any(|why| why.about == about && names.spoken(why.text.clone()).contains(words));
        if !found {
            wrong.push(format!("no line says {wanted:?}: {:#?}", plan.why));
        }
    }
    wrong
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

/// Carries the plan out, all of it.
fn execute(plan: &Plan, world: &mut World) {
    let mut writes: Vec<&ObjectWrites> = plan.writes.iter().collect();
    writes.sort_by_key(|object| object.phase);
    for object in writes {
        let mut previous = None;
        for step in &object.steps {
            let done = world.apply(&step.write, &mut previous);
            assert_eq!(done, Ok(()), "{}", step.write);
        }
    }
    world.report(plan);
}

fn run(file: &str) -> Result<String, String> {
    let case: Case = serde_saphyr::from_str(file).map_err(|error| error.to_string())?;
    let names = Letters::of("web", &base_template(), &case.templates);
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
            .map(|object| format!("phase {:?}: {}\n", object.phase, line(object, false)))
            .collect();
        write!(out, "\n{}", names.spoken(spoken(&plan) + &late.concat())).unwrap();
        let mut found = differences(round, &plan, &world, &names);
        execute(&plan, &mut world);
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/statefulset");
    compare(&folder, 1, run);
}
