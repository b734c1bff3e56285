//! Images ahead of a rollout: jobs that have the nodes of pods which are still to change pull what they will need.
//!
//! # What it promises
//! - There is one job for each container whose image is new, made once for a rollout: a job that ended and was
//!   cleaned up is not made again, unless the rollout begins anew. A job of the same name that is still being
//!   deleted is waited for.
//! - Nothing is pulled ahead of a rollout that has no time for it, or whose pods may be recreated elsewhere. That is
//!   decided again when the set changes, until there are jobs.
//! - Jobs are deleted with their rollout: when it is over, and when another takes its place.
//! - No pod waits for any of it.
//! - They pull with the secrets of the template. If it names none, with those of the pods that are still to change:
//!   service accounts add theirs to pods, not to templates.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kruise_api::{
    meta::{LabelRequirement, LabelSelector},
    names::{CONTROLLER_HASH, PREDOWNLOAD_CREATED, PREDOWNLOAD_IGNORED, REVISION_HASH},
};
use kruise_views::{ImageJobView, RevisionView};
use serde_json::{Value, json};

use super::{Pod, Rollout};
use crate::{
    Intent, events, history,
    plan::{EventNote, FailureNote, ObjectWrites, Phase, Step},
    put,
    write::{Precondition, Target, Write},
};

/// Sets that are not larger are updated before their nodes could pull anything.
const SMALL: i32 = 3;
/// Seconds that a finished job is kept.
const KEPT: i32 = 600;

/// How nodes are to pull the images of a rollout, and which jobs of the workload there are.
pub struct ImagesAhead<'a> {
    /// Jobs that the workload controls.
    pub jobs: &'a [Arc<ImageJobView>],
    /// Which pods are the workload's.
    pub selector: &'a LabelSelector,
    /// Its template.
    pub template: &'a Value,
    /// For which rollouts images are pulled ahead.
    pub change: AheadOf,
    /// Nodes that pull at a time.
    pub parallelism: i32,
    /// Seconds that one pull may take.
    pub timeout_seconds: i32,
    /// Updated pods that have to be ready first: they show that the images are good.
    pub min_updated_ready: usize,
    /// Names that objects of others have.
    pub taken_names: &'a BTreeSet<String>,
}

/// For which rollouts images are pulled ahead.
pub enum AheadOf {
    /// Those that change pods in place, of sets that are not small.
    InPlace,
    /// All: these are the images that pods are still to get, by container.
    Images(BTreeMap<String, String>),
}

impl ImagesAhead<'_> {
    /// Deletes the jobs of rollouts that are over, and decides about the one under way. Nothing is decided
    /// until the update revision is stored, which `recorded` reports.
    pub fn plan(&self, rollout: &Rollout<'_>, pods: &[Pod<'_>], recorded: bool) -> Vec<ObjectWrites> {
        let update = &rollout.update;
        let rolls = update.name != rollout.current.name;
        // A job that names no revision is nobody else's either, but may belong to this rollout.
        let of_rollout = |job: &ImageJobView| {
            let hash = job.revision_hash.as_deref();
            rolls && hash.is_none_or(|hash| *hash == *update.hash)
        };
        let stale = self.jobs.iter().filter(|job| !job.deleting && !of_rollout(job));
        let mut writes: Vec<ObjectWrites> = stale.map(|job| delete(job, rolls)).collect();
        // A partition that may take pods back keeps the revision they would go back to, though all have left it.
        let is_left = rolls && pods.iter().any(|pod| !pod.updated);
        let revision = rollout.history.get(&update.name);
        if let Some(revision) = revision.filter(|_| is_left && recorded) {
            writes.extend(self.decide(rollout, pods, revision).map(ObjectWrites::of_pod));
        }
        writes
    }

    /// What is to be done for the rollout under way, if that is not done yet.
    fn decide(&self, rollout: &Rollout<'_>, pods: &[Pod<'_>], revision: &RevisionView) -> Option<Vec<Step>> {
        if revision.labels.get(PREDOWNLOAD_CREATED).is_some() || !self.enough_are_ready(pods) {
            return None;
        }
        let ignored = revision.labels.get(PREDOWNLOAD_IGNORED).is_some();
        let note = |labels: Value, reason: String| {
            history::label(&rollout.owner, revision, Intent::NOTE_IMAGES, labels, reason)
        };
        match self.worthwhile(rollout) {
            Err(_) if ignored => None,
            Err(why) => {
                let reason = format!("images are not pulled ahead: {why}");
                Some(vec![note(json!({PREDOWNLOAD_IGNORED: "true"}), reason)])
            }
            Ok(images) => {
                let (mut steps, blocked) = self.creations(rollout, pods, &images);
                if blocked {
                    // Its end brings the set back here.
                    return (!steps.is_empty()).then_some(steps);
                }
                let mut labels = json!({PREDOWNLOAD_CREATED: "true"});
                if ignored {
                    put(&mut labels, &[PREDOWNLOAD_IGNORED], Value::Null);
                }
                // Last: a job that could not be made is tried again.
                let reason = format!("{} images are pulled ahead", steps.len());
                steps.push(note(labels, reason));
                Some(steps)
            }
        }
    }

    /// The images that the rollout brings, by container, or why they are not worth pulling ahead.
    fn worthwhile(&self, rollout: &Rollout<'_>) -> Result<BTreeMap<String, String>, &'static str> {
        let (budget, strategy) = (rollout.budget, rollout.strategy);
        let at_once = budget.partition == 0 && budget.at_once >= budget.replicas;
        if let AheadOf::Images(images) = &self.change {
            return match () {
                () if strategy.on_delete => Err("pods change only when somebody deletes them"),
                () if at_once => Err("all pods may change at once"),
                () => Ok(images.clone()),
            };
        }
        if strategy.on_delete || !strategy.policy.is_in_place() {
            return Err("pods are not updated in place");
        }
        if budget.replicas <= SMALL {
            return Err("the set is small");
        }
        if at_once {
            return Err("all pods may change at once");
        }
        let change = rollout.change_between(&rollout.current, &rollout.update);
        change
            .map(|change| change.images)
            .map_err(|_| "the change needs new pods")
    }

    fn enough_are_ready(&self, pods: &[Pod<'_>]) -> bool {
        let wanted = self.min_updated_ready;
        let is_ready = |pod: &&Pod<'_>| pod.updated && pod.service.is_ready();
        pods.iter().filter(is_ready).take(wanted).count() == wanted
    }

    /// One job for each new image, by the names of the containers, and whether one has to wait for its name. A name
    /// that somebody else's job has is left to it.
    fn creations(
        &self,
        rollout: &Rollout<'_>,
        pods: &[Pod<'_>],
        images: &BTreeMap<String, String>,
    ) -> (Vec<Step>, bool) {
        let name = |container: &String| format!("{}-{container}", rollout.update.name);
        let is_job = |name: &str| self.jobs.iter().any(|job| *job.name == *name);
        let mut going = self.jobs.iter().filter(|job| job.deleting);
        let blocked = going.any(|job| images.keys().any(|container| *job.name == *name(container)));
        let is_known = |name: &str| self.taken_names.contains(name) || is_job(name);
        let shared = self.body(rollout, pods);
        let steps = images
            .iter()
            .map(|(container, image)| (name(container), image))
            .filter(|(name, _)| !is_known(name))
            .map(|(name, image)| create(rollout, shared.clone(), &name, image))
            .collect();
        (steps, blocked)
    }

    /// Names of the secrets to pull with, each once.
    fn secrets<'p>(&'p self, pods: &'p [Pod<'_>]) -> Vec<&'p str> {
        let of_template = self.template.pointer("/spec/imagePullSecrets");
        let of_template = of_template.and_then(Value::as_array).into_iter().flatten();
        let mut names: Vec<&str> = of_template
            .filter_map(|secret| secret.get("name")?.as_str())
            .collect();
        if names.is_empty() {
            let old = pods.iter().filter(|pod| !pod.updated);
            let mut known = BTreeSet::new();
            let of_pods = old.flat_map(|pod| &pod.view.pull_secrets);
            names.extend(of_pods.map(|name| &**name).filter(|name| known.insert(*name)));
        }
        names
    }

    /// What all jobs of a rollout have in common.
    fn body(&self, rollout: &Rollout<'_>, pods: &[Pod<'_>]) -> Value {
        let update = &rollout.update;
        let of_template = |path: &str| {
            let member = self.template.pointer(path);
            member.filter(|value| value.is_object()).cloned()
        };
        let mut labels = of_template("/metadata/labels").unwrap_or_else(|| json!({}));
        put(&mut labels, &[CONTROLLER_HASH], update.hash.as_str().into());
        let mut sandbox = json!({"labels": labels});
        if let Some(annotations) = of_template("/metadata/annotations") {
            put(&mut sandbox, &["annotations"], annotations);
        }
        let mut selector = self.selector.clone();
        selector.match_expressions.push(LabelRequirement {
            key: REVISION_HASH.into(),
            operator: "NotIn".into(),
            values: vec![update.name.clone(), update.hash.clone()],
        });
        let mut spec = json!({
            "podSelector": selector,
            "parallelism": self.parallelism,
            "pullPolicy": {"backoffLimit": 1, "timeoutSeconds": self.timeout_seconds},
            "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": KEPT},
            "sandboxConfig": sandbox,
        });
        let secrets = self.secrets(pods);
        if !secrets.is_empty() {
            put(&mut spec, &["pullSecrets"], json!(secrets));
        }
        json!({
            // The newest version, which plans know; it is sent in the one that is served.
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "ImagePullJob",
            "metadata": {
                "namespace": rollout.owner.namespace,
                "labels": labels,
                "ownerReferences": [rollout.owner.reference()],
            },
            "spec": spec,
        })
    }
}

fn create(rollout: &Rollout<'_>, mut body: Value, name: &str, image: &str) -> Step {
    put(&mut body, &["metadata", "name"], name.into());
    put(&mut body, &["spec", "image"], image.into());
    let (intent, resource) = (Intent::CREATE_PULL_JOB, kruise_api::imagepulljob::RESOURCE);
    let write = rollout.owner.create(intent, resource, name, body);
    let reason = format!("pods that are still to change will need {image}");
    Step {
        done: Some(EventNote::new(
            &events::CREATED_PULL_JOB,
            format!("created ImagePullJob {name} for image: {image}"),
        )),
        failed: Some(FailureNote::new(
            &events::FAILED_PULL_JOB,
            format!("failed to create ImagePullJob {name}: "),
        )),
        ..Step::new(write, reason)
    }
}

fn delete(job: &ImageJobView, rolls: bool) -> ObjectWrites {
    let reason = if rolls {
        "another rollout took the place of its own"
    } else {
        "the rollout is over"
    };
    let write = Write::Delete {
        intent: Intent::DELETE_PULL_JOB,
        target: Target {
            resource: kruise_api::imagepulljob::RESOURCE,
            namespace: job.namespace.to_string(),
            name: job.name.to_string(),
        },
        precondition: Precondition::Uid(job.uid.to_string()),
    };
    ObjectWrites::alone(Phase::Cleanup, write, reason)
}
