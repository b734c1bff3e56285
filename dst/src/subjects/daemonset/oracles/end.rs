//! The state that must be reached after the last edit and the last fault.

use super::super::start::{DAEMONSETS, HISTORY};
use super::fit;
use super::known::{is_available, is_ready, is_selected};
use super::spec::Spec;
use crate::rules::prelude::*;
use crate::rules::settled::settled_on;
use crate::subjects::nodes::node_of;

/// A node that is to have a pod, and its pod.
struct Place<'a> {
    node: &'a Object,
    pod: &'a Object,
}

/// What is not yet as it should be.
pub fn unfinished(mirror: &Mirror, now: Timestamp) -> Result<(), String> {
    let set = mirror.of(DAEMONSETS).now().next().ok_or("there is no set")?;
    let spec = Spec::of(set);
    let pods: Vec<&Arc<Object>> = mirror
        .of(PODS)
        .now()
        .filter(|pod| pod.owner() == &*set.uid)
        .collect();
    wrong!(some pod in pods.iter().find(|pod| pod.is_going()) => "pod {} is still being deleted", pod.name);
    wrong!(some pod in pods.iter().find(|pod| !is_selected(pod))
        => "pod {} left the selector and is still owned", pod.name);
    let named = |name: &str| mirror.of(NODES).named(name);
    wrong!(some pod in pods.iter().find(|pod| node_of(pod).and_then(named).is_none())
        => "pod {} is for a node that is gone", pod.name);
    let (places, strangers) = divide(&spec, &pods, mirror)?;
    let desired = mirror.of(NODES).now();
    let desired = desired.filter(|node| fit::runs(spec.template, node)).count() as i64;
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
    history(set, hash, &pods, mirror)
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
        let runs = fit::runs(spec.template, node);
        let most = usize::from(fit::continues(spec.template, node));
        match on.as_slice() {
            [pod] if runs => places.push(Place { node, pod }),
            on if runs && !is_kept_empty(on, spec) => {
                return Err(format!("node {} has {} pods", node.name, on.len()));
            }
            on if on.len() > most => {
                return Err(format!(
                    "node {} may not run a pod, and has {}",
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
        => "pod {name} is not available: {}", pod.value()["status"]["conditions"]);
    let mut revisions = mirror.of(REVISIONS).now();
    let label = pod.label(REVISION);
    let revision = revisions.find(|one| one.owner() == pod.owner() && one.label(REVISION) == label);
    let revision = revision.ok_or_else(|| format!("pod {name}: revision {label} is gone"))?;
    for gate in items(&pod.value()["spec"]["readinessGates"]) {
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
    match left.next() {
        Some(one) if updated < due => Err(format!(
            "{updated} nodes of {desired} are updated, {due} are to be; {} of {} is on {}, not {hash}; selector: {}",
            one.pod.name,
            one.node.name,
            one.pod.label(REVISION),
            spec.has_selector(),
        )),
        _ => Ok(()),
    }
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
    let status = &set.value()["status"];
    let count = |counts: &dyn Fn(&Object) -> bool| places.iter().filter(|one| counts(one.pod)).count() as i64;
    let available =
        count(&|pod| is_available(pod, spec.min_ready_seconds, now) && pod.state(GATE) != "False");
    let generation = number(&set.value()["metadata"]["generation"]);
    for (name, wanted) in [
        ("observedGeneration", generation),
        ("desiredNumberScheduled", desired),
        ("currentNumberScheduled", places.len() as i64),
        ("numberMisscheduled", strangers.len() as i64),
        ("numberReady", count(&is_ready)),
        ("numberAvailable", available),
        ("numberUnavailable", desired - available),
        (
            "updatedNumberScheduled",
            count(&|pod| pod.label(REVISION) == hash),
        ),
    ] {
        expect(format_args!("status.{name}"), number(&status[name]), wanted)?;
    }
    expect(
        "status.updateRevision",
        status["updateRevision"].as_str(),
        Some(hash),
    )?;
    let conditions = items(&status["conditions"]);
    let mut failed = conditions.filter(|one| {
        one["status"] == "True"
            && one["type"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("Failed"))
    });
    match failed.next() {
        Some(condition) => Err(format!("status reports a failure that is over: {condition}")),
        None => Ok(()),
    }
}

/// Not more revisions than the history may have, but for those in use.
fn history(set: &Object, hash: &str, pods: &[&Arc<Object>], mirror: &Mirror) -> Result<(), String> {
    let in_use = |label: &str| label == hash || pods.iter().any(|pod| pod.label(REVISION) == label);
    let revisions = mirror.of(REVISIONS).now().filter(|one| one.owner() == &*set.uid);
    let unused = revisions.filter(|one| !in_use(one.label(REVISION))).count() as i64;
    wrong!(unused > HISTORY => "{unused} revisions that nothing uses, {HISTORY} are kept");
    Ok(())
}
