//! Sets that OpenKruise runs are taken over without a pod being touched, and a rollout found half-way goes on where
//! it was.
//!
//! No fixture has owner references in the older version, a pod in the middle of its in-place update, or claims that
//! the set owns. Those are made here by hand, out of what is stored.

use std::{fs, path::PathBuf, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kruise_api::statefulset::StatefulSet;
use kruise_plan_kit::{Explain, Intent, Memory, Patch, Plan, ResourceId, Write};
use kruise_plan_test_kit::{decode, set_condition};
use kruise_plan_workloads::statefulset::{Options, Snapshot, plan};
use kruise_views::{ClaimView, PodView, RevisionView};
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

/// One stored set, what it owns, and all claims.
#[derive(Clone)]
struct Stored {
    about: String,
    set: Value,
    pods: Vec<Value>,
    claims: Vec<Value>,
    revisions: Vec<Value>,
    now: Timestamp,
}

/// The last moment of which a pod's status tells: when the snapshot was taken.
fn latest(pods: &[Value]) -> Timestamp {
    let conditions = pods
        .iter()
        .flat_map(|pod| pod["status"]["conditions"].as_array().unwrap());
    let times = conditions.map(|condition| condition["lastTransitionTime"].as_str().unwrap());
    times.map(|time| time.parse().unwrap()).max().unwrap()
}

fn stored(phase: &str) -> Vec<Stored> {
    let mut all = Vec::new();
    for version in versions(phase) {
        let (pods, revisions) = ("pods", "controllerrevisions");
        let [pods, revisions, claims] = [pods, revisions, "persistentvolumeclaims"]
            .map(|resource| items(version, &format!("{phase}-{resource}.json")));
        for form in FORMS {
            for set in items(version, &format!("{phase}-statefulsets.{form}.json")) {
                let is_owner = |owner: &Value| owner["uid"] == set["metadata"]["uid"];
                let mine = |object: &&Value| {
                    let owners = object["metadata"]["ownerReferences"].as_array();
                    owners.is_some_and(|owners| owners.iter().any(is_owner))
                };
                let pods: Vec<Value> = pods.iter().filter(mine).cloned().collect();
                all.push(Stored {
                    about: format!("{version} {phase} {form}"),
                    now: latest(&pods) + SignedDuration::from_hours(1),
                    pods,
                    claims: claims.clone(),
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
            .all(|one| one.pods.len() == 3 && !one.revisions.is_empty())
    );
    assert!(!all.is_empty(), "nothing is stored");
    all
}

impl Stored {
    fn plan(&self) -> Plan {
        let set = StatefulSet::from_value(self.set.clone()).unwrap();
        let pods: Vec<Arc<PodView>> = self.pods.iter().map(decode).collect();
        let revisions: Vec<Arc<RevisionView>> = self.revisions.iter().map(decode).collect();
        let named = |objects: &[Value], name: &str| {
            let found = objects.iter().find(|object| object["metadata"]["name"] == name);
            found.cloned()
        };
        plan(
            &Snapshot {
                set: &set,
                api_version: &set.api_version,
                pods: &pods,
                pod: &|name| named(&self.pods, name).as_ref().map(decode::<PodView>),
                claim: &|name| named(&self.claims, name).as_ref().map(decode::<ClaimView>),
                class: &|_| None,
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

    fn rolling(&mut self) -> &mut Value {
        &mut self.set["spec"]["updateStrategy"]["rollingUpdate"]
    }
}

#[test]
fn a_stored_statefulset_is_taken_over_without_a_write_to_a_pod_claim_or_revision() {
    for phase in ["rest", "mid"] {
        for stored in stored(phase) {
            // The partition holds what is left of a rollout found half-way.
            assert_eq!(stored.writes(), Vec::<String>::new(), "{}", stored.about);
        }
    }
}

#[test]
fn the_status_of_a_stored_statefulset_stays_but_for_conditions_of_our_own() {
    for phase in ["rest", "mid"] {
        for stored in stored(phase) {
            let patch = stored
                .plan()
                .status
                .map_or(json!({"status": {}}), |status| status.patch);
            let mut status = patch["status"].as_object().unwrap().clone();
            let conditions = status.remove("conditions").unwrap_or(json!([]));
            for condition in conditions.as_array().unwrap() {
                assert_eq!(condition["type"], "Progressing", "{}: {patch}", stored.about);
            }
            // The older version reports nothing of these, and OpenKruise 1.4 and 1.7 nothing of some.
            let unreported: &[&str] = match &*stored.about {
                about if about.contains("v1alpha1") => {
                    &["volumeClaims", "updatedReadyReplicas", "updatedAvailableReplicas"]
                }
                about if about.starts_with("by-hand/1.4") => &["volumeClaims", "updatedAvailableReplicas"],
                about if about.starts_with("by-hand/1.7") => &["volumeClaims"],
                _ => &[],
            };
            for key in unreported {
                assert!(status.remove(*key).is_some(), "{}: {key}", stored.about);
            }
            assert_eq!(json!(status), json!({}), "{}", stored.about);
        }
    }
}

#[test]
fn a_revision_made_anew_is_byte_for_byte_the_stored_one() {
    for phase in ["rest", "mid"] {
        for stored in stored(phase) {
            let name = stored.set["status"]["updateRevision"].clone();
            let is_update = |revision: &&Value| revision["metadata"]["name"] == name;
            let update = stored.revisions.iter().find(is_update).unwrap();
            let mut without = stored.clone();
            without.revisions.retain(|revision| !is_update(&revision));
            let plan = without.plan();
            let mut steps = plan.writes.iter().flat_map(|object| &object.steps);
            let created = steps.find_map(|step| match &step.write {
                Write::Create {
                    intent: Intent::CREATE_REVISION,
                    body,
                    ..
                } => Some(body.render()),
                _ => None,
            });
            let created = created.unwrap_or_else(|| panic!("{}: no revision is made", stored.about));
            assert_eq!(created["metadata"]["name"], name, "{}", stored.about);
            assert_eq!(created["data"].to_string(), update["data"].to_string());
            assert_eq!(created["revision"], update["revision"]);
            let labels = &created["metadata"]["labels"];
            assert_eq!(*labels, update["metadata"]["labels"], "{}", stored.about);
            let mut owner = created["metadata"]["ownerReferences"][0].clone();
            owner["apiVersion"] = json!("apps.kruise.io/v1beta1");
            assert_eq!(owner, update["metadata"]["ownerReferences"][0]);
        }
    }
}

#[test]
fn a_rollout_found_half_way_goes_on_in_place_below_the_partition() {
    for mut stored in stored("mid") {
        stored.rolling()["partition"] = json!(0);
        let expected = ["mark-unready asts-0", "update-in-place asts-0"];
        assert_eq!(stored.writes(), expected, "{}", stored.about);
    }
}

/// Makes a pod of a rollout found half-way one whose new image is not running yet.
fn in_the_middle(stored: &mut Stored) {
    let pod = &mut stored.pods[2];
    assert_eq!(pod["metadata"]["name"], "asts-2");
    pod["metadata"]["labels"]["lifecycle.apps.kruise.io/state"] = json!("Updating");
    let state = pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"].as_str();
    let state: Value = serde_json::from_str(state.unwrap()).unwrap();
    let since = state["updateTimestamp"].as_str().unwrap();
    set_condition(pod, "InPlaceUpdateReady", "False", since);
    set_condition(pod, "Ready", "False", since);
    let status = &mut pod["status"]["containerStatuses"][0];
    status["imageID"] = state["lastContainerStatuses"]["main"]["imageID"].clone();
    status["image"] = json!("nginx:1.25");
}

#[test]
fn an_in_place_update_that_openkruise_began_is_waited_for_and_finished() {
    for mut stored in stored("mid") {
        stored.rolling()["partition"] = json!(0);
        stored.rolling()["maxUnavailable"] = json!(1);
        let done = stored.pods[2].clone();
        in_the_middle(&mut stored);
        assert_eq!(stored.writes(), Vec::<String>::new(), "{}", stored.about);
        // The new image runs.
        let statuses = &done["status"]["containerStatuses"];
        stored.pods[2]["status"]["containerStatuses"] = statuses.clone();
        assert_eq!(stored.writes(), ["mark-ready asts-2"], "{}", stored.about);
        stored.pods[2] = done;
        let expected = ["mark-unready asts-0", "update-in-place asts-0"];
        assert_eq!(stored.writes(), expected, "{}", stored.about);
    }
}

/// Gives owner references the older version.
fn older(objects: &mut [Value]) {
    for object in objects {
        object["metadata"]["ownerReferences"][0]["apiVersion"] = json!("apps.kruise.io/v1alpha1");
    }
}

#[test]
fn owners_in_the_older_version_are_the_same_owners() {
    for phase in ["rest", "mid"] {
        for mut stored in stored(phase) {
            older(&mut stored.pods);
            older(&mut stored.revisions);
            assert_eq!(stored.writes(), Vec::<String>::new(), "{}", stored.about);
        }
    }
}

#[test]
fn claims_that_the_set_owns_in_either_version_are_not_patched() {
    for stored in stored("rest") {
        // The older version has no such field.
        if stored.about.contains("v1alpha1") {
            continue;
        }
        for version in ["v1beta1", "v1alpha1"] {
            let mut stored = stored.clone();
            let policy = json!({"whenDeleted": "Delete", "whenScaled": "Retain"});
            stored.set["spec"]["persistentVolumeClaimRetentionPolicy"] = policy;
            let own = |name: &str| format!("own-claim {name}");
            let names = ["data-asts-0", "data-asts-1", "data-asts-2"];
            let mut writes = stored.writes();
            writes.sort();
            assert_eq!(writes, names.map(own), "{}", stored.about);
            let owner = json!({"apiVersion": format!("apps.kruise.io/{version}"), "kind": "StatefulSet",
                               "name": "asts", "uid": stored.set["metadata"]["uid"]});
            let is_ours = |claim: &&mut Value| names.iter().any(|name| claim["metadata"]["name"] == **name);
            for claim in stored.claims.iter_mut().filter(is_ours) {
                claim["metadata"]["ownerReferences"] = json!([owner]);
            }
            assert_eq!(
                stored.writes(),
                Vec::<String>::new(),
                "{} {version}",
                stored.about
            );
        }
    }
}

#[test]
fn a_deleted_pod_of_a_stored_statefulset_comes_back_as_it_was() {
    for phase in ["rest", "mid"] {
        for stored in stored(phase) {
            for index in 0..3 {
                let mut without = stored.clone();
                let pod = without.pods.remove(index);
                let plan = without.plan();
                let mut steps = plan.writes.iter().flat_map(|object| &object.steps);
                let created = steps
                    .find(|step| step.write.intent() == Intent::CREATE_POD)
                    .unwrap();
                let Write::Create { body, target, .. } = &created.write else {
                    panic!("{}", created.write);
                };
                assert_eq!(target.resource, ResourceId::PODS);
                let body = body.render();
                let about = format!("{} {}", stored.about, target.name);
                let mut labels = pod["metadata"]["labels"].clone();
                if stored.about.starts_with("by-hand/1.4") {
                    // It gave pods no label with their ordinal.
                    labels["apps.kubernetes.io/pod-index"] = json!(index.to_string());
                }
                assert_eq!(body["metadata"]["labels"], labels, "{about}");
                for field in ["hostname", "subdomain", "readinessGates"] {
                    assert_eq!(body["spec"][field], pod["spec"][field], "{about}");
                }
                let image = |pod: &Value| pod["spec"]["containers"][0]["image"].clone();
                assert_eq!(image(&body), image(&pod), "{about}");
                let claim = "/spec/volumes/0/persistentVolumeClaim/claimName";
                assert_eq!(body.pointer(claim), pod.pointer(claim), "{about}");
            }
        }
    }
}

/// A StatefulSet of Kubernetes as a real API server stored it with its pods and revisions, deleted without these,
/// and the new set of its name, with the template of the old one.
fn left_by_kubernetes() -> Stored {
    let version = "upstream/main";
    let mut old = items(version, "rest-statefulsets.apps.json").remove(0);
    let owned = |file: &str| -> Vec<Value> {
        let mine = |object: &Value| object["metadata"]["ownerReferences"][0]["uid"] == old["metadata"]["uid"];
        let mut all = items(version, file);
        all.retain(mine);
        for object in &mut all {
            object["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("ownerReferences");
        }
        all
    };
    let (pods, revisions) = (owned("rest-pods.json"), owned("rest-controllerrevisions.json"));
    assert_eq!((pods.len(), revisions.len()), (2, 1), "the fixture is there");
    let spec = old["spec"].as_object_mut().unwrap();
    spec.insert(
        "updateStrategy".into(),
        json!({"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "ReCreate", "maxUnavailable": 1}}),
    );
    let metadata = json!({"name": old["metadata"]["name"], "namespace": old["metadata"]["namespace"], "uid": "new-uid",
                          "resourceVersion": "1", "generation": 1, "creationTimestamp": "2026-11-21T04:00:00Z"});
    Stored {
        about: "left by Kubernetes".into(),
        now: latest(&pods) + SignedDuration::from_hours(1),
        set: json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "metadata": metadata,
                    "spec": old["spec"], "status": {}}),
        pods,
        claims: Vec::new(),
        revisions,
    }
}

impl Stored {
    /// Carries out the adoption of all pods and what is noted on the revision, and stores the status if there is one.
    fn adopt(&mut self) {
        let plan = self.plan();
        let owner = json!([{"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": self.set["metadata"]["name"],
                            "uid": "new-uid", "controller": true, "blockOwnerDeletion": true}]);
        for pod in &mut self.pods {
            pod["metadata"]["ownerReferences"] = owner.clone();
        }
        for step in plan.writes.iter().flat_map(|object| &object.steps) {
            if let (
                Intent::NOTE_TEMPLATE,
                Write::Patch {
                    patch: Patch::Merge(patch),
                    ..
                },
            ) = (step.write.intent(), &step.write)
            {
                self.revisions[0]["metadata"]["annotations"] = patch["metadata"]["annotations"].clone();
            }
        }
        if let Some(status) = plan.status {
            self.set["status"] = status.patch["status"].clone();
        }
    }
}

#[test]
fn pods_that_a_statefulset_of_kubernetes_left_are_adopted_and_not_recreated() {
    type Change = fn(&mut Stored);
    // What the webhook fills in where the manifest names no policy, and the server wrote twice.
    let completed: Change = |stored| {
        for at in ["/imagePullPolicy", ""] {
            let spec = stored.revisions[0]
                .pointer_mut("/data/spec/template/spec")
                .unwrap();
            if at.is_empty() {
                spec["serviceAccountName"] = json!("db");
                spec["serviceAccount"] = json!("db");
            } else {
                spec["containers"][0]["imagePullPolicy"] = json!("IfNotPresent");
            }
        }
        stored.set["spec"]["template"]["spec"]["serviceAccountName"] = json!("db");
    };
    let as_it_was: Change = |_| {};
    for (change, noted) in [(as_it_was, false), (completed, true)] {
        let mut stored = left_by_kubernetes();
        change(&mut stored);
        let revision = stored.revisions[0]["metadata"]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        let mut expected = vec![
            "adopt-pod united-a-pnwz5-0".to_owned(),
            "adopt-pod united-a-pnwz5-1".to_owned(),
        ];
        expected.extend(noted.then(|| format!("note-template {revision}")));
        let mut writes = stored.writes();
        writes.sort();
        assert_eq!(writes, expected);
        assert_eq!(
            stored.plan().status.is_none(),
            noted,
            "no status names a revision that is not found again"
        );
        stored.adopt();
        for _ in 0..2 {
            assert_eq!(stored.writes(), Vec::<String>::new());
            stored.adopt();
        }
        let status = &stored.set["status"];
        assert_eq!(status["updateRevision"], revision.as_str());
        assert_eq!(
            (&status["updatedReplicas"], &status["readyReplicas"]),
            (&json!(2), &json!(2))
        );
    }
}

#[test]
fn what_kubernetes_left_is_updated_when_the_template_differs_in_more() {
    let mut stored = left_by_kubernetes();
    stored.set["spec"]["template"]["spec"]["readinessGates"] =
        json!([{"conditionType": "InPlaceUpdateReady"}]);
    let writes = stored.writes();
    assert!(
        writes.iter().any(|write| write.starts_with("create-revision")),
        "{writes:?}"
    );
}
