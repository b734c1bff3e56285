//! The state that must be reached after the last edit and the last fault.

use super::super::start::{HISTORY, STATEFULSETS};
use super::claims::{capacity, gibibytes, requests};
use super::known::{is_selected, ordinal, owner_of_kind};
use super::spec::{Gates, Spec};
use crate::rules::pod_writes::claims::mounts;
use crate::rules::prelude::*;
use crate::rules::settled::settled;

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror, now: Timestamp, gates: Gates) -> Result<(), String> {
    let set = mirror.of(STATEFULSETS).now().next().ok_or("there is no set")?;
    wrong!(set.is_going() => "the set is still being deleted");
    let spec = Spec::of(set, gates);
    let mut pods: Vec<&Arc<Object>> = mirror
        .of(PODS)
        .now()
        .filter(|pod| pod.owner() == &*set.uid)
        .collect();
    wrong!(some pod in pods.iter().find(|pod| pod.is_going()) => "pod {} is still being deleted", pod.name);
    wrong!(some pod in pods.iter().find(|pod| !is_selected(pod))
        => "pod {} left the selector and is still owned", pod.name);
    pods.sort_by_key(|pod| ordinal(&pod.name));
    let ordinals: Vec<i64> = pods.iter().filter_map(|pod| ordinal(&pod.name)).collect();
    expect("ordinals of the pods", &ordinals, &spec.slots)?;
    let revision = spec.update_revision(mirror);
    for (rank, pod) in (0..).zip(&pods) {
        let is_updated = pod.label(REVISION) == revision;
        wrong!(!spec.unordered && !spec.on_delete && rank >= spec.partition && !is_updated
            => "pod {} is on {}, not {revision}", pod.name, pod.label(REVISION));
        // One that somebody else made, and that the partition keeps, has none.
        if !pod.label(REVISION).is_empty() {
            settled(pod, spec.min_ready_seconds, mirror, now)?;
        }
        expect(
            format_args!("pod {}: its name in its labels", pod.name),
            pod.label("statefulset.kubernetes.io/pod-name"),
            &pod.name,
        )?;
        claims(pod, rank, &spec, set, mirror)?;
    }
    let updated = pods.iter().filter(|pod| pod.label(REVISION) == revision).count() as i64;
    wrong!(!spec.on_delete && updated < spec.replicas - spec.partition
        => "{updated} pods are updated, partition {}", spec.partition);
    status(set, &spec, revision, &pods, now)?;
    volume_claims(set, &spec, &pods, mirror)?;
    history(set, &pods, mirror)
}

/// A pod that stays has its claims, and they have the owners that the policy says. One that somebody else made, and that
/// the partition keeps, has none.
fn claims(pod: &Object, rank: i64, spec: &Spec<'_>, set: &Object, mirror: &Mirror) -> Result<(), String> {
    if pod.label(REVISION).is_empty() {
        return Ok(());
    }
    for template in spec.claims {
        let name = format!("{}-{}", text(&template["metadata"]["name"]), pod.name);
        wrong!(!mounts(pod).any(|mounted| mounted == name) => "pod {} does not mount {name}", pod.name);
        let claim = mirror.of(CLAIMS).named(&name);
        let claim = claim.ok_or_else(|| format!("pod {} has no claim {name}", pod.name))?;
        if claim.is_going() {
            went_with_an_earlier_set(claim, set)?;
            continue;
        }
        let owner = spec.deletes_all.then_some(&*set.uid);
        expect(
            format_args!("{name}: owning set"),
            owner_of_kind(claim, "StatefulSet"),
            owner,
        )?;
        expect(
            format_args!("{name}: owning pod"),
            owner_of_kind(claim, "Pod"),
            None,
        )?;
        has_grown(claim, template, rank, spec)?;
    }
    Ok(())
}

/// A claim goes while its pod stays for one reason only: the request that named a set as its owner was on its way while
/// that set was deleted and its dependents became orphans.
fn went_with_an_earlier_set(claim: &Object, set: &Object) -> Result<(), String> {
    match owner_of_kind(claim, "StatefulSet") {
        Some(uid) if uid != &*set.uid => Ok(()),
        owner => Err(format!("claim {} goes, owning set {owner:?}", claim.name)),
    }
}

/// Does a claim wait until its pod starts anew?
fn waits_for_start(claim: &Object) -> bool {
    claim.state("FileSystemResizePending") == "True"
}

/// A claim of a pod that is updated has grown as its template says, where claims grow.
fn has_grown(claim: &Object, template: &Value, rank: i64, spec: &Spec<'_>) -> Result<(), String> {
    let is_due =
        spec.resizes && spec.updates() && (rank >= spec.partition && !spec.unordered || spec.partition == 0);
    let wanted = gibibytes(&template["spec"]);
    wrong!(is_due && requests(claim) < wanted
        => "claim {} asks for {:?} Gi, not {wanted:?}", claim.name, requests(claim));
    wrong!(is_due && capacity(claim) < requests(claim) && !waits_for_start(claim)
        => "claim {} has {:?} Gi of {:?}", claim.name, capacity(claim), requests(claim));
    Ok(())
}

/// The numbers that a status reports of available pods.
fn status(
    set: &Object,
    spec: &Spec<'_>,
    revision: &str,
    pods: &[&Arc<Object>],
    now: Timestamp,
) -> Result<(), String> {
    let status = &set.value()["status"];
    let all = spec.replicas;
    let is_of = |revision: &str| pods.iter().filter(|pod| pod.label(REVISION) == revision).count() as i64;
    let updated = is_of(revision);
    let available = pods
        .iter()
        .filter(|pod| pod.is_available(spec.min_ready_seconds, now))
        .count() as i64;
    let is_complete = updated == all && available == all && !spec.on_delete;
    let current = text(&status["currentRevision"]);
    let generation = number(&set.value()["metadata"]["generation"]);
    for (name, wanted) in [
        ("observedGeneration", generation),
        ("replicas", all),
        ("readyReplicas", all),
        ("availableReplicas", all),
        ("currentReplicas", is_of(current)),
        ("updatedReplicas", updated),
        ("updatedReadyReplicas", updated),
        ("updatedAvailableReplicas", updated),
    ] {
        expect(format_args!("status.{name}"), number(&status[name]), wanted)?;
    }
    expect(
        "status.updateRevision",
        status["updateRevision"].as_str(),
        Some(revision),
    )?;
    expect(
        "status.labelSelector",
        status["labelSelector"].as_str(),
        Some("app=web"),
    )?;
    wrong!(status["collisionCount"].as_i64().is_none() => "status.collisionCount is absent");
    if is_complete {
        expect("status.currentRevision", current, revision)?;
    }
    let conditions = items(&status["conditions"]);
    let is_failure = |kind: &str| match kind {
        "FailedCreatePod" | "FailedUpdatePod" => true,
        // Claims that wait for a start of their pods are told there.
        "Stalled" => !spec.resizes,
        _ => false,
    };
    let mut failed =
        conditions.filter(|one| one["status"] == "True" && one["type"].as_str().is_some_and(is_failure));
    match failed.next() {
        Some(condition) => Err(format!("status reports a failure that is over: {condition}")),
        None => Ok(()),
    }
}

/// `status.volumeClaims`: of each claim template, how many pods have a claim as it says, and how many of these got it.
fn volume_claims(
    set: &Object,
    spec: &Spec<'_>,
    pods: &[&Arc<Object>],
    mirror: &Mirror,
) -> Result<(), String> {
    let reported = set.value()["status"]["volumeClaims"].as_array();
    let reported = reported.map(Vec::as_slice).unwrap_or_default();
    expect("status.volumeClaims", reported.len(), spec.claims.len())?;
    for (template, one) in spec.claims.iter().zip(reported) {
        let name = text(&template["metadata"]["name"]);
        expect(
            "status.volumeClaims: name",
            one["volumeClaimName"].as_str(),
            Some(name),
        )?;
        let wanted = gibibytes(&template["spec"]);
        let claims = pods.iter().filter_map(|pod| {
            let claim = mirror.of(CLAIMS).named(&format!("{name}-{}", pod.name))?;
            (!claim.is_going() && requests(claim) >= wanted).then_some(claim)
        });
        let has_it = |claim: &&Arc<Object>| capacity(claim) >= requests(claim);
        let compatible = claims.clone().count() as i64;
        let ready = claims.filter(has_it).count() as i64;
        for (member, wanted) in [
            ("compatibleReplicas", compatible),
            ("compatibleReadyReplicas", ready),
        ] {
            expect(
                format_args!("status.volumeClaims: {member}"),
                one[member].as_i64(),
                Some(wanted),
            )?;
        }
    }
    Ok(())
}

/// Not more revisions than the history may have, but for those in use.
fn history(set: &Object, pods: &[&Arc<Object>], mirror: &Mirror) -> Result<(), String> {
    let status = &set.value()["status"];
    let in_use = |name: &str| {
        status["currentRevision"] == *name
            || status["updateRevision"] == *name
            || pods.iter().any(|pod| pod.label(REVISION) == name)
    };
    let revisions = mirror.of(REVISIONS).now().filter(|one| one.owner() == &*set.uid);
    let unused = revisions.filter(|one| !in_use(&one.name)).count() as i64;
    wrong!(unused > HISTORY => "{unused} revisions that nothing uses, {HISTORY} are kept");
    Ok(())
}
