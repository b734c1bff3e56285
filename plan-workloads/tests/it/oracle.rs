//! Watches every write that reaches the world. It shares no arithmetic with the planner.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kruise_plan_kit::{Intent, Part, Patch, Plan, Precondition, ResourceId, Step, Write};
use kruise_plan_test_kit::{Refused, condition};
use serde_json::Value;

use crate::{
    resources,
    world::{World, mounts, uid_of},
};

const STATE: &str = "lifecycle.apps.kruise.io/state";
const REVISION: &str = "controller-revision-hash";

/// What the specification allows, worked out from its text.
pub(crate) struct Allowed {
    pub(crate) replicas: i64,
    pub(crate) partition: i64,
    pub(crate) surge: i64,
    pub(crate) unavailable: i64,
}

/// A count or a percentage of `total`.
fn scaled(value: &Value, total: i64, up: bool) -> i64 {
    let Some(text) = value.as_str() else {
        return value.as_i64().unwrap_or(0);
    };
    // Hundredths of a percent keep this in whole numbers.
    let share: f64 = text.trim_end_matches('%').parse().unwrap();
    let parts = (share * 100.0).round() as i64 * total;
    if up {
        (parts + 9_999).div_euclid(10_000)
    } else {
        parts.div_euclid(10_000)
    }
}

impl Allowed {
    pub(crate) fn by(spec: &Value) -> Self {
        let replicas = spec["replicas"].as_i64().unwrap_or(1);
        let rolling = &spec["updateStrategy"]["rollingUpdate"];
        let surge = if rolling["paused"] == true {
            0
        } else {
            scaled(&rolling["maxSurge"], replicas, true)
        };
        let unavailable = match &rolling["maxUnavailable"] {
            Value::Null => scaled(&"20%".into(), replicas, surge == 0),
            given => scaled(given, replicas, surge == 0),
        };
        let wanted = &rolling["partition"];
        let mut partition = scaled(wanted, replicas, true);
        if replicas > 1 && partition == replicas && wanted.is_string() && wanted != "100%" {
            partition -= 1;
        }
        Self {
            replicas,
            partition: partition.clamp(0, replicas),
            surge,
            unavailable,
        }
    }
}

fn label<'a>(pod: &'a Value, key: &str) -> Option<&'a str> {
    pod["metadata"]["labels"][key].as_str()
}

/// Neither ended nor being deleted, ours, and matched by the selector.
pub(crate) fn is_member(world: &World, pod: &Value) -> bool {
    let ended = matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    !ended
        && pod["metadata"]["deletionTimestamp"].is_null()
        && is_ours(world, pod)
        && label(pod, "app") == Some("web")
}

fn is_ours(world: &World, pod: &Value) -> bool {
    let owners = pod["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|owners| {
        owners
            .iter()
            .any(|owner| owner["controller"] == true && owner["uid"] == world.set["metadata"]["uid"])
    })
}

/// In service: running, Ready long enough, not marked for an update, and not at a turn of its life.
pub(crate) fn is_available(world: &World, pod: &Value) -> bool {
    let in_service = matches!(label(pod, STATE), None | Some("" | "Normal"));
    let ready = pod["status"]["phase"] == "Running"
        && condition(pod, "Ready") == Some("True")
        && matches!(condition(pod, "InPlaceUpdateReady"), None | Some("True"));
    is_member(world, pod) && in_service && ready && old_enough(world, pod)
}

fn old_enough(world: &World, pod: &Value) -> bool {
    let seconds = world.set["spec"]["minReadySeconds"].as_i64().unwrap_or(0);
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    let since = &conditions.iter().find(|c| c["type"] == "Ready").unwrap()["lastTransitionTime"];
    let since: Timestamp = since.as_str().unwrap().parse().unwrap();
    seconds == 0 || world.now.as_second() - since.as_second() >= seconds
}

/// Pods in service.
pub(crate) fn available(world: &World) -> i64 {
    count(world, |pod| is_available(world, pod))
}

/// Members that pass a test.
pub(crate) fn count(world: &World, test: impl Fn(&Value) -> bool) -> i64 {
    let members = world.pods.values().filter(|pod| is_member(world, pod));
    members.filter(|pod| test(pod)).count() as i64
}

/// The revision that stands for the live template.
pub(crate) fn update_revision(world: &World) -> Option<String> {
    let live = &world.set["spec"]["template"];
    let same = world
        .revisions
        .values()
        .filter(|revision| template_of(revision) == normal(live));
    let newest = same.max_by_key(|revision| revision["revision"].as_i64());
    newest.map(|revision| revision["metadata"]["name"].as_str().unwrap().to_owned())
}

/// The template in a stored revision, as far as these tests vary it: image, environment, labels, annotations.
fn template_of(revision: &Value) -> Value {
    normal(&revision["data"]["spec"]["template"])
}

fn normal(template: &Value) -> Value {
    let containers = template["spec"]["containers"].as_array().unwrap();
    let containers: Vec<Value> = containers
        .iter()
        .map(|c| serde_json::json!([c["name"], c["image"], c["env"], c["resources"], c["resizePolicy"]]))
        .collect();
    let metadata = &template["metadata"];
    // An empty map is stored as none.
    let map = |key: &str| metadata[key].as_object().filter(|map| !map.is_empty());
    serde_json::json!([
        map("labels"),
        map("annotations"),
        metadata["finalizers"],
        containers
    ])
}

/// Applies one step of a plan under supervision.
pub(crate) fn apply(world: &mut World, step: &Step, previous: &mut Option<String>) -> Result<(), Refused> {
    let write = &step.write;
    assert_guarded(world, write);
    let target = write.target();
    if target.resource == ResourceId::CLAIMS {
        assert_claim(world, step);
    }
    if target.resource != ResourceId::PODS {
        return world.apply(write, previous);
    }
    let before = world.clone();
    world.apply(write, previous)?;
    if write.intent() == Intent::CREATE_POD {
        assert_mounts(&before, world, write);
    }
    assert_service(&before, world, step);
    assert_partition(&before, world, step);
    if world.pods.contains_key(&target.name) && before.pods.contains_key(&target.name) {
        resources::assert_given(&before, world, write);
    }
    match write.intent() {
        Intent::RESIZE_POD => resources::assert_resize(&before, world, write),
        Intent::UPDATE_IN_PLACE => {
            world.resized.remove(&uid_of(&world.pods[&target.name]));
            assert_in_place(&before, world, write);
        }
        Intent::MARK_READY => assert_runs_what_it_should(world, write),
        _ => {}
    }
    Ok(())
}

/// Neither ended nor being deleted, whoever's.
fn is_alive(pod: &Value) -> bool {
    let ended = matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    !ended && pod["metadata"]["deletionTimestamp"].is_null()
}

/// A claim that a live pod mounts, whoever's the pod is, is neither deleted nor given to another owner.
fn assert_claim(world: &World, step: &Step) {
    let name = &step.write.target().name;
    let user = world
        .pods
        .iter()
        .find(|(_, pod)| is_alive(pod) && mounts(pod).contains(name));
    // A deletion that looks first does no harm.
    let looks = matches!(&step.write, Write::Delete { precondition: Precondition::Unused(_, pod), .. }
        if world.pods.contains_key(&pod.name));
    let created = step.write.intent() == Intent::CREATE_CLAIM;
    assert!(
        created || looks || user.is_none(),
        "{} ({}): a live pod mounts it: {user:?}",
        step.write,
        step.reason
    );
    let reuse = world.set["spec"]["scaleStrategy"]["enablePVCReuse"] == true;
    assert!(
        !reuse || step.write.intent().as_str() != "give-claim",
        "{}: kept for reuse",
        step.write
    );
}

/// A new pod mounts one claim for each template: its own, nobody else's, and a used one only where that is asked for.
fn assert_mounts(before: &World, after: &World, write: &Write) {
    let pod = &after.pods[&write.target().name];
    let id = label(pod, "apps.kruise.io/cloneset-instance-id").unwrap();
    let templates = after.set["spec"]["volumeClaimTemplates"].as_array();
    let wanted: Vec<String> = templates
        .into_iter()
        .flatten()
        .map(|template| format!("{}-web-{id}", template["metadata"]["name"].as_str().unwrap()))
        .collect();
    assert_eq!(mounts(pod), wanted, "{write}");
    for name in wanted {
        let claim = &before
            .claims
            .get(&name)
            .unwrap_or_else(|| panic!("{write}: no claim {name}"));
        let metadata = &claim["metadata"];
        assert!(
            metadata["deletionTimestamp"].is_null(),
            "{write}: {name} is being deleted"
        );
        assert_eq!(
            metadata["ownerReferences"][0]["uid"],
            after.set["metadata"]["uid"]
        );
        assert_eq!(metadata["labels"]["apps.kruise.io/cloneset-instance-id"], id);
        let reuse = after.set["spec"]["scaleStrategy"]["enablePVCReuse"] == true;
        // A pod that one version of the set made is made again by that version, if it vanished unseen.
        let again = before.made_at[&uid_of(claim)] == before.set["metadata"]["resourceVersion"];
        let fresh = !before.mounted.contains(&uid_of(claim));
        assert!(reuse || again || fresh, "{write}: {name} was used before");
        let other = before.pods.iter().find(|(_, pod)| mounts(pod).contains(&name));
        assert_eq!(other, None, "{write}: mounts {name} as well");
    }
}

/// All that live pods mount is there; where claims are not reused, nothing else is.
pub(crate) fn assert_claims_at_rest(world: &World) {
    let alive = world.pods.values().filter(|pod| is_alive(pod));
    let used: BTreeSet<String> = alive.flat_map(mounts).collect();
    for name in &used {
        let claim = &world.claims[name];
        assert!(
            claim["metadata"]["deletionTimestamp"].is_null(),
            "{claim} is being deleted"
        );
    }
    let reuse = world.set["spec"]["scaleStrategy"]["enablePVCReuse"] == true;
    let left = world.claims.iter().find(|(name, claim)| {
        let pod = format!("web-{}", name.rsplit('-').next().unwrap());
        let of_set = claim["metadata"]["ownerReferences"][0]["uid"] == world.set["metadata"]["uid"];
        of_set && !used.contains(*name) && !world.pods.contains_key(&pod)
    });
    assert!(reuse || left.is_none(), "left behind: {left:?}");
}

/// A pod is not declared ready while a container still runs an image that is to be replaced.
fn assert_runs_what_it_should(world: &World, write: &Write) {
    let pod = &world.pods[&write.target().name];
    for status in pod["status"]["containerStatuses"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let containers = pod["spec"]["containers"].as_array().unwrap();
        let wanted = containers
            .iter()
            .find(|container| container["name"] == status["name"])
            .unwrap();
        assert_eq!(
            status["image"], wanted["image"],
            "{write} comes before the new image runs"
        );
    }
}

/// Each write is about a pod of this set, and says which one it means.
fn assert_guarded(world: &World, write: &Write) {
    let target = write.target();
    match write {
        Write::Create { owner_uid, body, .. } => {
            let reference = &body.render()["metadata"]["ownerReferences"][0];
            assert_eq!(reference["uid"].as_str(), owner_uid.as_deref());
            assert_eq!(reference["uid"], world.set["metadata"]["uid"]);
        }
        Write::Patch {
            precondition,
            patch,
            part,
            ..
        } => {
            assert!(is_guarded(target.resource, precondition), "unguarded: {write}");
            if let (Part::Status, Patch::Strategic(patch)) = (part, patch) {
                assert!(
                    patch.render().get("spec").is_none(),
                    "{write} hides a spec change in a status patch"
                );
            }
        }
        Write::Delete { precondition, .. } => {
            assert!(is_guarded(target.resource, precondition), "unguarded: {write}");
        }
    }
    let created = matches!(write, Write::Create { .. });
    if let (ResourceId::PODS, false, Some(pod)) = (target.resource, created, world.pods.get(&target.name)) {
        let leaves = write.intent() == Intent::RELEASE_POD;
        assert!(
            if leaves {
                is_ours(world, pod)
            } else {
                is_member(world, pod)
            },
            "{write}: not a pod of the set: {pod}"
        );
    }
}

fn is_guarded(resource: ResourceId, precondition: &Precondition) -> bool {
    // The set itself is edited under a test of the very value that is edited.
    precondition.uid().is_some()
        || (resource == kruise_api::cloneset::RESOURCE && matches!(precondition, Precondition::Test(..)))
}

/// No pod leaves service, by whatever write, below the line that the specification draws.
fn assert_service(before: &World, after: &World, step: &Step) {
    let name = &step.write.target().name;
    if step.write.intent() == Intent::RELEASE_POD {
        return;
    }
    let was = before.pods.get(name).is_some_and(|pod| is_available(before, pod));
    let is = after.pods.get(name).is_some_and(|pod| is_available(after, pod));
    if was && !is {
        let allowed = Allowed::by(&before.set["spec"]);
        let line = allowed.replicas - allowed.unavailable;
        let left = available(after);
        assert!(
            left >= line,
            "{} ({}) leaves {left} in service, below {line}",
            step.write,
            step.reason
        );
    }
}

/// Updates stop at the partition, and so do creations on the update revision and the removal of old pods.
fn assert_partition(before: &World, after: &World, step: &Step) {
    let Some(update) = update_revision(before) else {
        return;
    };
    let allowed = Allowed::by(&before.set["spec"]);
    let counts = |pod: &Value| label(pod, STATE) != Some("PreparingDelete");
    let old = |world: &World| count(world, |pod| counts(pod) && !is_on(pod, &update));
    let new = |world: &World| count(world, |pod| counts(pod) && is_on(pod, &update));
    let name = &step.write.target().name;
    match step.write.intent() {
        Intent::CREATE_POD => {
            let current = before.set["status"]["currentRevision"]
                .as_str()
                .unwrap_or_default();
            let is_update = is_on(&after.pods[name], &update);
            let known = before.revisions.contains_key(current) && current != update;
            let limit = allowed.replicas - allowed.partition + allowed.surge;
            assert!(
                !(known && is_update) || new(after) <= limit,
                "{} overshoots the partition",
                step.write
            );
        }
        Intent::UPDATE_IN_PLACE | Intent::REQUEST_DELETE | Intent::DELETE_POD | Intent::SET_LIFECYCLE => {
            let pod = &before.pods[name];
            let held = label(&after.pods[name], STATE) == Some("PreparingDelete");
            if step.write.intent() == Intent::SET_LIFECYCLE && !held {
                return;
            }
            let asked = label(pod, "apps.kruise.io/specified-delete").is_some()
                || before.set["spec"]["scaleStrategy"]["podsToDelete"]
                    .as_array()
                    .is_some_and(|names| names.iter().any(|asked| asked == name.as_str()));
            // A further batch of the revision that the pod is on already moves it nowhere.
            let stays = step.write.intent() == Intent::UPDATE_IN_PLACE
                && label(pod, REVISION) == label(&after.pods[name], REVISION);
            let leaves = counts(pod) && !is_on(pod, &update) && !asked && !stays;
            assert!(
                !leaves || old(before) > allowed.partition,
                "{} ({}) overshoots the partition",
                step.write,
                step.reason
            );
        }
        _ => {}
    }
}

/// Does the pod carry this revision's label, in full or by its last part?
pub(crate) fn is_on(pod: &Value, revision: &str) -> bool {
    label(pod, REVISION).is_some_and(|label| label == revision || revision.ends_with(&format!("-{label}")))
}

/// An in-place update touches images and the keys that separate the templates, and its own book-keeping; what it holds
/// back it does not touch, and what it has made is that of the pod's revision.
fn assert_in_place(before: &World, after: &World, write: &Write) {
    let name = &write.target().name;
    let (pod, changed) = (&before.pods[name], &after.pods[name]);
    let templates: Vec<&Value> = before
        .revisions
        .values()
        .map(|r| &r["data"]["spec"]["template"])
        .collect();
    let to = before
        .revisions
        .values()
        .find(|r| is_on(changed, r["metadata"]["name"].as_str().unwrap()));
    let to = to.map_or(&after.set["spec"]["template"], |revision| {
        &revision["data"]["spec"]["template"]
    });
    let waits = !annotation(changed, "grace").is_empty();
    let ends = !waits && !annotation(changed, "state").contains("nextContainer");
    for map in ["labels", "annotations"] {
        let keys = |template: &Value| changed_keys(&template["metadata"][map], &Value::Null);
        let known: BTreeSet<String> = templates
            .iter()
            .flat_map(|template| keys(template))
            .chain(keys(to))
            .collect();
        for key in changed_keys(&pod["metadata"][map], &changed["metadata"][map]) {
            let allowed = known.contains(&key) && !waits;
            assert!(
                OWN.contains(&key.as_str()) || allowed,
                "{write} touches {map} {key}"
            );
        }
        // Hooks' labels are taken off and put back by users.
        for key in known.iter().filter(|key| ends && !key.starts_with("hold/")) {
            assert_eq!(
                changed["metadata"][map][key], to["metadata"][map][key],
                "{write} leaves {map} {key} behind"
            );
        }
    }
    let restarts = images(pod) != images(changed);
    if restarts && pod["spec"]["readinessGates"].is_array() {
        assert_eq!(
            condition(pod, "InPlaceUpdateReady"),
            Some("False"),
            "{write} restarts a pod that is not marked"
        );
    }
    assert!(
        !(restarts && waits),
        "{write} changes what its grace period holds back"
    );
    if restarts {
        assert_grace(before, pod, write);
    }
    if ends {
        assert_eq!(
            images(changed),
            images(&to.pod()),
            "{write} leaves an image behind"
        );
        let wanted = resources::asked(&to.pod());
        assert_eq!(
            resources::asked(changed),
            wanted,
            "{write} leaves resources behind"
        );
    }
}

const OWN: [&str; 8] = [
    REVISION,
    "pod-template-hash",
    STATE,
    "lifecycle.apps.kruise.io/timestamp",
    "apps.kruise.io/inplace-update-state",
    "apps.kruise.io/inplace-update-grace",
    "inplace-update-state",
    "inplace-update-grace",
];

fn annotation<'a>(pod: &'a Value, what: &str) -> &'a str {
    let key = format!("apps.kruise.io/inplace-update-{what}");
    pod["metadata"]["annotations"][key].as_str().unwrap_or_default()
}

fn images(pod: &Value) -> Vec<Value> {
    let containers = pod["spec"]["containers"].as_array().unwrap();
    containers
        .iter()
        .map(|container| container["image"].clone())
        .collect()
}

/// Images change only after the whole of the grace period that was asked for when it began.
fn assert_grace(world: &World, pod: &Value, write: &Write) {
    let rolling = &world.set["spec"]["updateStrategy"]["rollingUpdate"];
    let asked = rolling["inPlaceUpdateStrategy"]["gracePeriodSeconds"]
        .as_i64()
        .unwrap_or(0);
    let state: Value = serde_json::from_str(annotation(pod, "state")).unwrap_or_default();
    let grace: Value = serde_json::from_str(annotation(pod, "grace")).unwrap_or_default();
    let later_batch = annotation(pod, "state").contains("nextContainer");
    let Some(seconds) = grace["graceSeconds"].as_i64() else {
        return assert!(
            asked <= 0 || later_batch,
            "{write} comes without its grace period"
        );
    };
    let since: Timestamp = state["updateTimestamp"].as_str().unwrap().parse().unwrap();
    let ran = world.now.as_second() - since.as_second();
    assert!(
        asked <= 0 || ran >= seconds,
        "{write} comes {ran} s into a grace period of {seconds} s"
    );
}

trait AsPod {
    fn pod(&self) -> Value;
}

impl AsPod for Value {
    /// A template seen as a pod.
    fn pod(&self) -> Value {
        serde_json::json!({"spec": self["spec"]})
    }
}

fn changed_keys(before: &Value, after: &Value) -> BTreeSet<String> {
    let keys = |value: &Value| {
        value
            .as_object()
            .map(|map| map.keys().cloned().collect::<Vec<_>>())
    };
    let all = keys(before).into_iter().chain(keys(after)).flatten();
    all.filter(|key| before[key.as_str()] != after[key.as_str()])
        .collect()
}

/// Of the pods removed as surplus, none has a neighbour that should have gone first.
pub(crate) fn assert_removal_order(world: &World, plan: &Plan) {
    let Some(update) = update_revision(world) else {
        return;
    };
    let surplus: BTreeSet<&str> = plan
        .writes
        .iter()
        .flat_map(|object| &object.steps)
        .filter(|step| step.reason.starts_with("there are more pods than replicas"))
        .map(|step| step.write.target().name.as_str())
        .collect();
    for victim in &surplus {
        let pod = &world.pods[*victim];
        let side = is_on(pod, &update);
        let better = world.pods.iter().find(|(name, other)| {
            is_member(world, other)
                && !surplus.contains(name.as_str())
                && is_on(other, &update) == side
                && removal_key(world, other) < removal_key(world, pod)
        });
        assert!(
            better.is_none(),
            "{victim} goes before {:?}",
            better.map(|(name, _)| name)
        );
    }
}

/// The weightiest parts of the order: unscheduled, not running, out of service, not Ready, cheap.
fn removal_key(world: &World, pod: &Value) -> (bool, u8, bool, bool, i64) {
    let phase = match pod["status"]["phase"].as_str() {
        Some("Running") => 2,
        Some("Unknown") => 1,
        _ => 0,
    };
    let cost = pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"]
        .as_str()
        .map_or(0, |cost| cost.parse().unwrap());
    let ready = condition(pod, "Ready") == Some("True");
    (
        pod["spec"]["nodeName"].is_string(),
        phase,
        is_available(world, pod),
        ready,
        cost,
    )
}
