//! Plans as text. Each file in `tests/cases` describes a set, its revisions and pods; the plan for it stands beside it.
//! Run with `UPDATE_EXPECT=1` to write the plans anew, and read the difference.
//!
//! A pod is one line: name, revision letter, and words for what is special about it; without any it is available.

use std::{collections::BTreeMap, env, fmt::Write as _, fs, path::PathBuf, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kruise_plan_kit::{Part, Plan, Precondition, Template, Write, inplace::VerticalScaling, revision};
use kruise_plan_workloads::cloneset::Explain;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::world::{World, strategic, text, wrote};

const NOW: &str = "2026-01-01T01:00:00Z";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    /// What the case shows, in a sentence.
    about: String,
    /// Merged over a plain specification: three replicas, recreation, one unavailable.
    #[serde(default)]
    spec: Value,
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
    /// `NAME WORD…`; the instance id is what follows the last dash.
    #[serde(default)]
    claims: Vec<String>,
    /// Hash of the claim templates that a stored revision was made with, by letter.
    #[serde(default)]
    claims_hashes: BTreeMap<String, String>,
    /// Gate `RecreatePodWhenChangeVCTInCloneSetGate`.
    #[serde(default)]
    recreate_for_claims: bool,
    /// Gate `CloneSetShortHash`.
    #[serde(default)]
    short_hash: bool,
    /// When the set was created; now, if left out.
    created: Option<String>,
    /// Gate `CloneSetPartitionRollback`.
    #[serde(default)]
    partition_rollback: bool,
    /// Gate `InPlaceWorkloadVerticalScaling`, on a server of this version.
    vertical_scaling_on: Option<String>,
    /// Gate `InPlaceUpdateEnvFromMetadata`.
    environment_from_metadata: Option<bool>,
    /// Gate `PreparingUpdateAsUpdate`.
    #[serde(default)]
    preparing_update_as_update: bool,
    /// Gate `PodWebhook`.
    pod_webhook: Option<bool>,
    /// Gate `PreDownloadImageForInPlaceUpdate`.
    #[serde(default)]
    images_ahead: bool,
    /// Jobs that pull images: letter of the revision and container, and `terminating`.
    #[serde(default)]
    jobs: Vec<String>,
    /// A further label of a stored revision, by letter.
    #[serde(default)]
    labelled: BTreeMap<String, String>,
    /// Revisions whose names the last execution found taken.
    #[serde(default)]
    taken: Vec<String>,
    /// What the server said to the last attempt to create or delete.
    scale_error: Option<String>,
    /// What it said to the last attempt to update.
    update_error: Option<String>,
}

fn first() -> String {
    "a".into()
}

fn base_template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}})
}

struct Names {
    /// Letter, template, revision name.
    all: Vec<(String, Value, String)>,
}

impl Names {
    fn of(case: &Case) -> Self {
        let mut templates = case.templates.clone();
        templates.entry("a".into()).or_insert(Value::Null);
        let all = templates.into_iter().map(|(letter, change)| {
            let mut template = base_template();
            if !change.is_null() {
                strategic(&mut template, &change);
            }
            let name = revision::identity("web", &Template::live(&template), 0).0;
            (letter, template, name)
        });
        Self { all: all.collect() }
    }

    fn get(&self, letter: &str) -> (&Value, &str) {
        let found = self.all.iter().find(|(have, ..)| have == letter);
        let (_, template, name) = found.unwrap_or_else(|| panic!("no template {letter}"));
        (template, name)
    }

    /// Letters read better than hashes.
    fn spoken(&self, mut text: String) -> String {
        for (letter, _, name) in &self.all {
            text = text.replace(name, &format!("<{letter}>"));
            text = text.replace(revision::short_hash(name), &format!("<{letter} hash>"));
        }
        text
    }
}

fn world(case: &Case, names: &Names) -> World {
    let mut spec = json!({
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
            "podUpdatePolicy": "ReCreate", "partition": 0, "maxUnavailable": 1, "maxSurge": 0}},
    });
    if !case.spec.is_null() {
        strategic(&mut spec, &case.spec);
    }
    spec["template"] = names.get(&case.update).0.clone();
    let mut world = World::new(spec, NOW.parse().unwrap());
    if let Some(created) = &case.created {
        world.set["metadata"]["creationTimestamp"] = json!(created);
    }
    world.options.short_hash = case.short_hash;
    world.options.partition_rollback = case.partition_rollback;
    world.options.recreate_for_claims = case.recreate_for_claims;
    let server = case.vertical_scaling_on.as_deref();
    world.options.vertical_scaling = server.map_or(VerticalScaling::Off, VerticalScaling::of_server);
    world.options.images_ahead = case.images_ahead;
    world.options.preparing_update_as_update = case.preparing_update_as_update;
    world.options.pod_ready_gate = case.pod_webhook.unwrap_or(true);
    world.options.environment_from_metadata = case.environment_from_metadata.unwrap_or(true);
    world.memory.scale_error.clone_from(&case.scale_error);
    world.memory.update_error.clone_from(&case.update_error);
    world.memory.taken_names = case
        .taken
        .iter()
        .map(|letter| names.get(letter).1.to_owned())
        .collect();
    let stored = case
        .revisions
        .clone()
        .unwrap_or_else(|| names.all.iter().map(|(letter, ..)| letter.clone()).collect());
    for (index, letter) in stored.iter().enumerate() {
        let (template, name) = names.get(letter);
        let data = go_compat::pod_template::revision_data(template);
        let mut revision = json!({
            "metadata": {"name": name, "namespace": "shop", "uid": format!("revision-{letter}"), "resourceVersion": "5",
                         "ownerReferences": [owner()]},
            "data": serde_json::from_str::<Value>(&data).unwrap(), "revision": index + 1,
        });
        if let Some(hash) = case.claims_hashes.get(letter) {
            let key = "kruise.io/cloneset-volumeclaimtemplate-hash";
            revision["metadata"]["annotations"] = json!({key: hash});
        }
        if let Some(label) = case.labelled.get(letter) {
            revision["metadata"]["labels"] = json!({label: "true"});
        }
        world.revisions.insert(name.to_owned(), revision);
    }
    if !case.pods.is_empty() || !stored.is_empty() {
        world.set["status"] = json!({
            "observedGeneration": 1, "replicas": case.pods.len(), "readyReplicas": 0, "availableReplicas": 0,
            "updatedReplicas": 0, "updatedReadyReplicas": 0, "updatedAvailableReplicas": 0,
            "expectedUpdatedReplicas": 0, "updateRevision": names.get(&case.update).1,
            "currentRevision": names.get(&case.current).1, "labelSelector": "app=web", "collisionCount": 0});
    }
    if !case.status.is_null() {
        strategic(&mut world.set["status"], &case.status);
    }
    for line in &case.jobs {
        let (letter, rest) = line.split_once(' ').unwrap();
        let container = rest.trim_end_matches(" terminating");
        let revision = names.get(letter).1;
        let name = format!("{revision}-{container}");
        let labels = json!({"controller.kubernetes.io/hash": revision::short_hash(revision)});
        let mut job = json!({"metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{letter}-{container}"),
                                      "resourceVersion": "8", "labels": labels, "ownerReferences": [owner()]}});
        if rest != container {
            job["metadata"]["deletionTimestamp"] = json!(text(world.now));
        }
        world.jobs.insert(name, job);
    }
    for line in &case.claims {
        let claim = claim(line, world.now);
        world
            .claims
            .insert(claim["metadata"]["name"].as_str().unwrap().to_owned(), claim);
    }
    for line in &case.pods {
        let pod = pod(line, names, world.now);
        world
            .pods
            .insert(pod["metadata"]["name"].as_str().unwrap().to_owned(), pod);
    }
    world
}

/// Reads one line: `NAME WORD…`.
fn claim(line: &str, now: Timestamp) -> Value {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap();
    let id = name.rsplit('-').next().unwrap();
    let mut claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": "8",
                     "labels": {"app": "web", "apps.kruise.io/cloneset-instance-id": id},
                     "ownerReferences": [owner()]},
    });
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("terminating", _) => claim["metadata"]["deletionTimestamp"] = json!(text(now)),
            ("instance", id) => {
                claim["metadata"]["labels"]["apps.kruise.io/cloneset-instance-id"] = json!(id);
            }
            (other, _) => panic!("a claim that is {other}?"),
        }
    }
    claim
}

fn owner() -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "set-uid",
           "controller": true, "blockOwnerDeletion": true})
}

/// Reads one line: `NAME REVISION WORD…`.
fn pod(line: &str, names: &Names, now: Timestamp) -> Value {
    let mut words = line.split_whitespace();
    let (name, letter) = (words.next().unwrap(), words.next().unwrap());
    let (template, revision_name) = names.get(letter);
    let ago = |seconds: i64| text(now - SignedDuration::from_secs(seconds));
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": "9",
                     "creationTimestamp": ago(3600), "ownerReferences": [owner()]},
        "spec": {"nodeName": "a1", "readinessGates": [{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}]},
        "status": {"phase": "Running", "conditions": []},
    });
    strategic(&mut pod, template);
    let hash = revision::short_hash(revision_name);
    pod["metadata"]["labels"]["controller-revision-hash"] = json!(revision_name);
    pod["metadata"]["labels"]["pod-template-hash"] = json!(hash);
    pod["metadata"]["labels"]["lifecycle.apps.kruise.io/state"] = json!("Normal");
    let containers = pod["spec"]["containers"].as_array().unwrap();
    let statuses: Vec<Value> = containers
        .iter()
        .map(|c| json!({"name": c["name"], "image": c["image"], "imageID": format!("id-of-{}", c["image"].as_str().unwrap()),
                        "containerID": "cri://1", "ready": true, "restartCount": 0, "resources": c["resources"]}))
        .collect();
    pod["status"]["containerStatuses"] = json!(statuses);
    for kind in ["Ready", "ContainersReady", "InPlaceUpdateReady", "KruisePodReady"] {
        set(&mut pod, kind, "True", &ago(3000));
    }
    for word in words {
        describe(&mut pod, word, hash, &ago);
    }
    pod
}

fn set(pod: &mut Value, kind: &str, status: &str, since: &str) {
    let entry = json!({"type": kind, "status": status, "lastTransitionTime": since});
    strategic(pod, &json!({"status": {"conditions": [entry]}}));
}

fn describe(pod: &mut Value, word: &str, hash: &str, ago: &dyn Fn(i64) -> String) {
    let (key, value) = word.split_once('=').unwrap_or((word, ""));
    let state = "lifecycle.apps.kruise.io/state";
    match key {
        "unready" => set(pod, "Ready", "False", &ago(60)),
        "new" | "scheduled" => {
            pod["status"] = json!({"phase": "Pending"});
            pod["metadata"]["labels"][state] = json!("PreparingNormal");
            if key == "new" {
                pod["spec"]["nodeName"] = Value::Null;
            }
        }
        "starting" => {
            set(pod, "Ready", "False", &ago(2));
            pod["status"]["containerStatuses"][0]["imageID"] = json!("");
        }
        "terminating" => pod["metadata"]["deletionTimestamp"] = json!(ago(1)),
        "overdue" => pod["metadata"]["deletionTimestamp"] = json!(ago(31)),
        "nobodys" => pod["metadata"]["ownerReferences"] = json!([]),
        "failed" => pod["status"]["phase"] = json!("Failed"),
        "specified" => pod["metadata"]["labels"]["apps.kruise.io/specified-delete"] = json!("true"),
        "short" => pod["metadata"]["labels"]["controller-revision-hash"] = json!(hash),
        "marked" => set(pod, "InPlaceUpdateReady", "False", &ago(10)),
        // Out of service by these keys of ours, or of somebody else.
        "held" => hold(pod, value, &ago(10)),
        "state" => pod["metadata"]["labels"][state] = json!(value),
        "node" => pod["spec"]["nodeName"] = json!(value),
        "readySeconds" => set_again(pod, "Ready", &ago(value.parse().unwrap())),
        "restarts" => {
            pod["status"]["containerStatuses"][0]["restartCount"] = json!(value.parse::<i32>().unwrap());
        }
        "cost" => pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"] = json!(value),
        "finalizer" => strategic(pod, &json!({"metadata": {"finalizers": [value]}})),
        "runs" => {
            pod["status"]["containerStatuses"][0]["image"] = json!(value);
            pod["status"]["containerStatuses"][0]["imageID"] = json!(format!("id-of-{value}"));
        }
        // An update under way: the image id that the container had when it was changed.
        "from" => {
            let state = json!({"revision": "", "updateTimestamp": ago(5), "updateImages": true,
                               "lastContainerStatuses": {"main": {"imageID": format!("id-of-{value}")}}});
            pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!(state.to_string());
        }
        "environment" => {
            let state = json!({"revision": "", "updateTimestamp": ago(5), "updateEnvFromMetadata": true, "lastContainerStatuses": null});
            pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!(state.to_string());
        }
        // Its containers were asked to have other resources.
        "resizing" => {
            let state = json!({"revision": "", "updateTimestamp": ago(5), "lastContainerStatuses": null, "updateResources": true});
            pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!(state.to_string());
        }
        // What a container has of a processor.
        "given" => pod["status"]["containerStatuses"][0]["resources"] = json!({"limits": {"cpu": value}}),
        // What a container asks for, and who asked by the resize endpoint.
        "asks" => {
            let (cpu, manager) = value.split_once('/').unwrap();
            pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!(cpu);
            pod["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"] = json!(cpu);
            wrote(pod, manager, "main", "limits/cpu");
        }
        // What it requests besides, and who asked for that, if not who made the pod.
        "requested" => {
            let (cpu, manager) = value.split_once('/').unwrap_or((value, ""));
            for at in [
                "/spec/containers/0/resources",
                "/status/containerStatuses/0/resources",
            ] {
                pod.pointer_mut(at).unwrap()["requests"]["cpu"] = json!(cpu);
            }
            if !manager.is_empty() {
                wrote(pod, manager, "main", "requests/cpu");
            }
        }
        // It came to its revision with other resources.
        "came" => {
            let revision = pod["metadata"]["labels"]["controller-revision-hash"].clone();
            let state = json!({"revision": revision, "updateTimestamp": ago(600), "lastContainerStatuses": null, "updateResources": true});
            pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!(state.to_string());
        }
        // What its node says to that.
        "refused" => {
            let (reason, message) = (value, format!("node-says-{value}"));
            let condition =
                json!({"type": "PodResizePending", "status": "True", "reason": reason, "message": message});
            strategic(pod, &json!({"status": {"conditions": [condition]}}));
        }
        // The first batch has its resources, the container `log` is to follow.
        "nextLimit" => {
            let state = json!({"revision": "", "updateTimestamp": ago(5), "updateResources": true, "lastContainerStatuses": null,
                               "nextContainerResources": {"log": {"limits": {"cpu": value}}},
                               "preCheckBeforeNext": {"containersRequiredReady": ["main"]}});
            pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!(state.to_string());
            let before = json!({"limits": {"cpu": "1"}});
            pod["spec"]["containers"][1]["resources"] = before.clone();
            pod["status"]["containerStatuses"][1]["resources"] = before;
        }
        // In a grace period of ten seconds on the way to this image, since five seconds or since a minute.
        "grace" => grace(pod, value, &ago(5)),
        "graceOver" => grace(pod, value, &ago(60)),
        // The same on the way to this share of a processor, before which nothing was scheduled.
        "graceOverLimit" => {
            let revision = pod["metadata"]["labels"]["controller-revision-hash"].clone();
            let state = json!({"revision": revision, "updateTimestamp": ago(60), "lastContainerStatuses": null, "updateResources": true});
            let limits = json!({"main": {"limits": {"cpu": value}}});
            let grace = json!({"revision": revision, "containerResources": limits, "graceSeconds": 10});
            for (key, value) in [("state", state), ("grace", grace)] {
                pod["metadata"]["annotations"][format!("apps.kruise.io/inplace-update-{key}")] =
                    json!(value.to_string());
            }
            pod["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "99"}});
        }
        // The first batch is changed, this image of the container `log` is to follow.
        "next" => {
            let state = json!({"revision": "", "updateTimestamp": ago(5), "updateImages": true,
                               "lastContainerStatuses": {"main": {"imageID": "id-of-web:1"}},
                               "nextContainerImages": {"log": value},
                               "preCheckBeforeNext": {"containersRequiredReady": ["main"]}});
            pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!(state.to_string());
            pod["spec"]["containers"][1]["image"] = json!("log:1");
        }
        "mainUnready" => pod["status"]["containerStatuses"][0]["ready"] = json!(false),
        "garbage" => pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] = json!("{"),
        "label" => {
            let (key, value) = value.split_once(':').unwrap();
            pod["metadata"]["labels"][key] = json!(value);
        }
        other => panic!("a pod that is {other}?"),
    }
}

fn hold(pod: &mut Value, keys: &str, since: &str) {
    let hold = |key: &str| match key {
        "restart" => json!({"userAgent": "ContainerRecreateRequest", "key": "shop/restart"}),
        own => json!({"userAgent": "Lifecycle", "key": own}),
    };
    let holds: Vec<Value> = keys.split(',').map(hold).collect();
    set(pod, "KruisePodReady", "False", since);
    set(pod, "Ready", "False", since);
    let message = json!({"type": "KruisePodReady", "message": json!(holds).to_string()});
    strategic(pod, &json!({"status": {"conditions": [message]}}));
}

fn grace(pod: &mut Value, image: &str, since: &str) {
    let revision = pod["metadata"]["labels"]["controller-revision-hash"].clone();
    let state = json!({"revision": revision, "updateTimestamp": since, "lastContainerStatuses": null, "updateImages": true});
    let grace = json!({"revision": revision, "containerImages": {"main": image}, "graceSeconds": 10});
    for (key, value) in [("state", state), ("grace", grace)] {
        pod["metadata"]["annotations"][format!("apps.kruise.io/inplace-update-{key}")] =
            json!(value.to_string());
    }
    pod["spec"]["containers"][0]["image"] = json!("web:1");
    pod["status"]["containerStatuses"][0]["image"] = json!("web:1");
    pod["status"]["containerStatuses"][0]["imageID"] = json!("id-of-web:1");
}

fn set_again(pod: &mut Value, kind: &str, since: &str) {
    set(pod, kind, "True", since);
}

/// The plan, one decision a line.
fn spoken(plan: &Plan) -> String {
    let mut out = String::new();
    for chain in &plan.chains {
        for (index, step) in chain.steps.iter().enumerate() {
            let then = if index > 0 { "  then " } else { "" };
            writeln!(out, "{then}{}: {}", step.write, step.reason).unwrap();
            writeln!(out, "    {}", details(&step.write)).unwrap();
        }
    }
    for event in &plan.events {
        writeln!(
            out,
            "event {} {}: {}",
            event.reason.kind.as_str(),
            event.reason,
            event.message
        )
        .unwrap();
    }
    if let Some(status) = &plan.status {
        let pace = if status.urgent { "now" } else { "soon" };
        writeln!(out, "status {pace} {}", status.patch["status"]).unwrap();
    }
    if let Some(requeue) = plan.requeue {
        writeln!(out, "again in {requeue:?}").unwrap();
    }
    for why in &plan.why {
        let about = if why.about.is_empty() {
            "the set"
        } else {
            &why.about
        };
        writeln!(out, "why {about}: {}", why.text).unwrap();
    }
    out
}

fn details(write: &Write) -> String {
    match write {
        Write::Create { body, .. } => {
            let object = body.render();
            let of_pod = json!([
                object["metadata"]["labels"],
                object["spec"]["containers"],
                object["spec"]["readinessGates"]
            ]);
            let of_revision = json!([
                object["revision"],
                object["metadata"]["labels"],
                object["metadata"]["annotations"]
            ]);
            let volumes = &object["spec"]["volumes"];
            match object["kind"].as_str() {
                Some("Pod") if volumes.is_null() => of_pod.to_string(),
                Some("Pod") => format!("{of_pod} {volumes}"),
                Some("PersistentVolumeClaim" | "ImagePullJob") => object.to_string(),
                _ => of_revision.to_string(),
            }
        }
        Write::Delete { precondition, .. } => match precondition {
            Precondition::Unused(uid, user) => format!("if Unused({uid:?}, {user})"),
            other => format!("if {other:?}"),
        },
        Write::Patch {
            part,
            patch,
            precondition,
            ..
        } => {
            let part = match part {
                Part::Main => "main",
                Part::Status => "status",
                Part::Resize => "resize",
            };
            format!("{part} {} if {precondition:?}", patch.body())
        }
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

#[test]
fn every_case_gives_the_plan_that_stands_beside_it() {
    let bless = env::var_os("UPDATE_EXPECT").is_some();
    let mut different = Vec::new();
    let mut files: Vec<PathBuf> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "yaml"));
    files.sort();
    assert!(files.len() > 40, "the cases are there");
    for file in files {
        let case: Case = serde_saphyr::from_str(&fs::read_to_string(&file).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let names = Names::of(&case);
        let world = world(&case, &names);
        let plan = world.plan_of(
            &world
                .pod_views()
                .into_iter()
                .map(|pod| Arc::new((*pod).clone()))
                .collect::<Vec<_>>(),
            Explain::Yes,
        );
        let actual = format!("{}\n\n{}", case.about, names.spoken(spoken(&plan)));
        let beside = file.with_extension("plan");
        if bless {
            fs::write(&beside, &actual).unwrap();
        }
        let expected = fs::read_to_string(&beside).unwrap_or_default();
        if actual != expected {
            different.push(format!(
                "{}\n--- expected\n{expected}\n--- planned\n{actual}",
                file.display()
            ));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n\n"));
}
