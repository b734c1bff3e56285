//! The state that must be reached after the last edit and the last fault.

use super::super::start::{HISTORY, STATEFULSETS};
use super::claims::{capacity, gibibytes, requests};
use super::known::{ordinal, owner_of_kind};
use super::spec::{Gates, Spec};
use crate::rules::pod_writes::claims::mounts;
use crate::rules::prelude::*;
use crate::rules::settled::{history, names, no_failure, pods_of, replicas, settled};

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror, now: Timestamp, gates: Gates) -> Result<(), String> {
    let set = mirror.only(STATEFULSETS).ok_or("there is no set")?;
    wrong!(set.is_going() => "the set is still being deleted");
    let spec = Spec::of(set, gates);
    let mut pods = pods_of(set, mirror)?;
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
        let name = pod.label("statefulset.kubernetes.io/pod-name");
        expect(
            format_args!("pod {}: its name in its labels", pod.name),
            name,
            &*pod.name,
        )?;
        claims(pod, rank, &spec, set, mirror)?;
    }
    let updated = pods.iter().filter(|pod| pod.label(REVISION) == revision).count() as i64;
    wrong!(!spec.on_delete && updated < spec.replicas - spec.partition
        => "{updated} pods are updated, partition {}", spec.partition);
    status(set, &spec, revision, &pods, now)?;
    volume_claims(set, &spec, &pods, mirror)?;
    let names_it =
        |name: &str| set.status()["currentRevision"] == *name || set.status()["updateRevision"] == *name;
    let is_used =
        |one: &Object| names_it(&one.name) || pods.iter().any(|pod| pod.label(REVISION) == &*one.name);
    history(set, HISTORY, mirror, is_used)
}

/// A pod that stays has its claims, and they have the owners that the policy says. One that somebody else made, and
/// that the partition keeps, has none.
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
        let owners = ["StatefulSet", "Pod"].map(|kind| owner_of_kind(claim, kind));
        expect(format_args!("{name}: owning set and pod"), owners, [owner, None])?;
        has_grown(claim, template, rank, spec)?;
    }
    Ok(())
}

/// A claim goes while its pod stays for one reason only: the request that named a set as its owner was on its way while
/// that set was deleted and its dependents became orphans.
fn went_with_an_earlier_set(claim: &Object, set: &Object) -> Result<(), String> {
    let owner = owner_of_kind(claim, "StatefulSet");
    wrong!(owner.is_none_or(|uid| uid == &*set.uid) => "claim {} goes, owning set {owner:?}", claim.name);
    Ok(())
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
    let status = set.status();
    let all = spec.replicas;
    let is_of = |revision: &str| pods.iter().filter(|pod| pod.label(REVISION) == revision).count() as i64;
    let updated = is_of(revision);
    let available = pods
        .iter()
        .filter(|pod| pod.is_available(spec.min_ready_seconds, now))
        .count() as i64;
    let is_complete = updated == all && available == all && !spec.on_delete;
    let current = text(&status["currentRevision"]);
    replicas(set, all, updated)?;
    counts!(status => "currentReplicas": is_of(current))?;
    names(status, "updateRevision", revision)?;
    names(status, "labelSelector", "app=web")?;
    wrong!(status["collisionCount"].as_i64().is_none() => "status.collisionCount is absent");
    if is_complete {
        names(status, "currentRevision", revision)?;
    }
    no_failure(status, |kind| match kind {
        "FailedCreatePod" | "FailedUpdatePod" => true,
        // Claims that wait for a start of their pods are told there.
        "Stalled" => !spec.resizes,
        _ => false,
    })
}

/// `status.volumeClaims`: of each claim template, how many pods have a claim as it says, and how many of these got it.
fn volume_claims(
    set: &Object,
    spec: &Spec<'_>,
    pods: &[&Arc<Object>],
    mirror: &Mirror,
) -> Result<(), String> {
    let reported = list(&set.status()["volumeClaims"]);
    expect("status.volumeClaims", reported.len(), spec.claims.len())?;
    for (template, one) in spec.claims.iter().zip(reported) {
        let name = text(&template["metadata"]["name"]);
        names(one, "volumeClaimName", name)?;
        let wanted = gibibytes(&template["spec"]);
        let claims = pods.iter().filter_map(|pod| {
            let claim = mirror.of(CLAIMS).named(&format!("{name}-{}", pod.name))?;
            (!claim.is_going() && requests(claim) >= wanted).then_some(claim)
        });
        let has_it = |claim: &&Arc<Object>| capacity(claim) >= requests(claim);
        let compatible = claims.clone().count() as i64;
        let ready = claims.filter(has_it).count() as i64;
        counts!(one => "compatibleReplicas": compatible, "compatibleReadyReplicas": ready)?;
    }
    Ok(())
}
