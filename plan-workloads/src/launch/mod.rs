//! The order in which the containers of a pod start.
//!
//! Admission gives each container a variable whose value is the key `p_<n>` of a ConfigMap, the pod's *barrier*; a
//! kubelet starts no container whose key is missing. This plan opens key after key, the highest number first.
//!
//! # What it promises
//! - A key is opened only when every container with a higher number is ready, or has ended well and will not start
//!   again.
//! - A barrier costs one write for each number, and the pod one more, after which nothing is left to be ordered.
//! - A barrier that somebody deleted comes back with the keys of all containers that may start or ever started, also
//!   after that, as soon as a container waits for it.
//! - A barrier of an earlier pod of the same name is replaced, whoever wrote it last. What a kubelet starts before the
//!   manager knows of the pod, it starts by the old keys. A ConfigMap that is no barrier is left alone, whatever its
//!   name, and an event reports what the pod waits for.
//! - A barrier is owned by its pod, and is deleted with it.

pub mod reasons;
mod writes;

use std::{collections::BTreeSet, time::Duration};

use kruise_api::names::LAUNCH_COMPLETED;
use kruise_plan_kit::{EventNote, Memory, ObjectWrites, Plan, Step};
use kruise_views::{BarrierView, ContainerStatusView, ContainerView, PodView};

/// What a plan is made from.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The pod.
    pub pod: &'a PodView,
    /// The barrier of its name, whosever it is.
    pub barrier: Option<&'a BarrierView>,
    /// The version up to which every change of a pod is seen; `None` if it is not known.
    pub seen: Option<u64>,
    /// What the last execution taught.
    pub memory: &'a Memory,
}

/// Name of the barrier of a pod.
pub fn barrier_of(pod: &str) -> String {
    format!("{pod}{SUFFIX}")
}

/// Name of the pod that a barrier is for, by the name of the barrier.
pub fn pod_of(barrier: &str) -> Option<&str> {
    barrier.strip_suffix(SUFFIX)
}

const SUFFIX: &str = "-barrier";
/// After a barrier was taken over that no watch shows yet, or while one is there of a pod that is not known yet.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Does this pod need anything from this controller?
pub fn concerns(pod: &PodView) -> bool {
    let mut waiting = ordered(pod);
    let concerned = match pod.annotations.get(LAUNCH_COMPLETED) {
        Some("true") => {
            waiting.any(|(container, _)| status(pod, container).is_some_and(|it| it.unconfigured))
        }
        _ => waiting.next().is_some(),
    };
    concerned && pod.is_active()
}

/// Opens what may be opened.
pub fn plan(snapshot: Snapshot<'_>) -> Plan {
    let Snapshot {
        pod,
        barrier,
        seen,
        memory,
    } = snapshot;
    if !concerns(pod) {
        return Plan::default();
    }
    let open = open(pod);
    let name = barrier_of(&pod.name);
    let (mut events, mut requeue) = (Vec::new(), None);
    let mut steps = match barrier {
        Some(barrier) if barrier.is_of(&pod.uid) => opened(barrier, &open),
        // Perhaps one of a later pod that is not known yet: it changed after all that is known of this one. Whether it
        // is shows when the pods are seen up to then, of which no event would come.
        Some(barrier) if !is_older(barrier, pod, seen) => {
            return Plan {
                requeue: Some(LOOK_AGAIN),
                ..Plan::default()
            };
        }
        Some(barrier) => vec![writes::delete(barrier), writes::create(pod, &open)],
        None => match memory.holders.get(&name) {
            Some(holder) if holder.owners.contains(&pod.uid.to_string()) => {
                // If it is gone by then, no event would come.
                requeue = Some(LOOK_AGAIN);
                vec![writes::adopt(pod, &holder.uid, &open)]
            }
            holder => {
                events.extend(holder.map(|_| in_the_way(&name)));
                events.extend(memory.scale_error.as_deref().map(|why| refused(&name, why)));
                vec![writes::create(pod, &open)]
            }
        },
    };
    let is_last = ordered(pod).all(|(_, number)| open.contains(&number));
    if is_last && pod.annotations.get(LAUNCH_COMPLETED) != Some("true") {
        steps.push(writes::complete(pod));
    }
    Plan {
        writes: writes(steps),
        events,
        requeue,
        ..Plan::default()
    }
}

/// The key that containers of this number wait for.
fn key(number: i64) -> String {
    format!("p_{number}")
}

fn writes(steps: Vec<Step>) -> Vec<ObjectWrites> {
    if steps.is_empty() {
        return Vec::new();
    }
    vec![ObjectWrites::of_pod(steps)]
}

/// What is missing in the pod's own barrier.
fn opened(barrier: &BarrierView, open: &BTreeSet<i64>) -> Vec<Step> {
    let missing: BTreeSet<i64> = open
        .iter()
        .copied()
        .filter(|number| !barrier.has(&key(*number)))
        .collect();
    if missing.is_empty() {
        return Vec::new();
    }
    vec![writes::open(barrier, &missing)]
}

/// Numbers whose containers may start. Keys once opened stay open: a container that started before may start again.
fn open(pod: &PodView) -> BTreeSet<i64> {
    let held = ordered(pod)
        .filter(|(container, _)| !is_done(pod, container))
        .map(|(_, number)| number)
        .max();
    let started = ordered(pod)
        .filter(|(container, _)| has_started(pod, container))
        .map(|(_, number)| number)
        .min();
    let all = ordered(pod).map(|(_, number)| number);
    let from = held.map(|held| started.map_or(held, |started| started.min(held)));
    all.filter(|number| from.is_none_or(|from| *number >= from))
        .collect()
}

/// Containers that wait for a key, and its number.
fn ordered(pod: &PodView) -> impl Iterator<Item = (&ContainerView, i64)> {
    let containers = pod.containers.iter();
    containers.filter_map(|container| Some((container, container.priority?)))
}

fn status<'a>(pod: &'a PodView, container: &ContainerView) -> Option<&'a ContainerStatusView> {
    pod.status_of(&container.name)
}

fn is_done(pod: &PodView, container: &ContainerView) -> bool {
    status(pod, container).is_some_and(|status| status.ready || (status.succeeded && !pod.restarts_always))
}

fn has_started(pod: &PodView, container: &ContainerView) -> bool {
    status(pod, container).is_some_and(|status| !status.container_id.is_empty() || status.restart_count > 0)
}

/// Was the barrier last written before what is known of the pod? Then a later pod, of which it might be, would be
/// known.
fn is_older(barrier: &BarrierView, pod: &PodView, seen: Option<u64>) -> bool {
    let version = |text: &str| text.parse::<u64>().ok();
    match (version(&barrier.resource_version), version(&pod.resource_version)) {
        (Some(barrier), Some(pod)) => barrier < pod || seen.is_some_and(|seen| barrier <= seen),
        // A server whose versions cannot be compared: what its caches show is all there is to go by.
        _ => true,
    }
}

fn in_the_way(name: &str) -> EventNote {
    warning(format!(
        "containers wait for ConfigMap {name}, and one of that name exists that is not this pod's"
    ))
}

fn refused(name: &str, why: &str) -> EventNote {
    warning(format!(
        "containers wait for ConfigMap {name}, which cannot be created: {why}"
    ))
}

fn warning(message: String) -> EventNote {
    EventNote::new(&reasons::FAILED_LAUNCH, message)
}
