//! The order of decisions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::{
    imagelistpulljob::{ImageListPullJob, KIND},
    imagepulljob::ImagePullJob,
    names::REVISION_HASH,
};
use kruise_plan_kit::{
    Explain, Intent, Memory, ObjectWrites, Owner, Part, Patch, Phase, Plan, Precondition, Target, Why, Write,
    jobs,
};
use serde_json::{Value, json};

use super::{create, status, template};

/// The label of a job records which template its jobs have.
const LABEL_JOB: Intent = Intent::untold("label-job");

/// One snapshot of an ImageListPullJob and its jobs.
pub struct Snapshot<'a> {
    /// The list.
    pub list: &'a ImageListPullJob,
    /// `apiVersion` for owner references: that of the version on the wire.
    pub api_version: &'a str,
    /// ImagePullJobs that its uid controls, in any state and any order.
    pub jobs: &'a [Arc<ImagePullJob>],
    /// What the last execution taught.
    pub memory: &'a Memory,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}

/// Decides what a list needs now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let list = snapshot.list;
    let owner = Owner::new(snapshot.api_version, KIND.kind, &list.metadata);
    let mut plan = if list.metadata.deletion_timestamp.is_some() {
        Plan {
            why: vec![Why::of_set("the list is being deleted, and its jobs after it")],
            ..Plan::default()
        }
    } else if let Some(ended) = list.status.completion_time {
        end(list, &owner, ended, now)
    } else {
        run(snapshot, &owner, now)
    };
    if snapshot.explain == Explain::No {
        plan.why.clear();
    }
    plan
}

/// Deletes an ended list, and with it its jobs, when its time to live is over.
fn end(list: &ImageListPullJob, owner: &Owner<'_>, ended: Timestamp, now: Timestamp) -> Plan {
    let mut plan = Plan {
        why: vec![Why::of_set(
            "the list has ended: it creates no jobs, whatever is added to it",
        )],
        ..Plan::default()
    };
    if let Some(seconds) = list.spec.completion_policy.ttl_seconds_after_finished {
        match jobs::left(ended, i64::from(seconds), now) {
            None => {
                let unchanged = jobs::unchanged(&list.metadata);
                plan.writes.push(jobs::delete(
                    owner,
                    kruise_api::imagelistpulljob::RESOURCE,
                    unchanged,
                ));
            }
            left => plan.requeue_after(left),
        }
    }
    plan
}

/// The jobs of a list, sorted out.
struct Jobs<'a> {
    /// The job of each image that has one with the template of the list.
    current: BTreeMap<&'a str, &'a ImagePullJob>,
    /// Jobs that are to be deleted, with the reason.
    surplus: Vec<(&'a ImagePullJob, String)>,
}

impl<'a> Jobs<'a> {
    fn new(snapshot: &'a Snapshot<'a>, template: &Value) -> Self {
        let images: BTreeSet<&str> = snapshot.list.spec.images.iter().map(String::as_str).collect();
        // What somebody else changed in a job of this template stays.
        let hash = template::hash(template);
        let is_of_template = |job: &ImagePullJob| {
            job.metadata.labels.get(REVISION_HASH) == Some(&hash)
                || template::are_equal(&template::of_job(&job.stored_spec), template)
        };
        let mut jobs: Vec<&ImagePullJob> = snapshot.jobs.iter().map(|job| &**job).collect();
        jobs.retain(|job| job.metadata.deletion_timestamp.is_none());
        // Of several jobs for an image, the oldest stays.
        jobs.sort_by_key(|job| (job.metadata.creation_timestamp, job.metadata.name.as_str()));
        let mut sorted = Self {
            current: BTreeMap::new(),
            surplus: Vec::new(),
        };
        for job in jobs {
            let image = job.spec.image.as_str();
            let reason = if !images.contains(image) {
                format!("{image} is not in the list any more")
            } else if !is_of_template(job) {
                "the template has changed".to_owned()
            } else if sorted.current.contains_key(image) {
                format!("{image} has an older job")
            } else {
                sorted.current.insert(image, job);
                continue;
            };
            sorted.surplus.push((job, reason));
        }
        sorted
    }

    /// The hash that the jobs carry, if all of them carry the same.
    fn hash(&self) -> Option<&'a str> {
        let mut hashes = self
            .current
            .values()
            .map(|job| job.metadata.labels.get(REVISION_HASH));
        let first = hashes.next()??;
        hashes.all(|hash| hash == Some(first)).then_some(first.as_str())
    }
}

fn run(snapshot: &Snapshot<'_>, owner: &Owner<'_>, now: Timestamp) -> Plan {
    let list = snapshot.list;
    let template = template::of_list(&list.stored_spec);
    let jobs = Jobs::new(snapshot, &template);
    let mut plan = Plan::default();
    let stored = list.metadata.labels.get(REVISION_HASH).map(String::as_str);
    // A hash of another version of the manager stays as long as its jobs do.
    let of_jobs = jobs
        .hash()
        .filter(|hash| stored == Some(*hash) && jobs.surplus.is_empty());
    let hash = of_jobs.map_or_else(|| template::hash(&template), str::to_owned);
    if stored != Some(&*hash) {
        plan.writes.push(label(list, owner, &hash));
    }
    let unlike = jobs
        .current
        .values()
        .filter(|job| job.metadata.labels.get(REVISION_HASH) != Some(&hash));
    plan.writes.extend(unlike.map(|job| relabel(job, owner, &hash)));
    let mut seen = BTreeSet::new();
    let images = list.spec.images.iter().map(String::as_str);
    let missing = images.filter(|image| seen.insert(*image) && !jobs.current.contains_key(image));
    let created = missing.map(|image| create::create(snapshot, owner, (&template, &hash), image));
    plan.writes.extend(created);
    let deleted = jobs
        .surplus
        .iter()
        .map(|(job, reason)| create::delete(owner, job, reason.clone()));
    plan.writes.extend(deleted);
    let current: Vec<&ImagePullJob> = jobs.current.values().copied().collect();
    let report = status::of(list, &current, now);
    plan.status = status::patch(list, owner, &report);
    plan.why = explain(&current, &report);
    plan
}

fn label(list: &ImageListPullJob, owner: &Owner<'_>, hash: &str) -> ObjectWrites {
    let target = owner.target(kruise_api::imagelistpulljob::RESOURCE, owner.name);
    let write = labelled(target, &list.metadata.uid, hash);
    ObjectWrites::alone(Phase::Pods, write, "its jobs carry the hash of its template")
}

fn relabel(job: &ImagePullJob, owner: &Owner<'_>, hash: &str) -> ObjectWrites {
    let target = owner.target(kruise_api::imagepulljob::RESOURCE, job.metadata.name.as_str());
    let write = labelled(target, &job.metadata.uid, hash);
    ObjectWrites::alone(Phase::Pods, write, "its template is that of the list")
}

fn labelled(target: Target, uid: &str, hash: &str) -> Write {
    Write::Patch {
        intent: LABEL_JOB,
        target,
        part: Part::Main,
        patch: Patch::Merge(json!({"metadata": {"labels": {REVISION_HASH: hash}}})),
        precondition: Precondition::Uid(uid.to_owned()),
    }
}

fn explain(
    jobs: &[&ImagePullJob],
    report: &kruise_api::imagelistpulljob::ImageListPullJobStatus,
) -> Vec<Why> {
    let summary = format!(
        "of {} images {} are pulled everywhere, {} are done, {} are being pulled",
        report.desired, report.succeeded, report.completed, report.active
    );
    let of_job = jobs.iter().map(|job| {
        let status = &job.status;
        let text = format!(
            "pulls {}: of {} nodes {} succeeded, {} failed, {} are active",
            job.spec.image, status.desired, status.succeeded, status.failed, status.active
        );
        Why::new(job.metadata.name.as_str(), text)
    });
    std::iter::once(Why::of_set(summary)).chain(of_job).collect()
}
