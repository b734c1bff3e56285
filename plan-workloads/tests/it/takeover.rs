//! Sets that OpenKruise runs are taken over without a pod being touched.

use std::{fs, path::PathBuf, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kruise_api::cloneset::CloneSet;
use kruise_plan_kit::{Intent, Memory, Patch, Plan, ResourceId, Write};
use kruise_plan_workloads::cloneset::{Claims, Explain, Options, Snapshot, plan};
use kruise_views::{PodView, RevisionView};
use serde_json::{Value, json};

use crate::world::World;

/// Folders of fixtures: what OpenKruise stored, and below `by-hand` what older versions would have stored, at rest
/// only.
const VERSIONS: [&str; 3] = ["upstream/1.8.4", "upstream/1.9.0", "upstream/main"];
const OLDER: [&str; 2] = ["by-hand/1.4", "by-hand/1.7"];

/// The folders that have this phase.
fn versions(phase: &str) -> impl Iterator<Item = &'static str> {
    let older = OLDER.into_iter().filter(move |_| phase == "rest");
    VERSIONS.into_iter().chain(older)
}

/// A list as the server sent it, or as a plain array.
fn items(version: &str, file: &str) -> Option<Vec<Value>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let text = fs::read_to_string(root.join(version).join(file)).ok()?;
    let list: Value = serde_json::from_str(&text).unwrap();
    let items = if list.is_array() {
        list
    } else {
        list["items"].clone()
    };
    Some(items.as_array().unwrap().clone())
}

fn owned_by(object: &Value, set: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == set["metadata"]["uid"]))
}

/// One stored set and what it owns.
struct Stored {
    about: String,
    set: CloneSet,
    pods: Vec<Arc<PodView>>,
    claims: Claims,
    revisions: Vec<Arc<RevisionView>>,
    now: Timestamp,
}

fn stored(phase: &str) -> Vec<Stored> {
    let mut all = Vec::new();
    // Sets at rest have been so for a while; half-way ones are seen at the moment of the last change.
    let after = SignedDuration::from_hours(i64::from(phase == "rest"));
    for version in versions(phase) {
        let pods = items(version, &format!("{phase}-pods.json")).unwrap();
        let revisions = items(version, &format!("{phase}-controllerrevisions.json")).unwrap();
        let claims = items(version, &format!("{phase}-persistentvolumeclaims.json")).unwrap();
        for form in ["clonesets.json", "clonesets.v1alpha1.apps.kruise.io.json"] {
            for raw in items(version, &format!("{phase}-{form}")).unwrap_or_default() {
                let mine = |object: &&Value| owned_by(object, &raw);
                let my_pods: Vec<&Value> = pods.iter().filter(mine).collect();
                all.push(Stored {
                    about: format!("{version} {phase} {form} {}", raw["metadata"]["name"]),
                    now: my_pods.iter().filter_map(|pod| latest(pod)).max().unwrap() + after,
                    claims: claims_of(
                        &CloneSet::from_json(&raw).unwrap(),
                        claims.iter().filter(mine),
                        &my_pods,
                    ),
                    set: CloneSet::from_json(&raw).unwrap(),
                    pods: my_pods.iter().map(|pod| Arc::new(decode_text(pod))).collect(),
                    revisions: revisions
                        .iter()
                        .filter(mine)
                        .map(|r| Arc::new(decode_text(r)))
                        .collect(),
                });
            }
        }
    }
    assert!(all.len() >= 16, "the fixtures are there: {}", all.len());
    assert!(!all.is_empty(), "nothing is stored");
    all
}

fn claims_of<'c>(set: &CloneSet, claims: impl Iterator<Item = &'c Value>, pods: &[&Value]) -> Claims {
    let exists = |name: &str| pods.iter().any(|pod| pod["metadata"]["name"] == name);
    Claims::new(
        set,
        claims.map(|claim| Arc::new(decode_text(claim))).collect(),
        exists,
    )
}

fn decode_text<T: serde::de::DeserializeOwned>(object: &Value) -> T {
    serde_json::from_str(&object.to_string()).unwrap()
}

/// The last moment of which a pod's status tells: when the snapshot was taken.
fn latest(pod: &Value) -> Option<Timestamp> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let times = conditions
        .iter()
        .filter_map(|c| c["lastTransitionTime"].as_str()?.parse().ok());
    times.max()
}

fn take_over(stored: &Stored) -> Plan {
    plan(
        &Snapshot {
            set: &stored.set,
            api_version: &stored.set.api_version,
            pods: &stored.pods,
            claims: &stored.claims,
            revisions: &stored.revisions,
            pull_jobs: &[],
            node: &|_| None,
            budgets: kruise_plan_kit::ledger::Budgets::NONE,
            options: Options::DEFAULT,
            memory: &Memory::default(),
            explain: Explain::No,
        },
        stored.now,
    )
}

#[test]
fn no_pod_and_no_revision_of_a_stored_set_is_written() {
    for phase in ["rest", "mid"] {
        for stored in stored(phase) {
            let plan = take_over(&stored);
            for step in plan.writes.iter().flat_map(|object| &object.steps) {
                let (write, resource) = (&step.write, step.write.target().resource);
                assert!(
                    resource != ResourceId::PODS,
                    "{}: {write}: {}",
                    stored.about,
                    step.reason
                );
                assert!(
                    write.intent() != Intent::CREATE_REVISION,
                    "{}: {write}",
                    stored.about
                );
            }
        }
    }
}

#[test]
fn the_update_revision_is_the_one_that_status_names() {
    for phase in ["rest", "mid"] {
        for stored in stored(phase) {
            let plan = take_over(&stored);
            let patch = plan.status.map_or(Value::Null, |status| status.patch);
            for key in [
                "updateRevision",
                "currentRevision",
                "collisionCount",
                "labelSelector",
            ] {
                assert_eq!(patch["status"].get(key), None, "{}: {patch}", stored.about);
            }
        }
    }
}

/// What a first report may change: a failure that OpenKruise reported once and never took back.
fn is_healed_failure(set: &CloneSet, condition: &Value) -> bool {
    let same = |have: &&kruise_api::condition::Condition| serde_json::to_value(have).unwrap() == *condition;
    let failure = condition["type"] == "FailedScale" || condition["type"] == "FailedUpdate";
    set.status.conditions.iter().any(|have| same(&have)) || (failure && condition["status"] == "False")
}

#[test]
fn the_status_of_a_stored_set_stays_as_it_is_but_for_failures_long_over() {
    for phase in ["rest", "mid"] {
        for stored in stored(phase) {
            let Some(status) = take_over(&stored).status else {
                continue;
            };
            let mut patch = status.patch["status"].clone();
            let conditions = patch
                .as_object_mut()
                .unwrap()
                .remove("conditions")
                .unwrap_or(json!([]));
            if stored.about.starts_with("by-hand/1.4") {
                // It did not report this count.
                let available = patch.as_object_mut().unwrap().remove("updatedAvailableReplicas");
                assert_eq!(available, Some(json!(stored.pods.len())), "{}", stored.about);
            }
            assert_eq!(patch, json!({}), "{}", stored.about);
            let conditions = conditions.as_array().unwrap();
            assert!(
                conditions
                    .iter()
                    .all(|condition| is_healed_failure(&stored.set, condition)),
                "{}: {conditions:?}",
                stored.about
            );
        }
    }
}

#[test]
fn a_rollout_found_half_way_goes_on_once_a_pod_reports() {
    // The counts say what is left: the partition holds three, two are updated and settle.
    for stored in stored("mid")
        .iter()
        .filter(|stored| stored.about.contains("canary"))
    {
        let mut later = Stored {
            now: stored.now,
            about: String::new(),
            set: stored.set.clone(),
            pods: stored.pods.clone(),
            claims: stored.claims.clone(),
            revisions: stored.revisions.clone(),
        };
        later
            .set
            .spec
            .update_strategy
            .rolling_update
            .as_mut()
            .unwrap()
            .partition = None;
        later.now += SignedDuration::from_hours(1);
        let plan = take_over(&later);
        let touched: Vec<String> = plan
            .writes
            .iter()
            .flat_map(|c| &c.steps)
            .map(|s| s.write.to_string())
            .collect();
        assert!(
            touched.iter().any(|write| write.contains("pods/canary-")),
            "{}: {touched:?}",
            stored.about
        );
        assert_ne!(json!(touched), json!([]));
    }
}

/// Adds fields to the template that the types of no published OpenKruise have, as a server that keeps them stores it.
fn with_newer_fields(stored: &mut Stored, value: &str) {
    stored.set.spec.template["spec"]["hostnameOverride"] = json!(value);
    stored.set.spec.template["spec"]["containers"][0]["novel"] = json!({"a": [1]});
}

fn intents(stored: &Stored) -> Vec<Intent> {
    let plan = take_over(stored);
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    steps.map(|step| step.write.intent()).collect()
}

/// Carries out the note about the template, if the plan takes one.
fn take_note(stored: &mut Stored) {
    let plan = take_over(stored);
    for write in plan
        .writes
        .iter()
        .flat_map(|object| &object.steps)
        .map(|step| &step.write)
    {
        let Write::Patch {
            intent: Intent::NOTE_TEMPLATE,
            target,
            patch: Patch::Merge(patch),
            ..
        } = write
        else {
            continue;
        };
        let hash = patch["metadata"]["annotations"]["kruise.io/template-hash"]
            .as_str()
            .unwrap();
        let found = stored
            .revisions
            .iter_mut()
            .find(|view| *view.name == *target.name);
        Arc::make_mut(found.unwrap()).template_hash = Some(hash.into());
    }
}

/// A new generation that status does not speak of yet.
fn edit(stored: &mut Stored, change: impl FnOnce(&mut CloneSet)) {
    change(&mut stored.set);
    stored.set.metadata.generation += 1;
}

#[test]
fn a_template_with_a_field_that_the_revisions_writer_dropped_rolls_nothing() {
    for policy in ["ReCreate", "InPlaceIfPossible"] {
        for mut stored in stored("rest") {
            let rolling = stored
                .set
                .spec
                .update_strategy
                .rolling_update
                .get_or_insert_default();
            policy.clone_into(&mut rolling.pod_update_policy);
            with_newer_fields(&mut stored, "x");
            assert_eq!(intents(&stored), [Intent::NOTE_TEMPLATE], "{}", stored.about);
            take_note(&mut stored);
            assert_eq!(intents(&stored), [], "{}", stored.about);
        }
    }
}

#[test]
fn no_later_edit_rolls_out_what_the_revisions_writer_dropped_but_one_of_the_template_does() {
    let scale = |set: &mut CloneSet| set.spec.replicas = set.spec.replicas.map(|replicas| replicas + 1);
    let is_roll = |intent: &Intent| ![Intent::CREATE_POD, Intent::CREATE_CLAIM].contains(intent);
    for mut stored in stored("rest") {
        let about = stored.about.clone();
        with_newer_fields(&mut stored, "x");
        take_note(&mut stored);
        for _ in 0..3 {
            edit(&mut stored, scale);
            let found = intents(&stored);
            assert!(
                found.contains(&Intent::CREATE_POD) && !found.iter().any(is_roll),
                "{about}: {found:?}"
            );
        }
        let changes: [fn(&mut Stored); 2] = [
            |stored| with_newer_fields(stored, "y"),
            |stored| stored.set.spec.template["spec"]["containers"][0]["image"] = json!("other:1"),
        ];
        for change in changes {
            change(&mut stored);
            edit(&mut stored, |_| {});
            let found = intents(&stored);
            assert!(found.contains(&Intent::CREATE_REVISION), "{about}: {found:?}");
        }
    }
}

#[test]
fn an_edit_while_no_manager_ran_rolls_out_no_field_that_was_dropped_before() {
    for mut stored in stored("rest") {
        with_newer_fields(&mut stored, "x");
        edit(&mut stored, |set| set.spec.min_ready_seconds += 1);
        assert_eq!(intents(&stored), [Intent::NOTE_TEMPLATE], "{}", stored.about);
        // A field that OpenKruise has cannot have been dropped: it was added.
        stored.set.spec.template["spec"]["hostNetwork"] = json!(true);
        let found = intents(&stored);
        assert!(
            found.contains(&Intent::CREATE_REVISION),
            "{}: {found:?}",
            stored.about
        );
    }
}

#[test]
fn a_newer_field_that_is_added_to_a_template_of_ours_is_rolled_out() {
    let spec = json!({
        "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}},
    });
    let mut world = World::new(spec, "2026-01-01T00:00:00Z".parse().unwrap());
    let revisions = |world: &mut World| -> usize {
        let plan = world.plan();
        for step in plan.writes.iter().flat_map(|object| &object.steps) {
            world.apply(&step.write, &mut None).unwrap();
        }
        world.report(&plan);
        world.revisions.len()
    };
    assert_eq!(revisions(&mut world), 1);
    world.edit(|spec| spec["template"]["spec"]["hostnameOverride"] = json!("x"));
    assert_eq!(revisions(&mut world), 2);
    world.edit(|spec| spec["minReadySeconds"] = json!(1));
    assert_eq!(revisions(&mut world), 2);
}

#[test]
fn a_rollout_found_half_way_goes_on_in_place_though_its_revisions_lack_a_field() {
    for mut stored in stored("mid")
        .into_iter()
        .filter(|stored| stored.about.contains("canary"))
    {
        stored.set.spec.template["spec"]["hostnameOverride"] = json!("x");
        stored
            .set
            .spec
            .update_strategy
            .rolling_update
            .as_mut()
            .unwrap()
            .partition = None;
        stored.now += SignedDuration::from_hours(1);
        let plan = take_over(&stored);
        let intents: Vec<Intent> = plan
            .writes
            .iter()
            .flat_map(|c| &c.steps)
            .map(|s| s.write.intent())
            .collect();
        assert!(
            intents.contains(&Intent::UPDATE_IN_PLACE),
            "{}: {intents:?}",
            stored.about
        );
        assert!(
            !intents.contains(&Intent::DELETE_POD),
            "{}: {intents:?}",
            stored.about
        );
    }
}
