//! The state that must be reached after the last edit and the last fault.

use super::super::start::{DAEMONSETS, HISTORY};
use super::known::{continues, is_available, is_ready, runs};
use super::spec::Spec;
use crate::rules::prelude::*;
use crate::rules::settled::{history, names, no_failure, pods_of, settled_on};
use crate::subjects::nodes::node_of;

/// A node that is to have a pod, and its pod.
struct Place<'a> {
    node: &'a Object,
    pod: &'a Object,
}

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror, now: Timestamp) -> Result<(), String> {
    let set = mirror.only(DAEMONSETS).ok_or("there is no set")?;
    let spec = Spec::of(set);
    let pods = pods_of(set, mirror)?;
    let named = |name: &str| mirror.of(NODES).named(name);
    wrong!(some pod in pods.iter().find(|pod| node_of(pod).and_then(named).is_none())
        => "pod {} is for a node that is gone", pod.name);
    let (places, strangers) = divide(&spec, &pods, mirror)?;
    let desired = mirror.of(NODES).now();
    let desired = desired.filter(|node| runs(spec.template, node)).count() as i64;
    let hash = spec.hash(mirror);
    let updated = places
        .iter()
        .filter(|one| one.pod.label(REVISION) == hash)
        .count() as i64;
    let empty = desired - places.len() as i64;
    wrong!(empty > 0 && updated < desired - spec.partition(desired)
        => "{empty} nodes have no pod, though the partition allows {}", desired - spec.partition(desired));
    for Place { pod, .. } in &places {
        is_settled(pod, &spec, mirror, now)?;
    }
    rollout(&spec, &places, &strangers, desired, hash)?;
    status(set, &spec, &places, &strangers, desired, hash, now)?;
    let is_of = |label: &str| label == hash || pods.iter().any(|pod| pod.label(REVISION) == label);
    history(set, HISTORY, mirror, |one| is_of(one.label(REVISION)))
}

/// Nodes that are to have a pod, with it, and pods on other nodes that may stay there.
fn divide<'a>(
    spec: &Spec<'_>,
    pods: &[&'a Arc<Object>],
    mirror: &'a Mirror,
) -> Result<(Vec<Place<'a>>, Vec<&'a Arc<Object>>), String> {
    let mut places = Vec::new();
    let mut strangers = Vec::new();
    for node in mirror.of(NODES).now() {
        let on = pods.iter().filter(|pod| node_of(pod) == Some(&*node.name));
        let on: Vec<&Arc<Object>> = on.copied().collect();
        let may_run = runs(spec.template, node);
        let most = usize::from(continues(spec.template, node));
        match on.as_slice() {
            [pod] if may_run => places.push(Place { node, pod }),
            on if may_run && !is_kept_empty(on, spec) => {
                return Err(format!("node {} has {} pods", node.name, on.len()));
            }
            on if on.len() > most => {
                return Err(format!(
                    "node {} may run {most} pods, and has {}",
                    node.name,
                    on.len()
                ));
            }
            on => strangers.extend(on.iter().copied()),
        }
    }
    Ok((places, strangers))
}

/// May a node be without a pod because the partition limits first creations?
fn is_kept_empty(on: &[&Arc<Object>], spec: &Spec<'_>) -> bool {
    on.is_empty() && spec.partitioned_scaling && !spec.on_delete
}

fn is_settled(pod: &Object, spec: &Spec<'_>, mirror: &Mirror, now: Timestamp) -> Result<(), String> {
    let name = &pod.name;
    wrong!(!is_available(pod, spec.min_ready_seconds, now) || !pod.have_started(now)
        => "pod {name} is not available: {}", pod.status()["conditions"]);
    let mut revisions = mirror.of(REVISIONS).now();
    let label = pod.label(REVISION);
    let revision = revisions.find(|one| one.owner() == pod.owner() && one.label(REVISION) == label);
    let revision = revision.ok_or_else(|| format!("pod {name}: revision {label} is gone"))?;
    for gate in items(&pod.spec()["readinessGates"]) {
        let gate = text(&gate["conditionType"]);
        expect(format_args!("pod {name}: {gate}"), pod.state(gate), "True")?;
    }
    settled_on(pod, revision)
}

/// Nodes are updated as far as partition and selector allow.
fn rollout(
    spec: &Spec<'_>,
    places: &[Place<'_>],
    strangers: &[&Arc<Object>],
    desired: i64,
    hash: &str,
) -> Result<(), String> {
    if !spec.updates() {
        return Ok(());
    }
    let is_old = |pod: &Object| pod.label(REVISION) != hash;
    let updated = places.iter().filter(|one| !is_old(one.pod)).count() as i64;
    let mut left = places
        .iter()
        .filter(|one| is_old(one.pod) && spec.selects(one.node));
    // Old pods of nodes that may not run one have a place in the order, too.
    let in_the_way = strangers.iter().filter(|pod| is_old(pod)).count() as i64;
    let due = desired - spec.partition(desired) - in_the_way;
    wrong!(some one in left.next().filter(|_| updated < due)
        => "{updated} nodes of {desired} are updated, {due} are to be; {} of {} is on {}, not {hash}; selector: {}",
            one.pod.name, one.node.name, one.pod.label(REVISION), spec.has_selector());
    Ok(())
}

/// What the status counts.
fn status(
    set: &Object,
    spec: &Spec<'_>,
    places: &[Place<'_>],
    strangers: &[&Arc<Object>],
    desired: i64,
    hash: &str,
    now: Timestamp,
) -> Result<(), String> {
    let status = set.status();
    let count = |counts: &dyn Fn(&Object) -> bool| places.iter().filter(|one| counts(one.pod)).count() as i64;
    let available =
        count(&|pod| is_available(pod, spec.min_ready_seconds, now) && pod.state(GATE) != "False");
    let new = count(&|pod| pod.label(REVISION) == hash);
    counts!(status => "observedGeneration": number(set.generation()), "desiredNumberScheduled": desired,
        "currentNumberScheduled": places.len() as i64, "numberMisscheduled": strangers.len() as i64,
        "numberReady": count(&is_ready), "numberAvailable": available, "numberUnavailable": desired - available,
        "updatedNumberScheduled": new)?;
    names(status, "updateRevision", hash)?;
    no_failure(status, |kind| kind.starts_with("Failed"))
}
