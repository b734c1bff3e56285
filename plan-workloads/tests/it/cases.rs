//! Plans as text. Each file in `tests/cases` describes a set, its revisions and pods, and which writes the plan
//! then has. These are worked out from the requirements and are in the file itself; the whole plan is beside it,
//! and its reasons are in a file of their own. Run with `UPDATE_EXPECT=1` to write both anew, and read the
//! difference.
//!
//! A pod is one line: name, revision letter, and words for what is special about it; without any it is available.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use jiff::Timestamp;
use kruise_plan_kit::{ResourceId, Target, inplace::VerticalScaling, revision};
use kruise_plan_test_kit::{
    Expected, Letters, budget, compare_all, decisions, differences, line, merge, pod, reasons, text,
};
use kruise_plan_workloads::cloneset::Explain;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::world::World;

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
    /// PodUnavailableBudgets; a pod names its own with `budget=`.
    #[serde(default)]
    budgets: Vec<String>,
    /// Is the set a subset of a UnitedDeployment?
    #[serde(default)]
    is_subset: bool,
    /// Gate `PodUnavailableBudgetUpdateGate`.
    #[serde(default)]
    budgets_limit_updates: bool,
    /// `NAME WORD…`; the instance id is what follows the last dash.
    #[serde(default)]
    claims: Vec<String>,
    /// Stored revisions that nobody controls.
    #[serde(default)]
    nobodys: Vec<String>,
    /// Stored revisions of another name, by letter.
    #[serde(default)]
    renamed: BTreeMap<String, String>,
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
    /// Objects whose creation may still take effect, as `resource/name`.
    #[serde(default)]
    late: Vec<String>,
    /// Pods of which the server refused a write.
    #[serde(default)]
    refused_writes: Vec<String>,
    /// What the server said to the last attempt to create or delete.
    scale_error: Option<String>,
    /// What it said to the last attempt to update.
    update_error: Option<String>,
    /// The writes of the plan, in any order: `verb name`, those of one object joined by `then`.
    writes: Vec<String>,
}

fn first() -> String {
    "a".into()
}

fn base_template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}})
}

/// An object of a CloneSet, from `resource/name`.
fn target(object: &str) -> Target {
    let (plural, name) = object.split_once('/').unwrap();
    let mut resources = [ResourceId::PODS, ResourceId::CLAIMS, ResourceId::REVISIONS].into_iter();
    Target {
        resource: resources.find(|one| one.plural == plural).unwrap(),
        namespace: "shop".into(),
        name: name.into(),
    }
}

fn world(case: &Case, names: &Letters) -> World {
    let mut spec = json!({
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
            "podUpdatePolicy": "ReCreate", "partition": 0, "maxUnavailable": 1, "maxSurge": 0}},
    });
    if !case.spec.is_null() {
        merge(&mut spec, &case.spec);
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
    let refused = case.refused_writes.iter().map(|name| (format!("uid-{name}"), 1));
    world.memory.refused = refused.collect();
    world.memory.taken_names = case
        .taken
        .iter()
        .map(|letter| names.get(letter).1.to_owned())
        .collect();
    world.memory.late = case.late.iter().map(|late| target(late)).collect();
    let stored = case.revisions.clone().unwrap_or_else(|| names.letters());
    for (index, letter) in stored.iter().enumerate() {
        let name = names.get(letter).1;
        let mut revision = names.revision(letter, index + 1, &json!([owner()]));
        if case.nobodys.contains(letter) {
            revision["metadata"]["ownerReferences"] = json!([]);
        }
        if let Some(name) = case.renamed.get(letter) {
            revision["metadata"]["name"] = json!(name);
        }
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
        merge(&mut world.set["status"], &case.status);
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
    if case.is_subset {
        let above = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "UnitedDeployment", "name": "all", "uid": "u",
            "controller": true,
        });
        world.set["metadata"]["ownerReferences"] = json!([above]);
    }
    world.gates.updates = case.budgets_limit_updates;
    for line in &case.budgets {
        let budget = budget(line, world.now);
        let name = budget["metadata"]["name"].as_str().unwrap().to_owned();
        world.budgets.insert(name, budget);
    }
    for line in &case.pods {
        let pod = pod(line, |letter| names.labelled(letter), &owner(), world.now);
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

#[test]
fn every_case_gives_the_plan_that_stands_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    compare_all(&folder, 231, |text| {
        let case: Case = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        let names = Letters::of("web", &base_template(), &case.templates);
        let world = world(&case, &names);
        let plan = world.plan_of(
            &world
                .pod_views()
                .into_iter()
                .map(|pod| Arc::new((*pod).clone()))
                .collect::<Vec<_>>(),
            Explain::Yes,
        );
        let expected = Expected {
            writes: &case.writes,
            events: None,
            again: None,
            why: &[],
        };
        let wrong = differences(&plan, &expected, |text| names.spoken(text), line);
        if !wrong.is_empty() {
            return Err(wrong.join("\n"));
        }
        let decided = format!("{}\n\n{}", case.about, names.spoken(decisions(&plan)));
        Ok([("plan", decided), ("why", names.spoken(reasons(&plan)))])
    });
}
