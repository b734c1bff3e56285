//! Watches every write that reaches the world. It shares no arithmetic with the planner.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kruise_plan_kit::{Intent, Plan, Precondition, ResourceId, Step, Write};
use kruise_plan_test_kit::{Refused, condition, mounts, uid_of};
use serde_json::{Value, json};

use super::world::{SET_UID, World, controller};

const STATE: &str = "lifecycle.apps.kruise.io/state";
const REVISION: &str = "controller-revision-hash";
const SPECIFIED: &str = "apps.kruise.io/specified-delete";

pub(crate) fn label<'a>(pod: &'a Value, key: &str) -> Option<&'a str> {
    pod["metadata"]["labels"][key].as_str()
}

/// The ordinals that have pods, lowest first, counted one by one.
pub(crate) fn slots(world: &World) -> Vec<i64> {
    let spec = &world.set["spec"];
    let mut reserved = BTreeSet::new();
    for entry in spec["reserveOrdinals"].as_array().into_iter().flatten() {
        let text = entry.as_str().map_or_else(|| entry.to_string(), str::to_owned);
        let (first, last) = text.split_once('-').unwrap_or((&text, &text));
        reserved.extend(first.parse::<i64>().unwrap()..=last.parse::<i64>().unwrap());
    }
    let start = if world.options.start_ordinal {
        spec["ordinals"]["start"].as_i64().unwrap_or(0)
    } else {
        0
    };
    let free = (start..).filter(|ordinal| !reserved.contains(ordinal));
    free.take(replicas(world)).collect()
}

fn replicas(world: &World) -> usize {
    usize::try_from(world.set["spec"]["replicas"].as_i64().unwrap_or(1)).unwrap()
}

fn rolling(world: &World) -> &Value {
    &world.set["spec"]["updateStrategy"]["rollingUpdate"]
}

pub(crate) fn partition(world: &World) -> usize {
    usize::try_from(rolling(world)["partition"].as_i64().unwrap_or(0)).unwrap()
}

/// A number, or a share rounded down; at least one.
fn resolved(value: &Value, total: usize) -> usize {
    let count = match value.as_str() {
        Some(share) => {
            let share: usize = share.trim_end_matches('%').parse().unwrap();
            share * total / 100
        }
        None => usize::try_from(value.as_i64().unwrap_or(1)).unwrap(),
    };
    count.max(1)
}

fn max_unavailable(world: &World) -> usize {
    resolved(&rolling(world)["maxUnavailable"], replicas(world))
}

pub(crate) fn is_ordered(world: &World) -> bool {
    world.set["spec"]["podManagementPolicy"] != "Parallel"
}

fn is_unordered_update(world: &World) -> bool {
    !rolling(world)["unorderedUpdate"].is_null()
}

pub(crate) fn name_of(ordinal: i64) -> String {
    format!("web-{ordinal}")
}

/// Controlled by the set, matching, and named as its pods are.
pub(crate) fn is_ours(pod: &Value) -> bool {
    let name = pod["metadata"]["name"].as_str().unwrap();
    let digits = name.strip_prefix("web-").unwrap_or_default();
    let canonical = digits
        .parse::<i64>()
        .is_ok_and(|number| number.to_string() == digits);
    canonical && label(pod, "app") == Some("web") && controller(pod) == Some(SET_UID)
}

pub(crate) fn is_terminating(pod: &Value) -> bool {
    !pod["metadata"]["deletionTimestamp"].is_null()
}

pub(crate) fn is_ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"))
}

/// Running, Ready long enough, not in the middle of an update, not at a turn of its life, and not going.
pub(crate) fn is_available(world: &World, pod: &Value) -> bool {
    let in_service = matches!(label(pod, STATE), None | Some("" | "Normal"));
    let ready = pod["status"]["phase"] == "Running"
        && condition(pod, "Ready") == Some("True")
        && matches!(condition(pod, "InPlaceUpdateReady"), None | Some("True"));
    is_ours(pod) && !is_terminating(pod) && in_service && ready && old_enough(world, pod)
}

fn old_enough(world: &World, pod: &Value) -> bool {
    let seconds = rolling(world)["minReadySeconds"].as_i64().unwrap_or(0);
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    let since = &conditions.iter().find(|c| c["type"] == "Ready").unwrap()["lastTransitionTime"];
    let since: Timestamp = since.as_str().unwrap().parse().unwrap();
    seconds == 0 || world.now.as_second() - since.as_second() >= seconds
}

/// The set's pods in slots that exist, with their ordinals.
pub(crate) fn filled(world: &World) -> impl Iterator<Item = (i64, &Value)> {
    let pods = slots(world).into_iter().filter_map(|ordinal| {
        let pod = world.pods.get(&name_of(ordinal))?;
        is_ours(pod).then_some((ordinal, pod))
    });
    pods.collect::<Vec<_>>().into_iter()
}

/// Slots that no available pod fills, or whose claims have not got what they ask for.
fn unavailable(world: &World) -> usize {
    let available = filled(world).filter(|(_, pod)| is_available(world, pod) && is_complete(world, pod));
    replicas(world) - available.count()
}

/// Do claims follow their templates?
pub(crate) fn follows(world: &World) -> bool {
    world.options.resize_claims
        && world.set["spec"]["volumeClaimUpdateStrategy"]["type"] == "OnPodRollingUpdate"
}

/// Have the pod's claims what they ask for?
fn is_complete(world: &World, pod: &Value) -> bool {
    let wanted = wanted_claims(world, pod["metadata"]["name"].as_str().unwrap());
    let claims = wanted.iter().filter_map(|name| world.claims.get(name));
    let mut claims = claims.filter(|claim| !is_terminating(claim));
    !follows(world)
        || claims.all(|claim| {
            let capacity = claim["status"]["capacity"]["storage"].as_str();
            capacity.map_or(0, gibibytes) >= size_of(claim)
        })
}

/// What a claim, or a template of one, asks for.
pub(crate) fn size_of(claim: &Value) -> u32 {
    gibibytes(
        claim["spec"]["resources"]["requests"]["storage"]
            .as_str()
            .unwrap(),
    )
}

fn gibibytes(text: &str) -> u32 {
    text.trim_end_matches("Gi").parse().unwrap()
}

/// The revision that stands for the live template.
pub(crate) fn update_revision(world: &World) -> Option<String> {
    let live = essence(&world.set["spec"]["template"]);
    let stored = world.revisions.values();
    let same = stored.filter(|revision| essence(&revision["data"]["spec"]["template"]) == live);
    let newest = same.max_by_key(|revision| revision["revision"].as_i64());
    newest.map(|revision| revision["metadata"]["name"].as_str().unwrap().to_owned())
}

/// What these tests vary of a template.
fn essence(template: &Value) -> Value {
    let containers = template["spec"]["containers"].as_array().unwrap();
    let containers: Vec<Value> = containers
        .iter()
        .map(|one| json!([one["image"], one["env"]]))
        .collect();
    json!(containers)
}

pub(crate) fn is_on(pod: &Value, revision: &str) -> bool {
    label(pod, REVISION) == Some(revision)
}

/// Applies one step of a plan under supervision.
pub(crate) fn apply(world: &mut World, step: &Step, previous: &mut Option<String>) -> Result<(), Refused> {
    let write = &step.write;
    assert_guarded(world, write);
    let before = world.clone();
    world.apply(write, previous)?;
    let target = write.target();
    match target.resource {
        ResourceId::CLAIMS => assert_claim(&before, world, write),
        ResourceId::PODS => {
            assert_identity(&before, world, write);
            assert_budget(&before, world, step);
            assert_partition(&before, world, step);
            if is_ordered(&before) {
                assert_order(&before, world, step);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Each write says which object it means, and is about an object of the set, or about one that may become so.
fn assert_guarded(world: &World, write: &Write) {
    let target = write.target();
    match write {
        Write::Create { owner_uid, body, .. } => {
            let controlled = (target.resource != ResourceId::CLAIMS).then_some(SET_UID);
            assert_eq!(owner_uid.as_deref(), controlled, "{write}");
            assert_eq!(controller(&body.render()), controlled, "{write}");
            return;
        }
        Write::Patch { precondition, .. } | Write::Delete { precondition, .. } => {
            assert!(precondition.uid().is_some(), "unguarded: {write}");
            let unused = matches!(precondition, Precondition::Unused(..));
            assert!(!unused, "{write}: no claim of a StatefulSet is deleted by name");
        }
    }
    if target.resource != ResourceId::PODS {
        return;
    }
    let pod = &world.pods[&target.name];
    match write.intent() {
        Intent::ADOPT_POD => {
            let mut ours = pod.clone();
            ours["metadata"]["ownerReferences"] = json!([super::world::owner(true)]);
            assert!(
                controller(pod).is_none() && is_ours(&ours) && !is_terminating(pod),
                "{write}: {pod}"
            );
        }
        Intent::RELEASE_POD => {
            assert!(
                controller(pod) == Some(SET_UID) && !is_ours(pod),
                "{write}: {pod}"
            );
        }
        _ => assert!(is_ours(pod), "{write}: not a pod of the set: {pod}"),
    }
}

/// A new pod has the name of a slot, the labels that say so, and its own claims; none had its name before.
fn assert_identity(before: &World, after: &World, write: &Write) {
    if write.intent() != Intent::CREATE_POD {
        return;
    }
    let name = &write.target().name;
    let slots = slots(before);
    let ordinal = slots.iter().find(|ordinal| name_of(**ordinal) == *name);
    let ordinal = ordinal.unwrap_or_else(|| panic!("{write}: the slots are {slots:?}"));
    let pod = &after.pods[name];
    assert_eq!(label(pod, "statefulset.kubernetes.io/pod-name"), Some(&**name));
    let index = label(pod, "apps.kubernetes.io/pod-index");
    assert_eq!(index, Some(&*ordinal.to_string()), "{write}");
    assert_eq!(pod["spec"]["hostname"], **name);
    assert_eq!(pod["spec"]["subdomain"], after.set["spec"]["serviceName"]);
    assert_eq!(label(pod, "app"), Some("web"));
    assert_eq!(
        mounts(pod).into_iter().collect::<BTreeSet<_>>(),
        wanted_claims(after, name)
    );
    for claim in mounts(pod) {
        let claim = before
            .claims
            .get(&claim)
            .unwrap_or_else(|| panic!("{write}: no claim {claim}"));
        assert!(
            !is_terminating(claim),
            "{write}: the claim is being deleted: {claim}"
        );
        let owners = claim["metadata"]["ownerReferences"]
            .as_array()
            .into_iter()
            .flatten();
        for owner in owners {
            assert_eq!(
                owner["uid"], SET_UID,
                "{write}: the claim is somebody else's: {claim}"
            );
        }
    }
    assert_revision(before, pod, write);
}

/// Names of the claims that a pod of this name has.
fn wanted_claims(world: &World, pod: &str) -> BTreeSet<String> {
    let templates = world.set["spec"]["volumeClaimTemplates"].as_array();
    let templates = templates.into_iter().flatten();
    templates
        .map(|template| format!("{}-{pod}", template["metadata"]["name"].as_str().unwrap()))
        .collect()
}

/// The first slots, as many as the partition counts, get the current revision.
fn assert_revision(before: &World, pod: &Value, write: &Write) {
    let update = update_revision(before).expect("the revision is stored before a pod");
    let current = before.set["status"]["currentRevision"].as_str();
    let current = current.filter(|current| before.revisions.contains_key(*current));
    let place = slots(before)
        .iter()
        .position(|ordinal| name_of(*ordinal) == write.target().name);
    let kept =
        before.set["spec"]["updateStrategy"]["type"] == "RollingUpdate" && place.unwrap() < partition(before);
    let wanted = if kept { current.unwrap_or(&update) } else { &update };
    if is_unordered_update(before) {
        assert!(is_on(pod, &update) || current.is_some_and(|current| is_on(pod, current)));
    } else {
        assert!(is_on(pod, wanted), "{write} is not on {wanted}: {pod}");
    }
}

/// Claims are never deleted; only those of pods that go are given away, and each to its own pod.
fn assert_claim(before: &World, after: &World, write: &Write) {
    let name = &write.target().name;
    assert!(!matches!(write, Write::Delete { .. }), "{write}");
    let claim = &after.claims[name];
    if write.intent() == Intent::CREATE_CLAIM {
        assert!(!before.claims.contains_key(name));
        assert_eq!(controller(claim), None, "{write}");
    }
    if write.intent().as_str() == "resize-claim" {
        assert_resize(before, after, write);
    }
    let slots = slots(before);
    let owners = claim["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten();
    for owner in owners.filter(|owner| owner["kind"] == "Pod") {
        let pod = &before.pods[owner["name"].as_str().unwrap()];
        assert_eq!(owner["uid"], pod["metadata"]["uid"], "{write}: {claim}");
        let wanted = wanted_claims(before, owner["name"].as_str().unwrap());
        assert!(wanted.contains(name), "{write}: given to another pod");
        let was = &before.claims[name]["metadata"]["ownerReferences"];
        let goes = !slots
            .iter()
            .any(|slot| name_of(*slot) == pod["metadata"]["name"].as_str().unwrap());
        assert!(goes || was.to_string().contains(&uid_of(pod)), "{write}: {pod}");
        let policy = &before.set["spec"]["persistentVolumeClaimRetentionPolicy"];
        assert_eq!(policy["whenScaled"], "Delete", "{write}");
    }
}

/// Claims grow, as updates go: above the partition, so many at once, and not while the update is paused.
fn assert_resize(before: &World, after: &World, write: &Write) {
    let name = &write.target().name;
    assert!(
        follows(before) && rolling(before)["paused"] != true,
        "{write}: claims do not follow now"
    );
    assert!(
        size_of(&after.claims[name]) > size_of(&before.claims[name]),
        "{write}: it does not grow"
    );
    let mut users = filled(before);
    let user = users.find(|(ordinal, _)| wanted_claims(before, &name_of(*ordinal)).contains(name));
    let (ordinal, pod) = user.unwrap_or_else(|| panic!("{write}: no pod of the set has it"));
    let place = slots(before).iter().position(|slot| *slot == ordinal).unwrap();
    assert!(
        is_unordered_update(before) || place >= partition(before),
        "{write}: the partition keeps its pod"
    );
    if is_available(before, pod) && is_complete(before, pod) {
        let out = unavailable(after);
        assert!(out <= max_unavailable(before), "{write} leaves {out} unavailable");
    }
}

/// No pod that is to stay is taken out of service beyond the limit.
fn assert_budget(before: &World, after: &World, step: &Step) {
    let name = &step.write.target().name;
    let is_slot = slots(before).iter().any(|slot| name_of(*slot) == *name);
    let was = before.pods.get(name).is_some_and(|pod| is_available(before, pod));
    let is = after.pods.get(name).is_some_and(|pod| is_available(after, pod));
    let intent = step.write.intent();
    let was = was && is_complete(before, &before.pods[name]);
    if is_slot && was && !is && intent != Intent::RELEASE_POD {
        let out = unavailable(after);
        assert!(
            out <= max_unavailable(before),
            "{} ({}) leaves {out} unavailable",
            step.write,
            step.reason
        );
    }
}

/// Updates stop at the partition.
fn assert_partition(before: &World, after: &World, step: &Step) {
    let Some(update) = update_revision(before) else {
        return;
    };
    let name = &step.write.target().name;
    let (Some(pod), Some(changed)) = (before.pods.get(name), after.pods.get(name)) else {
        return;
    };
    let is_old = !is_on(pod, &update) && !is_terminating(pod);
    let moves = is_on(changed, &update) || is_terminating(changed);
    let own_reason = label(pod, SPECIFIED).is_some()
        || is_ended(pod)
        || label(pod, STATE) == Some("PreparingDelete")
        || step.write.intent() == Intent::RELEASE_POD;
    let slots = slots(before);
    let place = slots.iter().position(|ordinal| name_of(*ordinal) == *name);
    let (Some(place), true, true, false) = (place, is_old, moves, own_reason) else {
        return;
    };
    let (write, partition) = (&step.write, partition(before));
    assert!(
        before.set["spec"]["updateStrategy"]["type"] != "OnDelete",
        "{write}: nothing is updated under OnDelete"
    );
    assert!(rolling(before)["paused"] != true, "{write}: the update is paused");
    if is_unordered_update(before) {
        // A pod that is specified, or ended, comes back old where too few others are.
        let goes = |pod: &Value| is_terminating(pod) && label(pod, SPECIFIED).is_none() && !is_ended(pod);
        let done = filled(after).filter(|(_, pod)| is_on(pod, &update) || goes(pod));
        let done = done.count();
        assert!(
            done <= slots.len().saturating_sub(partition),
            "{write}: {done} are done, the partition is {partition}"
        );
    } else {
        assert!(
            place >= partition,
            "{write}: slot {place} of partition {partition}"
        );
    }
}

/// In an ordered set nothing new starts while a pod that is to stay is missing or not available, or any is going;
/// but the lowest of the former is created, or goes if its label asks for it.
fn assert_order(before: &World, after: &World, step: &Step) {
    let write = &step.write;
    let name = &write.target().name;
    let state = |world: &World| label(&world.pods[name], STATE).unwrap_or_default().to_owned();
    let pod = before.pods.get(name);
    // What ended is in nobody's way; what waits at a turn of its life has started before.
    let ended = pod.is_some_and(is_ended);
    let waits = |pod: &Value| {
        matches!(
            label(pod, STATE),
            Some("PreparingDelete" | "PreparingUpdate" | "Updated")
        )
    };
    let is_new = !ended && !pod.is_some_and(waits);
    let starts = match write.intent() {
        Intent::CREATE_POD => true,
        Intent::DELETE_POD => is_new,
        Intent::SET_LIFECYCLE => is_new && matches!(&*state(after), "PreparingUpdate" | "PreparingDelete"),
        Intent::MARK_UNREADY => is_available(before, &before.pods[name]),
        _ => false,
    };
    if !starts {
        return;
    }
    let slots: Vec<String> = slots(before).into_iter().map(name_of).collect();
    let in_service = |name: &&String| {
        before
            .pods
            .get(*name)
            .is_some_and(|pod| is_available(before, pod))
    };
    let lowest = slots.iter().find(|name| !in_service(name));
    if lowest == Some(name) {
        let own_reason = pod.is_none_or(|pod| label(pod, SPECIFIED).is_some());
        assert!(
            own_reason,
            "{write} ({}) starts on a pod that is not available",
            step.reason
        );
        return;
    }
    assert_eq!(
        lowest, None,
        "{write} ({}) starts before that is available",
        step.reason
    );
    let is_slot = |name: &String| slots.contains(name);
    let going = before.pods.iter().find(|(other, pod)| {
        let held = label(pod, STATE) == Some("PreparingDelete");
        // Pods are removed before others are updated.
        let condemned = !is_slot(other) && (is_slot(name) || held);
        *other != name && is_ours(pod) && (is_terminating(pod) || held || condemned)
    });
    assert!(
        going.is_none(),
        "{write} starts while another goes: {:?}",
        going.map(|(name, _)| name)
    );
}

/// Creations of a plan keep within the scale budget. In an ordered set there is one at a time all the same.
pub(crate) fn assert_scale_budget(world: &World, plan: &Plan) {
    let limit = &world.set["spec"]["scaleStrategy"]["maxUnavailable"];
    if limit.is_null() || is_ordered(world) {
        return;
    }
    let limit = resolved(limit, replicas(world));
    let charged =
        filled(world).filter(|(_, pod)| !is_available(world, pod) && !is_ended(pod) && !is_terminating(pod));
    let charged = charged.count();
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    let created = steps
        .filter(|step| step.write.intent() == Intent::CREATE_POD)
        .count();
    assert!(
        created == 0 || created + charged <= limit,
        "{created} created, {charged} not available, the scale budget is {limit}"
    );
}

/// What must hold at any time: a live pod of a slot keeps its claims.
pub(crate) fn assert_claims_kept(world: &World) {
    let alive: BTreeSet<String> = world.pods.values().map(uid_of).collect();
    for (_, pod) in filled(world).filter(|(_, pod)| !is_terminating(pod)) {
        for name in mounts(pod) {
            let Some(claim) = world.claims.get(&name) else {
                continue;
            };
            let owners = claim["metadata"]["ownerReferences"].as_array();
            let gone =
                |owner: &Value| owner["kind"] == "Pod" && !alive.contains(owner["uid"].as_str().unwrap());
            let lost = owners.is_some_and(|owners| !owners.is_empty() && owners.iter().all(gone));
            assert!(!lost, "{name} is collected under a live pod: {claim}");
        }
    }
}
