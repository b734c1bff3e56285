//! A new job.

use jiff::Timestamp;
use kruise_api::{
    advancedcronjob::{AdvancedCronJobStatus, Child, JobTemplate},
    meta::StringMap,
    names::advancedcronjob::SCHEDULED_AT,
};
use kruise_plan_kit::{
    FailureNote, Intent, ObjectWrites, Owner, Part, Patch, Phase, Precondition, Step, Write,
    injected::is_injected, lifecycle::go_time, put, status_patch,
};
use kruise_views::ScheduledJobView;
use serde_json::{Value, json};

use super::{events, snapshot::Snapshot, snapshot::resource, status};

/// A job that a schedule asks for.
const CREATE_JOB: Intent = Intent::untold("create-job");
/// The status says for which activation a job was created.
const RECORD_ACTIVATION: Intent = Intent::untold("record-activation");

/// What jobs are made from.
pub(super) struct NewJobs<'a> {
    pub(super) snapshot: &'a Snapshot<'a>,
    pub(super) owner: Owner<'a>,
    pub(super) child: Child,
    pub(super) template: &'a JobTemplate,
}

impl NewJobs<'_> {
    /// The name of the job of an activation.
    pub(super) fn name(&self, activation: Timestamp) -> String {
        format!("{}-{}", self.owner.name, activation.as_second())
    }

    /// The activation that a job of this name is for.
    pub(super) fn activation(&self, name: &str) -> Option<Timestamp> {
        let second = name.strip_prefix(self.owner.name)?.strip_prefix('-')?;
        let activation = Timestamp::from_second(second.parse().ok()?).ok()?;
        (self.name(activation) == name).then_some(activation)
    }

    /// Deletes these jobs, creates the one of an activation, and then records it. A failure ends that: the next
    /// plan finds what was done. `status` is that of the plan, without the deleted jobs.
    pub(super) fn start(
        &self,
        activation: Timestamp,
        replaced: &[&ScheduledJobView],
        status: AdvancedCronJobStatus,
        reason: String,
    ) -> ObjectWrites {
        let gone = replaced.iter().map(|job| {
            let reason = "the next job replaces it";
            delete(&self.owner, self.child, job, reason)
        });
        let mut steps: Vec<Step> = gone.collect();
        let create = self.create(activation, reason);
        let record = self.record(activation, status);
        if is_injected("RecordedBeforeCreated") {
            steps.extend([record, create]);
        } else {
            steps.extend([create, record]);
        }
        ObjectWrites::new(Phase::Pods, steps)
    }

    fn create(&self, activation: Timestamp, reason: String) -> Step {
        let name = self.name(activation);
        let body = self.body(&name, activation);
        let write = self
            .owner
            .create(CREATE_JOB, resource(self.child), name.as_str(), body);
        Step {
            done: Some(events::created(&name)),
            failed: Some(FailureNote::new(
                &kruise_plan_kit::events::FAILED_CREATE,
                format!("Error creating job {name}: "),
            )),
            ..Step::new(write, reason)
        }
    }

    fn body(&self, name: &str, activation: Timestamp) -> Value {
        let meta = &self.template.metadata;
        let mut annotations: StringMap = meta.annotations.clone();
        annotations.insert(SCHEDULED_AT.to_owned(), go_time(activation));
        let mut body = json!({
            "apiVersion": self.child.api_version(),
            "kind": self.child.kind(),
            "metadata": {
                "name": name,
                "namespace": self.owner.namespace,
                "annotations": annotations,
                "ownerReferences": [self.owner.reference()],
            },
            "spec": self.template.spec,
        });
        if !meta.labels.is_empty() {
            put(&mut body, &["metadata", "labels"], json!(meta.labels));
        }
        body
    }

    fn record(&self, activation: Timestamp, mut status: AdvancedCronJobStatus) -> Step {
        let cron = self.snapshot.cron;
        status.last_schedule_time = status.last_schedule_time.max(Some(activation));
        let (target, version) = (
            self.owner
                .target(kruise_api::advancedcronjob::RESOURCE, self.owner.name),
            cron.metadata.resource_version.clone(),
        );
        let patch = status_patch(
            target.clone(),
            &version,
            Some(&cron.status),
            &status,
            status::URGENCY,
        );
        let write = Write::Patch {
            intent: RECORD_ACTIVATION,
            target,
            part: Part::Status,
            patch: Patch::Merge(patch.map_or_else(|| json!({"status": {}}), |patch| patch.patch)),
            precondition: Precondition::UidAndVersion(self.owner.uid.to_owned(), version),
        };
        Step::new(write, "its activation has a job")
    }
}

/// Deletes a job, with its pods.
pub(super) fn delete(owner: &Owner<'_>, child: Child, job: &ScheduledJobView, reason: &str) -> Step {
    let write = Write::Delete {
        intent: Intent::DELETE_JOB,
        target: owner.target(resource(child), &*job.name),
        precondition: Precondition::Uid(job.uid.to_string()),
    };
    Step {
        done: Some(events::deleted(&job.name)),
        failed: Some(FailureNote::new(
            &kruise_plan_kit::events::FAILED_DELETE,
            format!("Error deleting job {}: ", job.name),
        )),
        ..Step::new(write, reason)
    }
}
