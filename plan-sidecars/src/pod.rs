//! The pods of a set, each classified once.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_plan_kit::{
    availability::is_ready_for_certain,
    inplace::{is_pending, read_state},
    sidecars::{
        Hashes, Record, Records, UpgradeStates, Working, has_sidecars, is_in_list,
        is_structurally_consistent, names,
    },
};
use kruise_views::PodView;
use serde_json::Value;

use crate::{consistency::is_consistent, sidecars::Sidecars, snapshot::Snapshot};

/// How long another set's change of a pod is waited for.
const MOTION: Duration = Duration::from_secs(10);
/// And as long as the node shows the container that is to go still running: what it is about to write would come
/// between.
const UNNOTICED: Duration = Duration::from_mins(2);
/// How long a pod that was just made is left alone: another replica may have injected an edit that is not seen here
/// yet.
pub(crate) const FRESH: Duration = Duration::from_secs(5);

/// An active pod with every sidecar of the set.
pub(crate) struct Pod<'a> {
    pub(crate) view: &'a Arc<PodView>,
    /// What the pod records of its sets; empty if that cannot be read.
    pub(crate) records: Records,
    /// Upgrades so far; `None` if the annotation cannot be read.
    pub(crate) states: Option<UpgradeStates>,
    pub(crate) working: Working,
    /// Of the specification as it is?
    pub(crate) updated: bool,
    /// A sidecar that its workload has given another image since, as a container of its template with the same name.
    pub(crate) overwritten: Option<String>,
    /// Do only images differ from what the pod was injected with?
    pub(crate) upgradable: bool,
    /// Has it its sidecars under another `upgradeType`? It is counted and stays as it is, whatever state it is in.
    pub(crate) of_other_type: bool,
    /// Does `updateStrategy.selector` match it, or is there none?
    pub(crate) selected: bool,
    /// Do all sidecars run their images?
    pub(crate) consistent: bool,
    /// Are all sidecars ready?
    pub(crate) serves: bool,
    /// In service, with one working twin of each?
    pub(crate) ready: bool,
}

impl Pod<'_> {
    /// Did this set take the pod out of service, as far as can be seen?
    pub(crate) fn is_out(&self, set: &str) -> bool {
        if self.updated {
            return !self.consistent || !self.ready;
        }
        if self.of_other_type {
            return false;
        }
        let changed_before = self
            .states
            .as_ref()
            .is_none_or(|states| states.0.contains_key(set));
        // Where no upgrade could repair the pod, the set is the cause only as long as a sidecar fails.
        let follows = self.upgradable && self.selected;
        changed_before && (!self.consistent || (!self.ready && (follows || !self.serves)))
    }

    /// Is a sidecar ready that does not run its image yet? Then the last upgrade is still on its way.
    pub(crate) fn is_on_its_way(&self, set: &str, sidecars: &Sidecars) -> bool {
        let ready = self
            .view
            .statuses
            .iter()
            .filter(|status| status.ready && sidecars.has(&status.name));
        ready.into_iter().any(|status| {
            let is_it = |name: &str| *name == *status.name;
            !is_consistent(self.view, set, self.states.as_ref(), is_it)
        })
    }

    /// For how long another set's change, just made, is to be waited for.
    pub(crate) fn in_motion(&self, set: &str, now: Timestamp) -> Option<Duration> {
        let states = self.states.as_ref()?;
        let others = states.0.iter().filter(|(name, _)| *name != set);
        others
            .filter_map(|(name, state)| {
                let waited_for = state
                    .last_container_statuses
                    .iter()
                    .flatten()
                    .filter_map(|(container, before)| {
                        let wanted = self.view.image_of(container).unwrap_or_default();
                        let status = self.view.status_of(container)?;
                        let long = if status.between_runs { MOTION } else { UNNOTICED };
                        is_pending(status, before, wanted).then_some(long)
                    })
                    .max()?;
                let since: Timestamp = self.records.0.get(name)?.update_timestamp.parse().ok()?;
                left(since, waited_for, now)
            })
            .max()
    }

    /// For how long the pod is left alone because it was just made.
    pub(crate) fn fresh_for(&self, now: Timestamp) -> Option<Duration> {
        left(self.view.created?, FRESH, now)
    }

    /// `namespace/name`: sets have pods in many namespaces.
    pub(crate) fn about(&self) -> String {
        format!("{}/{}", self.view.namespace, self.view.name)
    }
}

/// What is left of a while that began then. Clocks differ, so it may begin a little later than now, but a time that is
/// further off than the while is long is ignored.
pub(crate) fn left(since: Timestamp, long: Duration, now: Timestamp) -> Option<Duration> {
    let left = since.as_millisecond() + long.as_millis() as i64 - now.as_millisecond();
    let left = Duration::from_millis(u64::try_from(left).ok()?);
    (!left.is_zero() && left <= long * 2).then(|| left.min(long))
}

/// The pods that count, sorted by namespace and name.
pub(crate) fn classify<'a>(
    snapshot: &Snapshot<'a>,
    spec: &Value,
    sidecars: &Sidecars,
    hashes: &Hashes,
    now: Timestamp,
) -> Vec<Pod<'a>> {
    let mut pods: Vec<Pod<'a>> = snapshot
        .pods
        .iter()
        .filter(|pod| pod.is_active() && is_meant(snapshot, pod))
        .filter_map(|pod| classified(snapshot, pod, spec, sidecars, hashes, now))
        .collect();
    pods.sort_by(|a, b| (&a.view.namespace, &a.view.name).cmp(&(&b.view.namespace, &b.view.name)));
    pods
}

fn is_meant(snapshot: &Snapshot<'_>, pod: &PodView) -> bool {
    let set = snapshot.set;
    let list = pod.annotations.get(names::INJECTED_LIST).unwrap_or_default();
    let selector = set.spec.selector.as_ref();
    is_in_list(list, &set.metadata.name)
        && selector
            .is_some_and(|selector| !selector.is_empty() && selector.matches_by(|key| pod.labels.get(key)))
        && (set.spec.namespace_selector.is_none() || (snapshot.in_namespace)(&pod.namespace))
}

/// The first sidecar that has another image than its set says, because its workload wrote one after the set did.
/// What else changes images, such as an admission webhook that names another registry, would change them again.
fn overwritten(pod: &PodView, sidecars: &Sidecars, record: Option<&Record>) -> Option<String> {
    let differs = |(name, image): &(&str, &str)| pod.image_of(name).is_some_and(|have| have != *image);
    let mut differing = sidecars.cold().filter(differs).peekable();
    differing.peek()?;
    let written: Option<Timestamp> = record?.update_timestamp.parse().ok();
    let by_workload = read_state(pod).ok()??;
    let mut later = differing.filter(|(name, _)| by_workload.written_at(name) > written);
    later.next().map(|(name, _)| name.to_owned())
}

fn classified<'a>(
    snapshot: &Snapshot<'_>,
    pod: &'a Arc<PodView>,
    spec: &Value,
    sidecars: &Sidecars,
    hashes: &Hashes,
    now: Timestamp,
) -> Option<Pod<'a>> {
    let set = &snapshot.set.metadata.name;
    let annotation = |key: &str| pod.annotations.get(key).unwrap_or_default();
    let working = Working::read(annotation(names::WORKING));
    let has =
        |name: &str| pod.image_of(name).is_some() || pod.init_containers.iter().any(|init| **init == *name);
    let of_other_type = !is_structurally_consistent(spec, has, &working);
    if of_other_type && !has_sidecars(spec, has) {
        return None;
    }
    let records = Records::read(annotation(names::HASH)).unwrap_or_default();
    let states = UpgradeStates::read(annotation(names::INPLACE_STATE)).ok();
    let overwritten = overwritten(pod, sidecars, records.0.get(set.as_str()));
    let updated = !of_other_type && records.hash_of(set) == hashes.full && overwritten.is_none();
    let upgradable = updated || {
        let without = Records::read(annotation(names::HASH_WITHOUT_IMAGE)).unwrap_or_default();
        !of_other_type && records.0.contains_key(set.as_str()) && without.hash_of(set) == hashes.without_image
    };
    // A report from before the last change of the specification says nothing about it.
    let consistent = !pod.unobserved && is_consistent(pod, set, states.as_ref(), |name| sidecars.has(name));
    let selector = snapshot.set.spec.update_strategy.selector.as_ref();
    let mut statuses = pod.statuses.iter();
    let idle = sidecars.hot().all(|(name, _, empty)| {
        let [_, other] = working.of(name);
        pod.image_of(&other) == Some(empty)
    });
    Some(Pod {
        ready: is_ready_for_certain(pod, now) && (idle || of_other_type),
        view: pod,
        records,
        states,
        working,
        updated,
        overwritten,
        upgradable,
        of_other_type,
        selected: selector.is_none_or(|selector| selector.matches_by(|key| pod.labels.get(key))),
        consistent,
        serves: statuses.all(|status| status.ready || !sidecars.has(&status.name)),
    })
}
