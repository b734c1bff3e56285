//! Jobs that a list creates and deletes.

use go_compat::sha256;
use kruise_api::{imagepulljob::ImagePullJob, names::REVISION_HASH};
use kruise_plan_kit::{
    Batching, EventNote, FailureNote, Intent, ObjectWrites, Owner, Phase, Precondition, Step, Write, events,
    put,
};
use serde_json::{Value, json};

use super::plan::Snapshot;
use super::reasons;

/// Creates the job of an image.
pub(super) fn create(
    snapshot: &Snapshot<'_>,
    owner: &Owner<'_>,
    (template, hash): (&Value, &str),
    image: &str,
) -> ObjectWrites {
    let name = name(snapshot, hash, image);
    let mut body = json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ImagePullJob",
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": {REVISION_HASH: hash},
            "ownerReferences": [owner.reference()],
        },
        "spec": template,
    });
    put(&mut body, &["spec", "image"], image.into());
    let write = owner.create(
        Intent::CREATE_PULL_JOB,
        kruise_api::imagepulljob::RESOURCE,
        name.as_str(),
        body,
    );
    let step = Step {
        done: Some(EventNote::new(
            &reasons::CREATED_LISTED_JOB,
            "Create 1 ImagePullJob",
        )),
        failed: Some(FailureNote::new(
            &events::FAILED_CREATE,
            format!("Error creating ImagePullJob for {image}: "),
        )),
        ..Step::new(write, format!("{image} is in the list and has no job"))
    };
    ObjectWrites {
        batching: Batching::SlowStart,
        ..ObjectWrites::new(Phase::Pods, vec![step])
    }
}

/// The name of the job of an image: the same for each attempt, so that a lost reply creates no second one. No job
/// of another template has it, as that may still be being deleted.
fn name(snapshot: &Snapshot<'_>, hash: &str, image: &str) -> String {
    let metadata = &snapshot.list.metadata;
    let is_taken = |name: &str| {
        let mut jobs = snapshot.jobs.iter();
        jobs.any(|job| job.metadata.name == name) || snapshot.memory.taken_names.contains(name)
    };
    let mut names = (0_u32..).map(|attempt| {
        let seed = format!(
            "{}/{hash}/{image}/{}#{attempt}",
            metadata.uid, metadata.generation
        );
        let digits = sha256::hex(seed.as_bytes());
        let end = digits.get(..8).unwrap_or_default();
        // Names of jobs are values of labels in no place, and may be as long as names of objects.
        let stem = metadata.name.get(..240).unwrap_or(&metadata.name);
        format!("{stem}-{end}")
    });
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

/// Deletes a job.
pub(super) fn delete(owner: &Owner<'_>, job: &ImagePullJob, reason: String) -> ObjectWrites {
    let write = Write::Delete {
        intent: Intent::DELETE_PULL_JOB,
        target: owner.target(kruise_api::imagepulljob::RESOURCE, job.metadata.name.as_str()),
        precondition: Precondition::Uid(job.metadata.uid.clone()),
    };
    let message = format!("Delete ImagePullJob {}", job.metadata.name);
    let step = Step {
        done: Some(EventNote::new(&reasons::DELETED_LISTED_JOB, message)),
        ..Step::new(write, reason)
    };
    ObjectWrites::new(Phase::Cleanup, vec![step])
}
