//! An EphemeralJob, pods, and a server that carries plans out.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kruise_api::ephemeraljob::EphemeralJob;
use kruise_plan_kit::{Explain, Memory, Plan, ResourceId, Write};
use kruise_plan_test_kit::{may_delete, merge, patch, text};
use kruise_plan_workloads::ephemeraljob::{Snapshot, plan};
use kruise_views::PodView;
use serde_json::{Value, json};

const API_VERSION: &str = "apps.kruise.io/v1alpha1";
const JOB_UID: &str = "job-uid";

pub(super) struct World {
    /// Null once it is deleted.
    pub(super) job: Value,
    pub(super) pods: BTreeMap<String, Value>,
    pub(super) now: Timestamp,
    pub(super) memory: Memory,
    version: u64,
}

impl World {
    pub(super) fn new() -> Self {
        let container = json!({"name": "dump", "image": "dump:1", "imagePullPolicy": "IfNotPresent",
            "terminationMessagePolicy": "File"});
        let job = json!({
            "apiVersion": API_VERSION, "kind": "EphemeralJob",
            "metadata": {"name": "dump", "namespace": "shop", "uid": JOB_UID, "resourceVersion": "1"},
            "spec": {"selector": {"matchLabels": {"app": "cart"}}, "template": {"ephemeralContainers": [container]}},
            "status": {},
        });
        Self {
            job,
            pods: BTreeMap::new(),
            now: "2026-01-01T01:00:00Z".parse().unwrap(),
            memory: Memory::default(),
            version: 1,
        }
    }

    fn bump(&mut self) -> Value {
        self.version += 1;
        json!(self.version.to_string())
    }

    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Somebody writes a member of the job.
    pub(super) fn edit(&mut self, member: &str, change: &Value) {
        if !change.is_null() {
            merge(&mut self.job[member], change);
            self.job["metadata"]["resourceVersion"] = self.bump();
        }
    }

    /// A pod as a line says, or what a line says of one that there is.
    pub(super) fn pod(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap().to_owned();
        let version = self.bump();
        let ago = 3600 - i64::try_from(self.pods.len()).unwrap();
        let created = text(self.now - SignedDuration::from_secs(ago));
        let now = text(self.now);
        let pod = self.pods.entry(name.clone()).or_insert_with(|| {
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"),
                    "creationTimestamp": created, "labels": {"app": "cart"}},
                "spec": {"containers": [{"name": "main", "image": "cart:1"}]}, "status": {"phase": "Running"},
            })
        });
        pod["metadata"]["resourceVersion"] = version;
        for word in words {
            match word {
                "deleting" => pod["metadata"]["deletionTimestamp"] = json!(now),
                "ended" => pod["status"]["phase"] = json!("Succeeded"),
                "unselected" => pod["metadata"]["labels"] = json!({"app": "other"}),
                "selected" => pod["metadata"]["labels"] = json!({"app": "cart"}),
                _ => {
                    let (name, state) = word
                        .split_once('=')
                        .unwrap_or_else(|| panic!("a pod that is {word}?"));
                    let (job, name) = name
                        .split_once(':')
                        .map_or((JOB_UID, name), |(_, name)| ("another", name));
                    hold(pod, job, name, state, &now);
                }
            }
        }
    }

    /// The pods that the job selects.
    pub(super) fn selected(&self) -> Vec<Arc<PodView>> {
        let Ok(job) = EphemeralJob::from_value(self.job.clone()) else {
            return Vec::new();
        };
        let pods = self
            .pods
            .values()
            .map(|pod| serde_json::from_str(&pod.to_string()).unwrap());
        pods.filter(|pod: &PodView| job.spec.selector.matches_by(|key| pod.labels.get(key)))
            .map(Arc::new)
            .collect()
    }

    pub(super) fn plan(&self, explain: Explain) -> Plan {
        let job = EphemeralJob::from_value(self.job.clone()).unwrap();
        let pods = self.selected();
        let snapshot = Snapshot {
            job: &job,
            api_version: API_VERSION,
            pods: &pods,
            memory: &self.memory,
            explain,
        };
        plan(&snapshot, self.now)
    }

    pub(super) fn execute(&mut self, plan: &Plan) {
        for step in plan.writes.iter().flat_map(|object| &object.steps) {
            let version = self.bump();
            let target = step.write.target();
            let object = if target.resource == ResourceId::PODS {
                self.pods.get_mut(&target.name).unwrap()
            } else {
                &mut self.job
            };
            match &step.write {
                Write::Patch {
                    part,
                    patch: change,
                    precondition,
                    ..
                } => {
                    let done = patch(object, (*part, change, precondition), &mut None, version);
                    assert_eq!(done, Ok(()), "{}", step.write);
                }
                Write::Delete { precondition, .. } => {
                    assert_eq!(may_delete(object, precondition), Ok(()), "{}", step.write);
                    *object = Value::Null;
                }
                Write::Create { .. } => panic!("a job creates nothing: {}", step.write),
            }
        }
        if let Some(status) = &plan.status {
            assert_eq!(self.job["metadata"]["resourceVersion"], *status.version);
            merge(&mut self.job, &status.patch);
            self.job["metadata"]["resourceVersion"] = self.bump();
        }
    }

    /// Each as `Type Status Reason: message`.
    pub(super) fn conditions(&self) -> Vec<String> {
        let conditions = self.job["status"]["conditions"].as_array().into_iter().flatten();
        conditions
            .map(|one| {
                let [kind, status, reason, message] = ["type", "status", "reason", "message"]
                    .map(|member| one[member].as_str().unwrap_or_default());
                format!("{kind} {status} {reason}: {message}")
            })
            .collect()
    }
}

/// The pod holds an ephemeral container in this state.
fn hold(pod: &mut Value, job: &str, name: &str, state: &str, now: &str) {
    let upsert = |list: &mut Value, item: Value| {
        if list.is_null() {
            *list = json!([]);
        }
        let list = list.as_array_mut().unwrap();
        match list.iter_mut().find(|one| one["name"] == item["name"]) {
            Some(one) => *one = item,
            None => list.push(item),
        }
    };
    let containers = &mut pod["spec"]["ephemeralContainers"];
    let holds = containers
        .as_array()
        .is_some_and(|list| list.iter().any(|one| one["name"] == name));
    if !holds {
        let env = json!([{"name": "KRUISE_EJOB_ID", "value": job}]);
        upsert(containers, json!({"name": name, "image": "dump:1", "env": env}));
    }
    let state = match state {
        "added" => return,
        "waits" => json!({"waiting": {"reason": "ContainerCreating"}}),
        "unrunnable" => json!({"waiting": {"reason": "RunContainerError"}}),
        "runs" => json!({"running": {"startedAt": now}}),
        code => {
            let code: i32 = code.parse().unwrap();
            json!({"terminated": {"exitCode": code, "finishedAt": now}})
        }
    };
    upsert(
        &mut pod["status"]["ephemeralContainerStatuses"],
        json!({"name": name, "state": state}),
    );
}
