//! Jobs: pods that run to their end, as many as specified, a few side by side.
//!
//! A pod that failed is followed by another one after ten seconds, then twenty, and so on; more failures than
//! `backoffLimit` end the job, and so does its deadline. Pods that ended are counted once, also if they are deleted
//! later. A suspended job has no pods. A job that ended is deleted when its time to live is over.
//!
//! Not there: indexed completion, policies for success and for failures of pods, finalizers of pods, adoption.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::objects::{controlled, controller, number, ready_since};
use crate::api::Api;
use crate::object::{at, get_metadata, metadata_text, seconds};
use crate::store::Key;
use crate::world::{Actor, Client, Feed, Timers, pod_path};

const USER: &str = "system:serviceaccount:kube-system:job-controller";
const COMPONENT: &str = "job-controller";

/// From the first failure of a pod to the next pod; it doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// Runs jobs.
#[derive(Clone, Debug)]
pub(crate) struct Jobs {
    feed: Feed,
    pods: Feed,
    /// Jobs that wait for a deadline, for the next pod, or for their deletion.
    timers: Timers<Key>,
    /// The jobs of pods, to find the job of a deleted pod.
    owners: BTreeMap<Key, Key>,
    /// What was counted, by the uid of the job.
    counted: BTreeMap<String, Counted>,
    events: bool,
}

/// The pods of a job that have ended.
#[derive(Clone, Debug, Default)]
struct Counted {
    pods: BTreeSet<String>,
    succeeded: i64,
    failed: i64,
    /// When the last one failed.
    failure: Option<Timestamp>,
}

/// The end of a job: type, reason and message of its condition.
type End = (&'static str, &'static str, &'static str);

impl Jobs {
    pub(crate) fn new(events: bool) -> Self {
        Self {
            feed: Feed::new("batch", "jobs"),
            pods: Feed::new("", "pods"),
            timers: Timers::new(),
            owners: BTreeMap::new(),
            counted: BTreeMap::new(),
            events,
        }
    }

    /// The job whose pod changed.
    fn owner(&mut self, api: &Api, key: &Key) -> Option<Key> {
        let Some(pod) = self.pods.object(api, key) else {
            return self.owners.remove(key);
        };
        let owner = controller(&pod).filter(|owner| {
            owner.get("kind") == Some(&"Job".into()) && owner.get("apiVersion") == Some(&"batch/v1".into())
        })?;
        let owner = Key::new(&key.namespace, owner.get("name").and_then(Value::as_str)?);
        self.owners.insert(key.clone(), owner.clone());
        Some(owner)
    }

    /// Counts the pods that have ended since the last time.
    fn count(&mut self, job: &Value, pods: &[(Key, Arc<Value>)], now: Timestamp) -> Counted {
        let uid = metadata_text(job, "uid");
        let ended = pods.iter().filter_map(|(_, pod)| {
            let phase = phase(pod);
            let is_over = matches!(phase, "Succeeded" | "Failed");
            is_over.then(|| (metadata_text(pod, "uid").to_owned(), phase == "Succeeded"))
        });
        let known = self.counted.entry(uid.to_owned()).or_insert_with(|| {
            let (succeeded, failed) = (number(job, "/status/succeeded"), number(job, "/status/failed"));
            let pods = ended.clone().map(|(uid, _)| uid);
            Counted {
                // What an earlier controller counted is in the status.
                pods: if succeeded + failed > 0 {
                    pods.collect()
                } else {
                    BTreeSet::new()
                },
                succeeded,
                failed,
                failure: None,
            }
        });
        for (uid, well) in ended {
            if known.pods.insert(uid) {
                known.succeeded += i64::from(well);
                known.failed += i64::from(!well);
                known.failure = if well { known.failure } else { Some(now) };
            }
        }
        known.clone()
    }

    /// Deletes a job whose time to live after its end is over.
    fn expire(&mut self, api: &mut Api, key: &Key, (job, over): (&Value, Timestamp), now: Timestamp) {
        let ttl = at(job, "/spec/ttlSecondsAfterFinished").and_then(Value::as_i64);
        let Some(goes) = ttl.and_then(|ttl| later(over, ttl)) else {
            return;
        };
        self.timers
            .set(key.clone(), Some(goes).filter(|goes| *goes > now));
        if goes <= now {
            let mut client = Client { api, user: USER, now };
            client.delete(&path(key), &json!({"propagationPolicy": "Background"}));
        }
    }

    fn sync(&mut self, api: &mut Api, key: &Key, now: Timestamp) {
        self.timers.set(key.clone(), None);
        let Some(job) = self.feed.object(api, key) else {
            return;
        };
        if !get_metadata(&job, "deletionTimestamp").is_null() {
            return;
        }
        if let Some(over) = ended_at(&job) {
            self.expire(api, key, (&job, over), now);
            return;
        }
        let pods = controlled(api, &job, "", "pods");
        let counted = self.count(&job, &pods, now);
        let running: Vec<&(Key, Arc<Value>)> = pods
            .iter()
            .filter(|(_, pod)| !matches!(phase(pod), "Succeeded" | "Failed"))
            .collect();
        let active: Vec<&(Key, Arc<Value>)> = running
            .iter()
            .copied()
            .filter(|(_, pod)| get_metadata(pod, "deletionTimestamp").is_null())
            .collect();
        let started = at(&job, "/status/startTime").and_then(Value::as_str);
        let started: Option<Timestamp> = started.and_then(|text| text.parse().ok());
        let is_suspended = at(&job, "/spec/suspend") == Some(&true.into());
        let end = end(&job, &counted, &active, started, now).filter(|_| !is_suspended);
        let mut client = Client { api, user: USER, now };
        let pass = Pass {
            key,
            job: &job,
            now,
            events: self.events,
        };
        let left = if end.is_some() || is_suspended {
            for (pod, _) in &active {
                drop(client.delete(&pod_path(pod), &json!({})));
            }
            0
        } else {
            let (count, again) = pass.scale(&mut client, &counted, &active, running.len());
            let deadline = at(&job, "/spec/activeDeadlineSeconds").and_then(Value::as_i64);
            let deadline = deadline.and_then(|seconds| later(started.unwrap_or(now), seconds));
            let times = [again, deadline].into_iter().flatten();
            self.timers.set(key.clone(), times.filter(|at| *at > now).min());
            count
        };
        let since = if is_suspended {
            None
        } else {
            Some(started.unwrap_or(now))
        };
        pass.report(&mut client, &counted, (left, &active), since, end);
    }
}

/// One look at a job.
struct Pass<'a> {
    key: &'a Key,
    job: &'a Value,
    now: Timestamp,
    events: bool,
}

impl Pass<'_> {
    /// Creates or deletes pods. Returns how many are active then, and when the next one may be created.
    fn scale(
        &self,
        client: &mut Client<'_>,
        counted: &Counted,
        active: &[&(Key, Arc<Value>)],
        running: usize,
    ) -> (i64, Option<Timestamp>) {
        let have = count(active.len());
        let parallel = number(self.job, "/spec/parallelism");
        let wanted = match at(self.job, "/spec/completions").and_then(Value::as_i64) {
            Some(completions) => parallel.min(completions - counted.succeeded).max(0),
            // Once one has succeeded, no further one is created.
            None if counted.succeeded > 0 => have.min(parallel),
            None => parallel,
        };
        if have > wanted {
            let surplus = usize::try_from(have - wanted).unwrap_or_default();
            for (pod, _) in active.iter().rev().take(surplus) {
                client.delete(&pod_path(pod), &json!({}));
            }
            return (wanted, None);
        }
        let missing = wanted - count(running).max(have);
        let next = counted.failure.and_then(|failure| {
            let doublings = u32::try_from(counted.failed - 1).unwrap_or_default().min(10);
            let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
            failure.checked_add(pause).ok()
        });
        if missing <= 0 {
            return (have, None);
        }
        if next.is_some_and(|next| next > self.now) {
            return (have, next);
        }
        (0..missing).for_each(|_| self.create(client));
        (have + missing, None)
    }

    fn create(&self, client: &mut Client<'_>) {
        let part = |pointer: &str| self.job.pointer(pointer).cloned().unwrap_or_default();
        let reference = json!({"apiVersion": "batch/v1", "kind": "Job", "name": self.key.name,
            "uid": metadata_text(self.job, "uid"), "controller": true, "blockOwnerDeletion": true});
        let pod = json!({
            "metadata": {
                "generateName": format!("{}-", self.key.name), "ownerReferences": [reference],
                "labels": part("/spec/template/metadata/labels"),
                "annotations": part("/spec/template/metadata/annotations"),
            },
            "spec": part("/spec/template/spec"),
        });
        let created = client.post(&format!("/api/v1/namespaces/{}/pods", self.key.namespace), &pod);
        let created: Option<Value> = created
            .filter(|response| response.code == 201)
            .and_then(|response| serde_json::from_slice(&response.body).ok());
        if let Some(pod) = created {
            let message = format!("Created pod: {}", metadata_text(&pod, "name"));
            self.note(client, "Normal", "SuccessfulCreate", &message);
        }
    }

    fn note(&self, client: &mut Client<'_>, kind: &str, reason: &str, message: &str) {
        if self.events {
            client.event(self.job, COMPONENT, kind, reason, message);
        }
    }

    fn report(
        &self,
        client: &mut Client<'_>,
        counted: &Counted,
        (left, active): (i64, &[&(Key, Arc<Value>)]),
        started: Option<Timestamp>,
        end: Option<End>,
    ) {
        let current = self.job.get("status").unwrap_or(&Value::Null);
        let ready = active.iter().filter(|(_, pod)| ready_since(pod).is_some());
        let ready = if left == 0 { 0 } else { count(ready.count()) };
        let mut status = Map::new();
        for (name, value) in [
            ("active", left),
            ("succeeded", counted.succeeded),
            ("failed", counted.failed),
            ("ready", ready),
        ] {
            if current.get(name).and_then(Value::as_i64).unwrap_or_default() != value {
                status.insert(name.into(), value.into());
            }
        }
        let now = seconds(self.now);
        let since = started.map(seconds).map_or(Value::Null, Value::from);
        if current.get("startTime").unwrap_or(&Value::Null) != &since {
            status.insert("startTime".into(), since);
        }
        if let Some((kind, reason, message)) = end {
            let before = if kind == "Complete" {
                "SuccessCriteriaMet"
            } else {
                "FailureTarget"
            };
            let conditions = [before, kind].map(|kind| {
                json!({"type": kind, "status": "True", "reason": reason, "message": message,
                    "lastProbeTime": now, "lastTransitionTime": now})
            });
            status.insert("conditions".into(), json!(conditions));
            if kind == "Complete" {
                status.insert("completionTime".into(), now.into());
                self.note(client, "Normal", "Completed", "Job completed");
            } else {
                self.note(client, "Warning", reason, message);
            }
        }
        if !status.is_empty() {
            client.merge(&format!("{}/status", path(self.key)), &json!({"status": status}));
        }
    }
}

impl Actor for Jobs {
    fn boxed(&self) -> Box<dyn Actor> {
        Box::new(self.clone())
    }

    fn user(&self) -> Option<&'static str> {
        Some(USER)
    }

    fn act(&mut self, api: &mut Api, now: Timestamp) {
        let mut due: BTreeSet<Key> = self.feed.poll(api);
        for pod in self.pods.poll(api) {
            due.extend(self.owner(api, &pod));
        }
        while let Some(key) = self.timers.pop(now) {
            due.insert(key);
        }
        for key in due {
            self.sync(api, &key, now);
        }
    }

    fn restart(&mut self) {
        self.feed.rewind();
    }

    fn due(&self) -> Option<Timestamp> {
        self.timers.next()
    }
}

fn path(key: &Key) -> String {
    format!("/apis/batch/v1/namespaces/{}/jobs/{}", key.namespace, key.name)
}

fn count(items: usize) -> i64 {
    i64::try_from(items).unwrap_or(i64::MAX)
}

fn later(from: Timestamp, seconds: i64) -> Option<Timestamp> {
    from.checked_add(SignedDuration::from_secs(seconds)).ok()
}

fn phase(pod: &Value) -> &str {
    at(pod, "/status/phase")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// When a job ended, if it has.
fn ended_at(job: &Value) -> Option<Timestamp> {
    let conditions = at(job, "/status/conditions").and_then(Value::as_array)?;
    let over = conditions.iter().find(|one| {
        let kind = one.get("type").and_then(Value::as_str);
        one.get("status") == Some(&"True".into()) && matches!(kind, Some("Complete" | "Failed"))
    })?;
    over.get("lastTransitionTime")?.as_str()?.parse().ok()
}

/// Why a job is over.
fn end(
    job: &Value,
    counted: &Counted,
    active: &[&(Key, Arc<Value>)],
    started: Option<Timestamp>,
    now: Timestamp,
) -> Option<End> {
    let limit = number(job, "/spec/backoffLimit");
    let restarts: i64 = active.iter().map(|(_, pod)| restarts(pod)).sum();
    let restarts_in_place = job.pointer("/spec/template/spec/restartPolicy") == Some(&"OnFailure".into());
    if counted.failed > limit || (restarts_in_place && restarts > 0 && restarts >= limit.max(1)) {
        let message = "Job has reached the specified backoff limit";
        return Some(("Failed", "BackoffLimitExceeded", message));
    }
    let deadline = at(job, "/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    let deadline = deadline
        .zip(started)
        .and_then(|(seconds, started)| later(started, seconds));
    if deadline.is_some_and(|deadline| deadline <= now) {
        let message = "Job was active longer than specified deadline";
        return Some(("Failed", "DeadlineExceeded", message));
    }
    let is_complete = match at(job, "/spec/completions").and_then(Value::as_i64) {
        Some(completions) => counted.succeeded >= completions,
        None => counted.succeeded > 0 && active.is_empty(),
    };
    let message = "Reached expected number of succeeded pods";
    is_complete.then_some(("Complete", "CompletionsReached", message))
}

/// How often containers of a pod began again.
fn restarts(pod: &Value) -> i64 {
    let lists = ["initContainerStatuses", "containerStatuses"];
    let containers = lists
        .iter()
        .filter_map(|list| pod.get("status")?.get(*list)?.as_array());
    let counts = containers
        .flatten()
        .filter_map(|one| one.get("restartCount")?.as_i64());
    counts.sum()
}
