//! Sets that OpenKruise runs are taken over without a pod being touched, and a rollout found half-way goes on where
//! it was.

use std::{fs, path::PathBuf, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kruise_api::daemonset::DaemonSet;
use kruise_plan_kit::{Explain, Memory, Plan, Write};
use kruise_plan_test_kit::decode;
use kruise_plan_workloads::daemonset::{Options, Placed, Snapshot, placement, plan};
use kruise_views::{NodeView, PodView, RevisionView};
use serde_json::{Value, json};

/// Folders of fixtures: what OpenKruise stored, and below `by-hand` what older versions would have stored, at rest
/// only.
const VERSIONS: [&str; 3] = ["upstream/1.8.4", "upstream/1.9.0", "upstream/main"];
const OLDER: [&str; 2] = ["by-hand/1.4", "by-hand/1.7"];
const FORMS: [&str; 2] = ["apps.kruise.io", "v1alpha1.apps.kruise.io"];

/// The folders that have this phase.
fn versions(phase: &str) -> impl Iterator<Item = &'static str> {
    let older = OLDER.into_iter().filter(move |_| phase == "rest");
    VERSIONS.into_iter().chain(older)
}

/// A list as the server sent it, or as a plain array.
fn items(version: &str, file: &str) -> Vec<Value> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let text = fs::read_to_string(root.join(version).join(file)).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    let items = if list.is_array() { &list } else { &list["items"] };
    items.as_array().unwrap().clone()
}

/// One stored set and what it owns.
struct Stored {
    about: String,
    set: Value,
    pods: Vec<Value>,
    revisions: Vec<Value>,
    /// Names of the nodes that its pods were on.
    nodes: Vec<String>,
    now: Timestamp,
}

fn stored(phase: &str) -> Vec<Stored> {
    let mut all = Vec::new();
    for version in versions(phase) {
        let [pods, revisions] = ["pods", "controllerrevisions"]
            .map(|resource| items(version, &format!("{phase}-{resource}.json")));
        for form in FORMS {
            for set in items(version, &format!("{phase}-daemonsets.{form}.json")) {
                let mine = |object: &&Value| {
                    let owners = object["metadata"]["ownerReferences"].as_array();
                    owners.is_some_and(|owners| {
                        let mut owners = owners.iter();
                        owners.any(|owner| owner["uid"] == set["metadata"]["uid"])
                    })
                };
                let pods: Vec<Value> = pods.iter().filter(mine).cloned().collect();
                let conditions = pods
                    .iter()
                    .flat_map(|pod| pod["status"]["conditions"].as_array().unwrap());
                let times = conditions.map(|condition| condition["lastTransitionTime"].as_str().unwrap());
                let latest: Timestamp = times.map(|time| time.parse().unwrap()).max().unwrap();
                all.push(Stored {
                    about: format!("{version} {phase} {form}"),
                    now: latest + SignedDuration::from_hours(1),
                    nodes: pods
                        .iter()
                        .map(|pod| pod["spec"]["nodeName"].as_str().unwrap().to_owned())
                        .collect(),
                    pods,
                    revisions: revisions.iter().filter(mine).cloned().collect(),
                    set,
                });
            }
        }
    }
    assert_eq!(
        all.len(),
        versions(phase).count() * FORMS.len(),
        "the fixtures are there"
    );
    assert!(
        all.iter()
            .all(|one| one.pods.len() == 4 && !one.revisions.is_empty())
    );
    assert!(!all.is_empty(), "nothing is stored");
    all
}

impl Stored {
    fn plan(&self) -> Plan {
        let set = DaemonSet::from_value(self.set.clone()).unwrap();
        let pods: Vec<Arc<PodView>> = self.pods.iter().map(decode).collect();
        let revisions: Vec<Arc<RevisionView>> = self.revisions.iter().map(decode).collect();
        let placement = placement(&set);
        let node = |name: &String| {
            let node = decode::<NodeView>(&json!({"metadata": {"name": name}}));
            Placed {
                fit: placement.fit(&node),
                node,
            }
        };
        let mut nodes: Vec<Placed> = self.nodes.iter().map(node).collect();
        nodes.sort_by(|one, other| one.node.name.cmp(&other.node.name));
        plan(
            &Snapshot {
                set: &set,
                api_version: &set.api_version,
                nodes: &nodes,
                placement: &placement,
                pods: &pods,
                revisions: &revisions,
                pull_jobs: &[],
                budgets: kruise_plan_kit::ledger::Budgets::NONE,
                options: Options::DEFAULT,
                memory: &Memory::default(),
                explain: Explain::Yes,
            },
            self.now,
        )
    }

    /// `verb name` of all writes.
    fn writes(&self) -> Vec<String> {
        let plan = self.plan();
        let steps = plan.writes.iter().flat_map(|object| &object.steps);
        let text = |write: &Write| format!("{} {}", write.intent().as_str(), write.target().name);
        steps.map(|step| text(&step.write)).collect()
    }
}

#[test]
fn a_stored_daemonset_is_taken_over_without_a_write_to_a_pod_or_revision() {
    for phase in ["rest", "mid"] {
        for stored in stored(phase) {
            // The partition holds what is left of a rollout found half-way.
            assert_eq!(stored.writes(), Vec::<String>::new(), "{}", stored.about);
        }
    }
}

#[test]
fn the_status_of_a_stored_daemonset_stays_but_for_conditions_of_our_own() {
    for phase in ["rest", "mid"] {
        for stored in stored(phase) {
            let patch = stored.plan().status.unwrap().patch;
            let members: Vec<&String> = patch["status"].as_object().unwrap().keys().collect();
            assert_eq!(members, ["conditions"], "{}: {patch}", stored.about);
        }
    }
}

#[test]
fn a_rollout_found_half_way_goes_on_in_place() {
    for mut stored in stored("mid") {
        stored.set["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = json!(0);
        let writes = stored.writes();
        let [unready, update] = writes.as_slice() else {
            panic!("{}: {writes:?}", stored.about)
        };
        assert!(
            unready.starts_with("mark-unready ads-") && update.starts_with("update-in-place ads-"),
            "{}: {writes:?}",
            stored.about
        );
        let label = stored.plan().writes[0].steps[1].write.clone();
        let Write::Patch { patch, .. } = label else {
            panic!()
        };
        let newest = stored
            .revisions
            .iter()
            .max_by_key(|revision| revision["revision"].as_i64().unwrap())
            .unwrap();
        let hash = &newest["metadata"]["labels"]["controller-revision-hash"];
        assert_eq!(
            patch.body()["metadata"]["labels"],
            json!({"controller-revision-hash": hash}),
            "the bare hash, and no lifecycle label"
        );
    }
}

#[test]
fn a_revision_without_labels_is_read_like_others() {
    for mut stored in stored("rest") {
        for revision in &mut stored.revisions {
            revision["metadata"].as_object_mut().unwrap().remove("labels");
        }
        assert_eq!(stored.writes(), Vec::<String>::new(), "{}", stored.about);
    }
}

#[test]
fn a_lost_pod_of_a_stored_daemonset_comes_back_on_its_node_at_once() {
    for mut stored in stored("rest") {
        let gone = stored.pods.pop().unwrap();
        let plan = stored.plan();
        let [object] = plan.writes.as_slice() else {
            panic!("{}: {:?}", stored.about, stored.writes())
        };
        let Write::Create { body, .. } = &object.steps[0].write else {
            panic!()
        };
        let pod = body.render();
        let affinity = &gone["spec"]["affinity"];
        assert_eq!(pod["spec"]["affinity"], *affinity, "{}", stored.about);
        assert_eq!(pod["spec"]["tolerations"], gone["spec"]["tolerations"]);
        let gates = gone["spec"]["readinessGates"].as_array().unwrap().len();
        assert_eq!(pod["spec"]["readinessGates"].as_array().unwrap().len(), gates);
        let label = "controller-revision-hash";
        assert_eq!(
            pod["metadata"]["labels"][label],
            gone["metadata"]["labels"][label]
        );
        assert_eq!(
            pod["metadata"]["ownerReferences"][0]["apiVersion"], stored.set["apiVersion"],
            "{}",
            stored.about
        );
    }
}
