//! Sets that OpenKruise runs are taken over without a pod being touched, and upgrade their pods when they are edited.

use std::{fs, path::PathBuf};

use kruise_plan_kit::{Intent, ResourceId, sidecars::names};
use kruise_plan_sidecars::Explain;
use serde_json::{Value, json};

use crate::world::{World, parsed};

/// Folders of fixtures: what OpenKruise stored, and below `by-hand` what older versions would have stored, at rest
/// only.
const VERSIONS: [&str; 3] = ["upstream/1.8.4", "upstream/1.9.0", "upstream/main"];
const OLDER: [&str; 2] = ["by-hand/1.4", "by-hand/1.7"];
const FORMS: [&str; 2] = ["sidecarsets.json", "sidecarsets.v1alpha1.apps.kruise.io.json"];

/// The folders that have this phase.
fn versions(phase: &str) -> impl Iterator<Item = &'static str> {
    let older = OLDER.into_iter().filter(move |_| phase == "rest");
    VERSIONS.into_iter().chain(older)
}

fn items(version: &str, file: &str) -> Vec<Value> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let list: Value =
        serde_json::from_str(&fs::read_to_string(root.join(version).join(file)).unwrap()).unwrap();
    let items = if list.is_array() {
        list
    } else {
        list["items"].clone()
    };
    items.as_array().unwrap().clone()
}

/// Each stored set with its pods and revisions.
fn stored() -> Vec<(String, World)> {
    let mut all = Vec::new();
    for phase in ["rest", "mid"] {
        for version in versions(phase) {
            for form in FORMS {
                let [set] = &items(version, &format!("{phase}-{form}"))[..] else {
                    panic!("one set")
                };
                let mut world = World::new();
                world.set = set.clone();
                for pod in items(version, &format!("{phase}-pods.json")) {
                    if pod["metadata"]["annotations"][names::INJECTED_LIST] == "logs" {
                        world
                            .pods
                            .insert(pod["metadata"]["name"].as_str().unwrap().to_owned(), pod);
                    }
                }
                for revision in items(version, &format!("{phase}-controllerrevisions.json")) {
                    if revision["metadata"]["labels"]["kruise.io/sidecarset-name"] == "logs" {
                        let name = revision["metadata"]["name"].as_str().unwrap().to_owned();
                        world.revisions.insert(name, revision);
                    }
                }
                assert_eq!(world.pods.len(), 2);
                assert!(!world.revisions.is_empty());
                all.push((format!("{version} {phase} {form}"), world));
            }
        }
    }
    assert!(!all.is_empty(), "nothing is stored");
    all
}

#[test]
fn sets_of_three_versions_at_rest_and_half_way_cause_no_write() {
    for (about, world) in stored() {
        let plan = world.plan();
        let writes: Vec<String> = plan
            .writes
            .iter()
            .flat_map(|object| &object.steps)
            .map(|step| format!("{}: {}", step.write, step.reason))
            .collect();
        assert!(writes.is_empty(), "{about}: {writes:?}");
        assert!(plan.events.is_empty(), "{about}: {:?}", plan.events);
        assert_eq!(plan.status, None, "{about}");
    }
}

#[test]
fn a_revision_that_openkruise_wrote_is_made_again_with_the_same_bytes() {
    for (about, world) in stored() {
        let newest = world.set["status"]["latestRevision"].as_str().unwrap();
        let mut bare = World::new();
        bare.set = world.set.clone();
        let plan = bare.plan_with(&world.set, Explain::No);
        let object = plan
            .writes
            .first()
            .unwrap_or_else(|| panic!("{about}: a revision"));
        let write = &object.steps[0].write;
        assert_eq!(
            (write.intent(), write.target().resource),
            (Intent::CREATE_REVISION, ResourceId::REVISIONS)
        );
        assert_eq!(write.target().name, newest, "{about}");
        bare.carry_out(&plan);
        assert_eq!(
            bare.revisions[newest]["data"], world.revisions[newest]["data"],
            "{about}"
        );
        let (ours, theirs) = (
            &bare.revisions[newest]["metadata"],
            &world.revisions[newest]["metadata"],
        );
        assert_eq!(ours["labels"], theirs["labels"], "{about}");
    }
}

#[test]
fn a_stored_set_that_is_edited_upgrades_its_pods() {
    for (about, mut world) in stored() {
        let image = "busybox:1.37";
        world.edit(|spec| {
            spec["containers"][0]["image"] = json!(image);
            spec["updateStrategy"]["partition"] = json!(0);
        });
        world.settle();
        assert_eq!(world.with_image("log-agent", image).len(), 2, "{about}");
        for pod in world.pods.keys() {
            let records: Value = parsed(&world.annotation(pod, names::HASH));
            assert_eq!(
                records["logs"]["hash"],
                world.set["metadata"]["annotations"][names::HASH]
            );
            assert_eq!(
                records["logs"]["controllerRevision"],
                world.set["status"]["latestRevision"]
            );
        }
        assert_eq!(world.set["status"]["updatedReadyPods"], 2, "{about}");
    }
}

#[test]
fn what_half_way_pods_record_is_what_an_upgrade_here_records() {
    // The pod that OpenKruise had upgraded is brought back to where it was, and upgraded by us.
    let (_, world) = stored()
        .into_iter()
        .find(|(about, _)| about.starts_with("upstream/main mid sidecarsets.json"))
        .unwrap();
    let upgraded = |pod: &&Value| pod["metadata"]["annotations"][names::INPLACE_STATE].is_string();
    let theirs = world.pods.values().find(upgraded).unwrap().clone();
    let name = theirs["metadata"]["name"].as_str().unwrap().to_owned();
    let mut before = world;
    let pod = before.pods.get_mut(&name).unwrap();
    let old = pod["metadata"]["annotations"][names::HASH_WITHOUT_IMAGE]
        .as_str()
        .unwrap()
        .to_owned();
    let annotations = pod["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.insert(names::HASH.into(), json!(old));
    annotations.remove(names::INPLACE_STATE);
    pod["spec"]["containers"][0]["image"] = json!("busybox:1.35");
    let status = &mut pod["status"]["containerStatuses"][0];
    status["image"] = json!("busybox:1.35");
    status["imageID"] = json!("fake://busybox:1.35");
    status["containerID"] = json!("");
    pod["status"]["conditions"]
        .as_array_mut()
        .unwrap()
        .retain(|one| one["type"] != "SidecarSetUpgradable");
    before.now = "2026-11-21T03:54:26Z".parse().unwrap();
    before.edit(|spec| spec["updateStrategy"]["partition"] = json!(0));
    before.edit(|spec| spec["updateStrategy"]["maxUnavailable"] = json!(2));
    before.reconcile();
    for key in [names::HASH, names::HASH_WITHOUT_IMAGE, names::INPLACE_STATE] {
        assert_eq!(
            json!(before.annotation(&name, key)),
            theirs["metadata"]["annotations"][key],
            "{key}"
        );
    }
    let conditions = theirs["status"]["conditions"].as_array().unwrap();
    let told = conditions
        .iter()
        .find(|one| one["type"] == "SidecarSetUpgradable")
        .unwrap();
    let ours = before.upgradable(&name).unwrap();
    assert_eq!(
        json!([ours.0, ours.1, ours.2]),
        json!([told["status"], told["reason"], told["message"]])
    );
}
