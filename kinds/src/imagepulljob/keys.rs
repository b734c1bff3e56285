//! Keys: the ImagePullJobs that a change of something else enqueues.

use std::{collections::BTreeSet, sync::Arc};

use kruise_api::nodeimage::NodeImage;
use kruise_plan_nodes::imagepulljob::matches;
use kruise_views::{PodView, SecretView};
use kube_cache::{Delta, ObjectKey};

use crate::images::{CachedNodeImage, CachedPullJob, key_of, waits};

/// The active jobs that wait for what a key of the index says.
type Waiting<'a> = &'a dyn Fn(&str) -> Vec<Arc<CachedPullJob>>;

/// Was the specification of a job changed after its end?
pub(super) fn is_changed_after_end(delta: &Delta<CachedPullJob>) -> bool {
    let (Some(Ok(old)), Some(Ok(new))) = (
        delta.old.as_ref().map(|old| &old.object),
        delta.new.as_ref().map(|new| &new.object),
    ) else {
        return false;
    };
    let has_ended = old.status.completion_time.is_some() && new.status.completion_time.is_some();
    has_ended && old.metadata.uid == new.metadata.uid && old.stored_spec != new.stored_spec
}

/// The jobs that select the node, if it joins, leaves or has other labels, and those of the images on it that change.
pub(super) fn of_node(delta: &Delta<CachedNodeImage>, waiting: Waiting<'_>) -> BTreeSet<ObjectKey> {
    let read = |cached: &Option<Arc<CachedNodeImage>>| cached.as_ref()?.object.as_ref().ok().cloned();
    let (old, new) = (read(&delta.old), read(&delta.new));
    let Some(latest) = new.as_ref().or(old.as_ref()) else {
        return BTreeSet::new();
    };
    let versions: Vec<&NodeImage> = old.iter().chain(&new).map(|node| &**node).collect();
    let mut keys = BTreeSet::new();
    if joins_or_leaves(old.as_deref(), new.as_deref()) {
        let selecting = waiting(&waits::node(&latest.metadata.name))
            .into_iter()
            .chain(waiting(waits::NODES));
        keys.extend(
            selecting
                .filter(|job| selects(job, &versions))
                .map(|job| ObjectKey::of(&*job)),
        );
    }
    for image in changed(old.as_deref(), new.as_deref()) {
        let jobs = waiting(&waits::image_named(image)).into_iter();
        keys.extend(
            jobs.filter(|job| selects(job, &versions))
                .map(|job| ObjectKey::of(&*job)),
        );
    }
    keys
}

fn joins_or_leaves(old: Option<&NodeImage>, new: Option<&NodeImage>) -> bool {
    let (Some(old), Some(new)) = (old, new) else {
        return true;
    };
    let (old, new) = (&old.metadata, &new.metadata);
    old.uid != new.uid
        || old.labels != new.labels
        || old.deletion_timestamp.is_some() != new.deletion_timestamp.is_some()
}

/// Does the job select the node, before or after the change? Which pods are on it is not looked up.
fn selects(job: &CachedPullJob, versions: &[&NodeImage]) -> bool {
    let job = job.object.as_ref();
    job.is_ok_and(|job| {
        job.spec.pod_selector.is_some() || versions.iter().any(|node| matches(&job.spec, node))
    })
}

/// Names of the images whose entries or states differ.
fn changed<'n>(old: Option<&'n NodeImage>, new: Option<&'n NodeImage>) -> BTreeSet<&'n str> {
    let images = |node: Option<&'n NodeImage>| {
        let listed = node.into_iter().flat_map(|node| node.images.keys());
        let reported = node
            .into_iter()
            .flat_map(|node| node.status.image_statuses.keys());
        listed.chain(reported).map(String::as_str)
    };
    let entry = |node: Option<&'n NodeImage>, name: &str| {
        let entry = node
            .and_then(|node| node.images.get(name))
            .map(|image| &image.stored);
        (entry, node.and_then(|node| node.status.image_statuses.get(name)))
    };
    let all: BTreeSet<&str> = images(old).chain(images(new)).collect();
    all.into_iter()
        .filter(|name| entry(old, name) != entry(new, name))
        .collect()
}

/// The jobs that select the pod, if it is on a node and the change is one that they count.
pub(super) fn of_pod(delta: &Delta<PodView>, waiting: Waiting<'_>) -> BTreeSet<ObjectKey> {
    let Some(pod) = delta.latest().filter(|_| is_counted(delta)) else {
        return BTreeSet::new();
    };
    let selects = |job: &CachedPullJob| {
        let selector = job
            .object
            .as_ref()
            .ok()
            .and_then(|job| job.spec.pod_selector.as_ref());
        let mut versions = delta.old.iter().chain(&delta.new);
        selector.is_some_and(|selector| versions.any(|pod| selector.matches_by(|key| pod.labels.get(key))))
    };
    let jobs = waiting(&waits::pods(&pod.namespace)).into_iter();
    jobs.filter(|job| selects(job))
        .map(|job| ObjectKey::of(&*job))
        .collect()
}

fn is_counted(delta: &Delta<PodView>) -> bool {
    let (Some(old), Some(new)) = (&delta.old, &delta.new) else {
        return delta.latest().is_some_and(|pod| pod.node.is_some());
    };
    old.node != new.node
        || (new.node.is_some() && (old.labels != new.labels || old.is_active() != new.is_active()))
}

/// The jobs that a copy lists, and those that name a secret.
pub(super) fn of_secret(
    delta: &Delta<SecretView>,
    agent_namespace: &str,
    waiting: Waiting<'_>,
) -> BTreeSet<ObjectKey> {
    let Some(secret) = delta.latest() else {
        return BTreeSet::new();
    };
    let mut keys = BTreeSet::new();
    if *secret.namespace == *agent_namespace {
        let versions = delta.old.iter().chain(&delta.new);
        keys.extend(
            versions
                .flat_map(|copy| copy.references.iter())
                .filter_map(|job| key_of(job)),
        );
    }
    let is_same = matches!((&delta.old, &delta.new), (Some(old), Some(new))
        if old.uid == new.uid && old.fingerprint == new.fingerprint && old.deleting == new.deleting);
    if !is_same {
        let jobs = waiting(&waits::secret(&secret.namespace, &secret.name));
        keys.extend(jobs.iter().map(|job| ObjectKey::of(&**job)));
    }
    keys
}
