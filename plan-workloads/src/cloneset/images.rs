//! Images ahead of a rollout: jobs that have the nodes of pods which are still to change pull what they will need.
//!
//! # What it promises
//! - There is one job for each container whose image is new, made once for a rollout: a job that ended and was cleaned up
//!   is not made again, unless the rollout begins anew. A job of the same name that is still going away is waited for.
//! - Nothing is pulled ahead of a rollout that has no time for it, or whose pods may be recreated elsewhere. That is looked
//!   at again when the set changes, until there are jobs.
//! - Jobs go with their rollout: when it is over, and when another takes its place.
//! - No pod waits for any of it.

use go_compat::{IntOrString, Rounding};
use jiff::Timestamp;
use kruise_api::{
    meta::LabelRequirement,
    names::{CONTROLLER_HASH, PREDOWNLOAD_CREATED, PREDOWNLOAD_IGNORED, REVISION_HASH},
};
use kruise_plan_kit::{
    Body, Chain, Intent, Pace, Part, Patch, Precondition, ResourceId, Step, Target, Wave, Write, events,
    inplace::Change, put,
};
use kruise_views::{ImageJobView, RevisionView};
use serde_json::{Value, json};

use super::{
    history::{self, Found},
    members::{Member, Side},
    mover::Mover,
    numbers::Limits,
    observe::Observed,
    templates::Templates,
    writes,
};

/// Sets that are not larger are updated before their nodes could pull anything.
const SMALL: i32 = 3;
/// Nodes that pull at a time, unless the set says.
const PARALLELISM: i32 = 1;
/// Seconds that one pull may take, unless the set says.
const TIMEOUT: i32 = 300;
/// Seconds that a finished job stays to be looked at.
const KEPT: i32 = 600;

/// Deletes the jobs of rollouts that are over, and decides about the one under way.
pub(super) fn tend(
    observed: &Observed<'_>,
    found: &Found,
    members: &[Member<'_>],
    limits: Limits,
    now: Timestamp,
) -> Vec<Chain> {
    if !observed.options.images_ahead {
        return Vec::new();
    }
    let (update, current) = (&found.revisions.update, &found.revisions.current);
    let rolls = update.name != current.name;
    // A job that names no revision is nobody else's either, but may belong to this rollout.
    let of_rollout = |job: &ImageJobView| {
        rolls
            && job
                .revision_hash
                .as_deref()
                .is_none_or(|hash| *hash == *update.hash)
    };
    let jobs = observed.pull_jobs.iter();
    let stale = jobs.filter(|job| !job.deleting && !of_rollout(job));
    let mut chains: Vec<Chain> = stale
        .map(|job| chain(Wave::Cleanup, vec![delete(job, rolls)]))
        .collect();
    // A revision that is about to be written is looked at once it is.
    let revision = observed.revisions.iter().find(|view| *view.name == *update.name);
    // A partition that may take pods back keeps the revision they would go back to, though all have left it.
    let is_left = rolls && members.iter().any(|member| member.side == Side::Old);
    if let Some(revision) = revision.filter(|_| is_left && found.chain.is_none()) {
        chains.extend(decide(observed, found, members, limits, revision, now));
    }
    chains
}

/// What is to be done for the rollout under way, if that is not done yet.
fn decide(
    observed: &Observed<'_>,
    found: &Found,
    members: &[Member<'_>],
    limits: Limits,
    revision: &RevisionView,
    now: Timestamp,
) -> Option<Chain> {
    if revision.labels.get(PREDOWNLOAD_CREATED).is_some() || !enough_are_ready(observed, members) {
        return None;
    }
    let ignored = revision.labels.get(PREDOWNLOAD_IGNORED).is_some();
    match change(observed, found, limits, now) {
        Err(_) if ignored => None,
        Err(why) => {
            let labels = json!({PREDOWNLOAD_IGNORED: "true"});
            let step = label(
                observed,
                revision,
                labels,
                format!("images are not pulled ahead: {why}"),
            );
            Some(chain(Wave::Pods, vec![step]))
        }
        Ok(change) => {
            let (mut steps, blocked) = creations(observed, found, &change);
            if blocked {
                // Its end brings the set back here.
                return (!steps.is_empty()).then(|| chain(Wave::Pods, steps));
            }
            let mut labels = json!({PREDOWNLOAD_CREATED: "true"});
            if ignored {
                put(&mut labels, &[PREDOWNLOAD_IGNORED], Value::Null);
            }
            // Last: a job that could not be made is tried again.
            let reason = format!("{} images are pulled ahead", steps.len());
            steps.push(label(observed, revision, labels, reason));
            Some(chain(Wave::Pods, steps))
        }
    }
}

/// Have as many updated pods shown that the images are good as the set asks for?
fn enough_are_ready(observed: &Observed<'_>, members: &[Member<'_>]) -> bool {
    let rolling = observed.set.spec.update_strategy.rolling_update.as_ref();
    let strategy = rolling.and_then(|rolling| rolling.in_place_update_strategy.as_ref());
    let wanted = strategy.and_then(|strategy| strategy.image_pre_download_min_updated_ready_pods);
    let wanted = usize::try_from(wanted.unwrap_or(0)).unwrap_or(0);
    let is_ready = |member: &&Member<'_>| member.side == Side::New && member.service.is_ready();
    members.iter().filter(is_ready).take(wanted).count() == wanted
}

/// The change that the rollout makes, or why its images are not worth pulling ahead.
fn change(
    observed: &Observed<'_>,
    found: &Found,
    limits: Limits,
    now: Timestamp,
) -> Result<Change, &'static str> {
    let strategy = &observed.set.spec.update_strategy;
    let rolling = strategy
        .rolling_update
        .as_ref()
        .filter(|_| strategy.kind != "OnDelete")
        .filter(|rolling| matches!(&*rolling.pod_update_policy, "InPlaceIfPossible" | "InPlaceOnly"))
        .ok_or("pods are not updated in place")?;
    if limits.replicas <= SMALL {
        return Err("the set is small");
    }
    let default = IntOrString::String("20%".into());
    let at_once = rolling.max_unavailable.as_ref().unwrap_or(&default);
    if limits.partition == 0 && at_once.scaled_b(limits.replicas, Rounding::Down) >= limits.replicas {
        return Err("all pods may change at once");
    }
    let templates = Templates::new(&found.sorted);
    Mover::new(observed, &found.revisions.update, &templates, now)
        .change_from(&found.revisions.current)
        .map_err(|_| "the change needs new pods")
}

/// One job for each new image, by the names of the containers, and whether one has to wait for its name. A name that
/// somebody else's job has is left to it.
fn creations(observed: &Observed<'_>, found: &Found, change: &Change) -> (Vec<Step>, bool) {
    let update = &found.revisions.update;
    let shared = body(observed, found);
    let is_known = |name: &str| {
        observed.memory.taken_names.contains(name) || observed.pull_jobs.iter().any(|job| *job.name == *name)
    };
    let is_going = |name: &str| {
        let mut jobs = observed.pull_jobs.iter();
        jobs.any(|job| job.deleting && *job.name == *name)
    };
    let name = |container: &String| format!("{}-{container}", update.name);
    let blocked = change.images.keys().any(|container| is_going(&name(container)));
    let wanted = change
        .images
        .iter()
        .map(|(container, image)| (name(container), image));
    let steps = wanted
        .filter(|(name, _)| !is_known(name))
        .map(|(name, image)| create(observed, shared.clone(), name, image))
        .collect();
    (steps, blocked)
}

/// What all jobs of a rollout have in common.
fn body(observed: &Observed<'_>, found: &Found) -> Value {
    let (set, update) = (observed.set, &found.revisions.update);
    let template = &set.spec.template;
    let of_template = |path: &str| template.pointer(path).filter(|value| value.is_object()).cloned();
    let mut labels = of_template("/metadata/labels").unwrap_or_else(|| json!({}));
    put(&mut labels, &[CONTROLLER_HASH], update.hash.as_str().into());
    let mut sandbox = json!({"labels": labels});
    if let Some(annotations) = of_template("/metadata/annotations") {
        put(&mut sandbox, &["annotations"], annotations);
    }
    let mut pods = set.spec.selector.clone();
    pods.match_expressions.push(LabelRequirement {
        key: REVISION_HASH.into(),
        operator: "NotIn".into(),
        values: vec![update.name.clone(), update.hash.clone()],
    });
    let rolling = set.spec.update_strategy.rolling_update.as_ref();
    let strategy = rolling.and_then(|rolling| rolling.in_place_update_strategy.as_ref());
    let parallelism = strategy.and_then(|strategy| strategy.image_pre_download_parallelism.as_ref());
    let timeout = strategy.and_then(|strategy| strategy.image_pre_download_timeout_seconds);
    let mut spec = json!({
        "podSelector": pods,
        "parallelism": parallelism.and_then(count).unwrap_or(PARALLELISM),
        "pullPolicy": {"backoffLimit": 1, "timeoutSeconds": timeout.filter(|&seconds| seconds >= 0).unwrap_or(TIMEOUT)},
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": KEPT},
        "sandboxConfig": sandbox,
    });
    let secrets = template
        .pointer("/spec/imagePullSecrets")
        .and_then(Value::as_array);
    let secrets: Vec<&Value> = secrets
        .into_iter()
        .flatten()
        .filter_map(|it| it.get("name"))
        .collect();
    if !secrets.is_empty() {
        put(&mut spec, &["pullSecrets"], json!(secrets));
    }
    json!({
        "apiVersion": observed.api_version,
        "kind": "ImagePullJob",
        "metadata": {
            "namespace": set.metadata.namespace,
            "labels": labels,
            "ownerReferences": [writes::owner_reference(observed)],
        },
        "spec": spec,
    })
}

/// A number of nodes as a job may have it. Conversion lets a percentage through, which no job takes.
fn count(value: &IntOrString) -> Option<i32> {
    let count = match value {
        IntOrString::Int(count) => Some(*count),
        IntOrString::String(text) => text.parse().ok(),
    };
    count.filter(|&count| count >= 0)
}

fn create(observed: &Observed<'_>, mut body: Value, name: String, image: &str) -> Step {
    put(&mut body, &["metadata", "name"], name.as_str().into());
    put(&mut body, &["spec", "image"], image.into());
    let set = &observed.set.metadata;
    let done = format!("created ImagePullJob {name} for image: {image}");
    let failed = format!("failed to create ImagePullJob {name}: ");
    Step {
        write: Write::Create {
            intent: Intent::CreatePullJob,
            target: Target {
                resource: ResourceId::IMAGE_PULL_JOBS,
                namespace: set.namespace.clone(),
                name,
            },
            body: Body::from(body),
            owner_uid: set.uid.clone(),
        },
        reason: format!("pods that are still to change will need {image}"),
        done: Some(writes::event(&events::CREATED_PULL_JOB, done)),
        failed: Some(writes::failure(&events::FAILED_PULL_JOB, failed)),
    }
}

fn delete(job: &ImageJobView, rolls: bool) -> Step {
    let reason = if rolls {
        "another rollout took the place of its own"
    } else {
        "the rollout is over"
    };
    let write = Write::Delete {
        intent: Intent::DeletePullJob,
        target: Target {
            resource: ResourceId::IMAGE_PULL_JOBS,
            namespace: job.namespace.to_string(),
            name: job.name.to_string(),
        },
        precondition: Precondition::Uid(job.uid.to_string()),
    };
    step(write, reason.into())
}

fn label(observed: &Observed<'_>, revision: &RevisionView, labels: Value, reason: String) -> Step {
    let write = Write::Patch {
        intent: Intent::NoteImages,
        target: history::target(observed, &revision.name),
        part: Part::Main,
        patch: Patch::Merge(json!({"metadata": {"labels": labels}})),
        precondition: Precondition::Uid(revision.uid.to_string()),
    };
    step(write, reason)
}

fn step(write: Write, reason: String) -> Step {
    Step {
        write,
        reason,
        done: None,
        failed: None,
    }
}

fn chain(wave: Wave, steps: Vec<Step>) -> Chain {
    Chain {
        wave,
        pace: Pace::Bounded,
        steps,
    }
}
