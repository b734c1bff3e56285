//! The writes of workloads and of their pods.

use std::sync::Arc;

use kruise_api::{
    names::uniteddeployment::{RESERVED_POD, SUBSET_PATCH, SUBSET_REVISION},
    uniteddeployment::{Child, workload_template},
};
use kruise_plan_kit::{
    Batching, Intent, ObjectWrites, Owner, Part, Patch, Phase, Precondition, ResourceId, Step, Write,
    injected::is_injected, instance, put,
};
use kruise_views::PodView;
use serde_json::{Value, json};

use crate::{
    change, events,
    pods::{is_of, is_ready},
    resource,
    revision::Revisions,
    scheduling,
    snapshot::{Snapshot, Workload},
    workload::{Parts, has_share, patch_of, patch_text, served, share_of},
};

/// A subset gets its workload.
const CREATE_SUBSET: Intent = Intent::of_scale("create-subset");
/// The workload of a subset gets what its template, its share and its partition say.
const UPDATE_SUBSET: Intent = Intent::of_update("update-subset");
/// A workload without a controller becomes that of a subset.
const ADOPT_SUBSET: Intent = Intent::of_scale("adopt-subset");
/// A workload is deleted: its subset has left the topology, or the template is of another kind.
const DELETE_SUBSET: Intent = Intent::of_scale("delete-subset");
/// A pod's label says whether it is reserved.
const RESERVE_POD: Intent = Intent::untold("reserve-pod");

/// Longest part of a name before what is drawn, as API servers cut it.
const LONGEST_PREFIX: usize = 58;

/// The name of a new workload, and what precedes the part that is drawn.
fn name(snapshot: &Snapshot<'_>, subset: &str, child: Child) -> (String, String) {
    let metadata = &snapshot.united.metadata;
    let whole = format!("{}-{subset}-", metadata.name);
    let mut prefix = whole.clone();
    // Names that the webhook has not seen may have letters of several bytes.
    prefix.truncate(prefix.floor_char_boundary(LONGEST_PREFIX));
    let is_ours = |name: &str| {
        let drawn = name.strip_prefix(&*prefix);
        drawn.is_some_and(|drawn| drawn.len() == 5 && !drawn.contains('-'))
    };
    let memory = snapshot.memory;
    // The request to create it may still arrive.
    let mut late = memory.late.iter();
    let late = late.find(|target| target.resource == resource(child) && is_ours(&target.name));
    if let Some(late) = late {
        return (late.name.clone(), whole);
    }
    let taken = memory.taken_names.iter().map(String::as_str);
    let present = snapshot.workloads.iter().map(|workload| &*workload.view.name);
    let mut used: Vec<&str> = taken
        .chain(present)
        .filter_map(|name| name.strip_prefix(&*prefix))
        .collect();
    used.sort_unstable();
    let key = format!("{}/{subset}", metadata.resource_version);
    let drawn = instance::ids(&metadata.uid, &key, &used, 1);
    (format!("{prefix}{}", drawn.concat()), whole)
}

/// Creates the workload of a subset.
pub(crate) fn create(
    snapshot: &Snapshot<'_>,
    owner: &Owner<'_>,
    parts: &Parts<'_>,
) -> Result<ObjectWrites, String> {
    let mut body = parts.build()?;
    let (name, prefix) = name(snapshot, &parts.subset.name, parts.child);
    for (member, value) in [
        ("name", json!(name)),
        ("generateName", json!(prefix)),
        ("namespace", json!(owner.namespace)),
        ("ownerReferences", json!([owner.reference()])),
    ] {
        put(&mut body, &["metadata", member], value);
    }
    let write = owner.create(CREATE_SUBSET, resource(parts.child), &*name, body);
    let reason = format!(
        "subset {} is to have {} pods",
        parts.subset.name, parts.share.replicas
    );
    let mut step = Step::new(write, reason);
    step.failed = Some(events::failed("creating", parts.child, &name));
    Ok(batched(Phase::Pods, step))
}

fn batched(phase: Phase, step: Step) -> ObjectWrites {
    ObjectWrites {
        batching: Batching::SlowStart,
        ..ObjectWrites::new(phase, vec![step])
    }
}

/// Changes the workload of a subset, if it is not what it is to be.
pub(crate) fn update(
    snapshot: &Snapshot<'_>,
    owner: &Owner<'_>,
    (workload, revisions): (&Workload, &Revisions),
    parts: &Parts<'_>,
) -> Result<Option<ObjectWrites>, String> {
    let (child, view) = (parts.child, &workload.view);
    let reserves = snapshot.united.spec.topology.schedule_strategy.reserves() || has_reserved(workload);
    let desired = parts.build()?;
    let revision = view
        .labels
        .get(SUBSET_REVISION)
        .map(String::as_str)
        .unwrap_or_default();
    let patch = view
        .object
        .pointer("/metadata/annotations")
        .and_then(|all| all.get(SUBSET_PATCH));
    let patch = patch.and_then(Value::as_str);
    let patch_stays = patch.is_some_and(|text| {
        text == patch_text(parts.patch)
            || (patch_of(text).is_some() && patch_of(text).as_ref() == parts.patch)
    });
    let mut reasons = Vec::new();
    if revision != parts.revision {
        reasons.push(format!("it is of revision {revision}"));
    }
    if !patch_stays {
        reasons.push("the patch of its subset changed".to_owned());
    }
    if !has_share(child, &desired, &view.object, reserves) {
        let share = parts.share;
        reasons.push(format!(
            "it is to have {} pods, {} of them at older revisions",
            share.replicas, share.partition
        ));
    }
    if reasons.is_empty() {
        return Ok(None);
    }
    let before = before(workload, revisions, parts, patch.unwrap_or_default(), reserves);
    let [mut before, mut desired] = [
        served(child, before, parts.api_version)?,
        served(child, desired, parts.api_version)?,
    ]
    .map(owned);
    if parts.keeps_claims() {
        leave_out_default(&mut before, &view.object);
        leave_out_default(&mut desired, &view.object);
    }
    if matches!(child, Child::Deployment | Child::StatefulSet) {
        settle_strategy(child, &mut before, &desired);
        settle_account(&mut before, &mut desired, &view.object);
    }
    if is_injected("TemplateOfBefore") {
        for object in [&mut before, &mut desired] {
            if let Some(Value::Object(spec)) = object.get_mut("spec") {
                spec.remove("template");
            }
        }
    }
    let Some(patch) = change::patch(&before, &desired, &view.object) else {
        return Ok(None);
    };
    let write = Write::Patch {
        intent: UPDATE_SUBSET,
        target: owner.target(resource(child), &*view.name),
        part: Part::Main,
        patch: Patch::Merge(patch),
        precondition: Precondition::Uid(view.uid.to_string()),
    };
    let mut step = Step::new(write, reasons.join(", "));
    step.failed = Some(events::failed("updating", child, &view.name));
    Ok(Some(batched(Phase::Pods, step)))
}

/// Leaves out that claims are kept where the workload says it by saying nothing.
fn leave_out_default(object: &mut Value, actual: &Value) {
    let says_nothing = actual.pointer("/spec/scaleStrategy/disablePVCReuse").is_none();
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(Value::Object(scale)) = spec.get_mut("scaleStrategy").filter(|_| says_nothing) {
        scale.remove("disablePVCReuse");
        if scale.is_empty() {
            spec.remove("scaleStrategy");
        }
    }
}

/// Are some of its pods still reserved? Then its `maxUnavailable` may be ours, although pods are not reserved any more.
fn has_reserved(workload: &Workload) -> bool {
    let mut pods = workload.pods.iter();
    pods.any(|pod| pod.labels.get(RESERVED_POD) == Some(scheduling::text(true)))
}

/// API servers fill in `rollingUpdate`, and refuse it beside another type.
fn settle_strategy(child: Child, before: &mut Value, desired: &Value) {
    let strategy = strategy_of(child);
    let of_desired = |member: &str| desired.pointer(&format!("/spec/{strategy}/{member}"));
    let kind = of_desired("type").and_then(Value::as_str);
    let rolls = matches!(kind, None | Some("" | "RollingUpdate"));
    if !rolls && of_desired("rollingUpdate").is_none() {
        put(before, &["spec", strategy, "rollingUpdate"], json!({}));
    }
}

/// API servers keep the name of the service account in two members of a pod, each of which is restored from the other.
fn settle_account(before: &mut Value, desired: &mut Value, actual: &Value) {
    const MEMBERS: [&str; 2] = ["serviceAccountName", "serviceAccount"];
    let of = |object: &Value| {
        let pod = object.pointer("/spec/template/spec");
        let names = MEMBERS.iter().map(|member| pod?.get(*member));
        names.flatten().next().cloned()
    };
    let (earlier, wanted) = (of(before), of(desired));
    for member in MEMBERS {
        let path = ["spec", "template", "spec", member];
        let is_there = actual.pointer(&format!("/{}", path.join("/"))).is_some();
        match (&earlier, &wanted) {
            (Some(earlier), None) if is_there => put(before, &path, earlier.clone()),
            (_, Some(wanted)) if is_there => put(desired, &path, wanted.clone()),
            _ => {}
        }
    }
}

/// Where the strategy of a workload is.
fn strategy_of(child: Child) -> &'static str {
    match child {
        Child::Deployment => "strategy",
        _ => "updateStrategy",
    }
}

/// What a UnitedDeployment sets in a workload that exists. Selectors cannot be changed.
fn owned(mut object: Value) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.retain(|key, _| key == "metadata" || key == "spec");
    }
    if let Some(Value::Object(spec)) = object.get_mut("spec") {
        spec.remove("selector");
    }
    object
}

/// What was set in a workload when it was last written. Where its revision is gone, that is all of its pod template.
fn before(
    workload: &Workload,
    revisions: &Revisions,
    parts: &Parts<'_>,
    patch: &str,
    reserves: bool,
) -> Value {
    let object = &workload.view.object;
    let revision = workload
        .view
        .labels
        .get(SUBSET_REVISION)
        .map(String::as_str)
        .unwrap_or_default();
    let stored = revisions.template(revision);
    let stored = stored
        .as_ref()
        .and_then(workload_template)
        .filter(|(child, _)| *child == parts.child);
    let patch = patch_of(patch);
    let built = stored.and_then(|(_, template)| {
        let earlier = Parts {
            template,
            revision,
            patch: patch.as_ref(),
            share: share_of(parts.child, object),
            ..*parts
        };
        earlier.build().ok()
    });
    let mut before = built.unwrap_or_else(|| {
        let pods = object.pointer("/spec/template").cloned().unwrap_or_default();
        json!({"apiVersion": parts.child.api_version(), "kind": parts.child.kind(), "spec": {"template": pods}})
    });
    let strategy = strategy_of(parts.child);
    let max = format!("/spec/{strategy}/rollingUpdate/maxUnavailable");
    if reserves
        && before.pointer(&max).is_none()
        && matches!(parts.child, Child::Deployment | Child::CloneSet)
    {
        put(
            &mut before,
            &["spec", strategy, "rollingUpdate", "maxUnavailable"],
            0.into(),
        );
    }
    before
}

/// Makes the UnitedDeployment the controller of a workload.
pub(crate) fn adopt(owner: &Owner<'_>, workload: &Workload) -> ObjectWrites {
    let view = &workload.view;
    let owners = view
        .object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    let mut owners = owners.cloned().unwrap_or_default();
    owners.push(owner.reference());
    let write = Write::Patch {
        intent: ADOPT_SUBSET,
        target: owner.target(resource(workload.child), &*view.name),
        part: Part::Main,
        patch: Patch::Merge(json!({"metadata": {"ownerReferences": owners}})),
        precondition: Precondition::Owned {
            uid: view.uid.to_string(),
            version: view.resource_version.to_string(),
            owner: owner.target(kruise_api::uniteddeployment::RESOURCE, owner.name),
            owner_uid: owner.uid.to_owned(),
        },
    };
    let mut step = Step::new(write, "it has the labels of a subset and no controller");
    step.failed = Some(events::failed("adopting", workload.child, &view.name));
    ObjectWrites::new(Phase::Pods, vec![step])
}

/// Deletes a workload, and its pods after it.
pub(crate) fn delete(owner: &Owner<'_>, workload: &Workload, reason: &str) -> ObjectWrites {
    let write = Write::Delete {
        intent: DELETE_SUBSET,
        target: owner.target(resource(workload.child), &*workload.view.name),
        precondition: Precondition::Uid(workload.view.uid.to_string()),
    };
    let mut step = Step::new(write, reason);
    step.failed = Some(events::failed("deleting", workload.child, &workload.view.name));
    ObjectWrites::new(Phase::Cleanup, vec![step])
}

/// Labels a pod as reserved, or not.
pub(crate) fn reserve(owner: &Owner<'_>, pod: &Arc<PodView>, is_reserved: bool) -> ObjectWrites {
    let write = Write::Patch {
        intent: RESERVE_POD,
        target: owner.target(ResourceId::PODS, &*pod.name),
        part: Part::Main,
        patch: Patch::Merge(json!({"metadata": {"labels": {RESERVED_POD: scheduling::text(is_reserved)}}})),
        precondition: Precondition::Uid(pod.uid.to_string()),
    };
    let reason = if is_reserved {
        "it cannot be scheduled, and another pod runs in its place"
    } else {
        "it counts as one of the replicas"
    };
    ObjectWrites::alone(Phase::Pods, write, reason)
}

/// Deletes pods of a StatefulSet that it cannot update: they are of an older revision and not Ready, and the
/// rolling update waits for them.
pub(crate) fn unblock(owner: &Owner<'_>, workload: &Workload, parts: &Parts<'_>) -> Vec<ObjectWrites> {
    let object = &workload.view.object;
    let is_current = workload
        .view
        .labels
        .get(SUBSET_REVISION)
        .is_some_and(|have| have == parts.revision);
    let strategy = object
        .pointer("/spec/updateStrategy/type")
        .and_then(Value::as_str);
    if parts.child != Child::StatefulSet || !is_current || strategy == Some("OnDelete") {
        return Vec::new();
    }
    let start = object
        .pointer("/spec/ordinals/start")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    // The workload may not have the wanted partition yet.
    let stored = share_of(parts.child, object).partition;
    let first = start.saturating_add(parts.share.partition.max(stored).into());
    let is_stuck = |pod: &&Arc<PodView>| {
        let ordinal = pod
            .name
            .rsplit_once('-')
            .and_then(|(_, ordinal)| ordinal.parse::<i64>().ok());
        pod.is_active()
            && ordinal.is_some_and(|ordinal| ordinal >= first)
            && !is_of(pod, parts.revision)
            && !is_ready(pod)
    };
    let delete = |pod: &Arc<PodView>| {
        let write = Write::Delete {
            intent: Intent::DELETE_POD,
            target: owner.target(ResourceId::PODS, &*pod.name),
            // Not if it has changed since: it may be Ready by now.
            precondition: Precondition::UidAndVersion(pod.uid.to_string(), pod.resource_version.to_string()),
        };
        let reason = "it is of an older revision and not Ready, and the rolling update waits for it";
        ObjectWrites::alone(Phase::Cleanup, write, reason)
    };
    workload.pods.iter().filter(is_stuck).map(delete).collect()
}
