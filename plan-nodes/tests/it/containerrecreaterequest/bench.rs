//! One pod, requests for it, and a server that carries plans out. The agent and the kubelet act when a test says so.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kruise_api::containerrecreaterequest::ContainerRecreateRequest;
use kruise_plan_kit::{Explain, Memory, Need, Plan, ResourceId, Write};
use kruise_plan_nodes::containerrecreaterequest::{Snapshot, plan};
use kruise_plan_test_kit::{
    Agenda, condition, decode, fingerprint, may_delete, merge, patch, planned, set_condition, text,
};
use kruise_views::PodView;
use serde_json::{Value, json};

pub(super) const ACTIVE: &str = "crr.apps.kruise.io/active";
pub(super) const FINALIZER: &str = "crr.apps.kruise.io/unready-acquired";
pub(super) const POD: &str = "cart-0";
const POD_UID: &str = "uid-cart-0";

#[derive(Clone)]
pub(super) struct Bench {
    pub(super) now: Timestamp,
    /// The pod, if there is one.
    pub(super) pod: Option<Value>,
    /// Does the cache have the pod?
    pub(super) is_cached: bool,
    requests: BTreeMap<String, Value>,
    /// Writes that were carried out: `verb name`, and `status name`.
    pub(super) written: Vec<String>,
    agenda: Agenda<String>,
    version: u64,
}

/// A container that began a day ago.
fn container(name: &str) -> Value {
    json!({"name": name, "containerID": format!("containerd://{name}-0"), "restartCount": 0, "ready": true,
        "state": {"running": {"startedAt": "2025-12-31T00:00:00Z"}}})
}

impl Bench {
    /// A pod in service, with two containers, a native sidecar and the readiness gate.
    pub(super) fn new() -> Self {
        let mut pod = json!({
            "kind": "Pod",
            "metadata": {"name": POD, "namespace": "shop", "uid": POD_UID, "resourceVersion": "1"},
            "spec": {
                "nodeName": "n1", "readinessGates": [{"conditionType": "KruisePodReady"}],
                "initContainers": [{"name": "proxy", "restartPolicy": "Always"}],
                "containers": [{"name": "app"}, {"name": "log"}],
            },
            "status": {
                "phase": "Running", "containerStatuses": [container("app"), container("log")],
                "initContainerStatuses": [container("proxy")], "conditions": [],
            },
        });
        for kind in ["ContainersReady", "KruisePodReady", "Ready"] {
            set_condition(&mut pod, kind, "True", "2025-12-31T00:00:00Z");
        }
        Self {
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            pod: Some(pod),
            is_cached: true,
            requests: BTreeMap::new(),
            written: Vec::new(),
            agenda: Agenda::default(),
            version: 1,
        }
    }

    /// With a request of this name for the pod.
    pub(super) fn with(name: &str, spec: &Value) -> Self {
        let mut bench = Self::new();
        bench.request(name, spec);
        bench
    }

    /// A new request as the webhook leaves it, merged with this specification.
    pub(super) fn request(&mut self, name: &str, spec: &Value) {
        let mut full =
            json!({"podName": POD, "containers": [{"name": "app"}], "strategy": {"failurePolicy": "Fail"}});
        merge(&mut full, spec);
        let labels = json!({(ACTIVE): "true", "crr.apps.kruise.io/pod-uid": POD_UID, "crr.apps.kruise.io/node-name": "n1"});
        self.store(json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest", "spec": full,
            "metadata": {"name": name, "namespace": "shop", "labels": labels, "creationTimestamp": text(self.now)},
        }));
    }

    /// Stores a request as it is.
    pub(super) fn store(&mut self, mut request: Value) {
        let name = request["metadata"]["name"].as_str().unwrap().to_owned();
        request["metadata"]["uid"] = json!(format!("uid-{name}"));
        request["metadata"]["resourceVersion"] = self.bump();
        self.requests.insert(name, request);
    }

    pub(super) fn get(&self, name: &str) -> &Value {
        self.requests.get(name).unwrap_or(&Value::Null)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.requests.keys().cloned().collect()
    }

    fn bump(&mut self) -> Value {
        self.version += 1;
        json!(self.version.to_string())
    }

    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    pub(super) fn pass_millis(&mut self, millis: i64) {
        self.now += SignedDuration::from_millis(millis);
    }

    /// The agent reports.
    pub(super) fn report(&mut self, name: &str, status: &Value) {
        let version = self.bump();
        let request = self.requests.get_mut(name).unwrap();
        merge(request, &json!({ "status": status }));
        request["metadata"]["resourceVersion"] = version;
    }

    /// The agent has begun.
    pub(super) fn begin(&mut self, name: &str) {
        self.report(name, &json!({"phase": "Recreating"}));
    }

    /// The agent has dealt with every container.
    pub(super) fn complete(&mut self, name: &str) {
        let time = text(self.now);
        self.report(
            name,
            &json!({"phase": "Completed", "completionTime": time, "message": ""}),
        );
    }

    /// Somebody deletes a request: it stays while it has finalizers.
    pub(super) fn delete(&mut self, name: &str) {
        let (version, time) = (self.bump(), text(self.now));
        let request = self.requests.get_mut(name).unwrap();
        request["metadata"]["deletionTimestamp"] = json!(time);
        request["metadata"]["resourceVersion"] = version;
        self.collect(name);
    }

    fn collect(&mut self, name: &str) {
        let Some(request) = self.requests.get(name) else {
            return;
        };
        let metadata = &request["metadata"];
        let mut finalizers = metadata["finalizers"].as_array().into_iter().flatten();
        if metadata["deletionTimestamp"].is_string() && finalizers.next().is_none() {
            self.requests.remove(name);
        }
    }

    /// Changes the pod as somebody else would.
    pub(super) fn touch(&mut self, change: impl FnOnce(&mut Value)) {
        let version = self.bump();
        let pod = self.pod.as_mut().unwrap();
        change(pod);
        pod["metadata"]["resourceVersion"] = version;
    }

    fn status_of(pod: &mut Value, name: &str) -> Value {
        let lists = ["containerStatuses", "initContainerStatuses"];
        let all = lists
            .iter()
            .flat_map(|list| pod["status"][*list].as_array().unwrap().clone());
        all.into_iter().find(|one| one["name"] == name).unwrap()
    }

    fn set_status(pod: &mut Value, status: &Value) {
        for list in ["containerStatuses", "initContainerStatuses"] {
            for one in pod["status"][list].as_array_mut().unwrap() {
                if one["name"] == status["name"] {
                    *one = status.clone();
                }
            }
        }
    }

    /// A container has ended.
    pub(super) fn end(&mut self, name: &str) {
        self.touch(|pod| {
            let mut status = Self::status_of(pod, name);
            status["ready"] = json!(false);
            status["state"] = json!({"terminated": {"exitCode": 137}});
            Self::set_status(pod, &status);
        });
    }

    /// The kubelet has started a container anew. It is not ready yet.
    pub(super) fn restart(&mut self, name: &str) {
        let now = text(self.now);
        self.touch(|pod| {
            let mut status = Self::status_of(pod, name);
            let count = status["restartCount"].as_i64().unwrap() + 1;
            status["restartCount"] = json!(count);
            status["containerID"] = json!(format!("containerd://{name}-{count}"));
            status["ready"] = json!(false);
            status["state"] = json!({"running": {"startedAt": now}});
            Self::set_status(pod, &status);
        });
    }

    pub(super) fn ready(&mut self, name: &str) {
        self.touch(|pod| {
            let mut status = Self::status_of(pod, name);
            status["ready"] = json!(true);
            Self::set_status(pod, &status);
        });
    }

    /// Status of a condition of the pod.
    pub(super) fn pod_is(&self, kind: &str) -> Option<&str> {
        condition(self.pod.as_ref()?, kind)
    }

    /// The keys that keep the pod out of service.
    pub(super) fn keys(&self) -> Vec<String> {
        let Some(pod) = &self.pod else { return Vec::new() };
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        let own = conditions.iter().find(|one| one["type"] == "KruisePodReady");
        let message = own.and_then(|one| one["message"].as_str()).unwrap_or("[]");
        let keys: Vec<Value> = serde_json::from_str(message).unwrap();
        keys.iter()
            .map(|hold| hold["key"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Since when the grace period of a request runs.
    pub(super) fn grace(&self, name: &str) -> Option<&str> {
        let conditions = self.get(name)["status"]["conditions"].as_array()?;
        let own = conditions.iter().find(|one| one["type"] == "PreRecreateGrace")?;
        own["lastTransitionTime"].as_str()
    }

    /// The plan of a request, with what it needs.
    pub(super) fn plan(&self, name: &str) -> Plan {
        self.planned(name, Explain::No)
    }

    /// The explanation of a request.
    pub(super) fn explained(&self, name: &str) -> Vec<String> {
        let plan = self.planned(name, Explain::Yes);
        plan.why.into_iter().map(|why| why.text).collect()
    }

    fn planned(&self, name: &str, explain: Explain) -> Plan {
        let request = ContainerRecreateRequest::from_value(self.requests[name].clone()).unwrap();
        let pod = self
            .pod
            .as_ref()
            .filter(|_| self.is_cached)
            .map(decode::<PodView>);
        let pod = pod.filter(|pod| *pod.name == request.spec.pod_name);
        let others: Vec<String> = self.names().into_iter().filter(|other| *other != *name).collect();
        let read = |need: &Need| {
            assert_eq!(*need, Need::Live(ResourceId::PODS, "shop".into(), POD.into()));
            Ok(self.pod.clone())
        };
        planned(&mut Memory::default(), self.now, read, |memory| {
            let snapshot = Snapshot {
                request: &request,
                pod: pod.as_deref(),
                others: &others,
                memory,
                explain,
            };
            plan(&snapshot, self.now)
        })
    }

    /// Carries a plan out, all of it. Returns whether it wrote anything.
    pub(super) fn execute(&mut self, plan: &Plan) -> bool {
        for object in &plan.writes {
            let mut previous = None;
            for step in &object.steps {
                self.apply(&step.write, &mut previous);
            }
        }
        let Some(status) = &plan.status else {
            return !plan.writes.is_empty();
        };
        let version = self.bump();
        let request = self.requests.get_mut(&status.target.name).unwrap();
        assert_eq!(
            request["metadata"]["resourceVersion"], *status.version,
            "no status beside another write"
        );
        merge(request, &status.patch);
        request["metadata"]["resourceVersion"] = version;
        self.written.push(format!("status {}", status.target.name));
        true
    }

    fn apply(&mut self, write: &Write, previous: &mut Option<String>) {
        let name = write.target().name.clone();
        self.written.push(format!("{} {name}", write.intent().as_str()));
        let version = self.bump();
        let is_pod = write.target().resource == ResourceId::PODS;
        match write {
            Write::Patch {
                part,
                patch: change,
                precondition,
                ..
            } => {
                let object = if is_pod {
                    self.pod.as_mut()
                } else {
                    self.requests.get_mut(&name)
                };
                patch(object.unwrap(), (*part, change, precondition), previous, version).unwrap();
                if !is_pod {
                    self.collect(&name);
                }
            }
            Write::Delete { precondition, .. } => {
                may_delete(&self.requests[&name], precondition).unwrap();
                self.delete(&name);
            }
            Write::Create { .. } => panic!("nothing is created"),
        }
    }

    /// The controller runs until nothing is due.
    pub(super) fn settle(&mut self) {
        for _ in 0..20 {
            let mut is_done = true;
            for name in self.names() {
                let state = fingerprint(&(&self.pod, self.is_cached, &self.requests));
                if !self.get(&name).is_null() && self.agenda.is_due(&name, state, self.now) {
                    is_done = false;
                    let plan = self.plan(&name);
                    self.agenda.note(name, state, self.now, &plan);
                    self.execute(&plan);
                }
            }
            if is_done {
                return;
            }
        }
        panic!("the controller never rests: {:?}", self.written);
    }

    /// Seconds until the plan of a request is wanted again.
    pub(super) fn again(&self, name: &str) -> Option<u64> {
        self.plan(name).requeue.map(|after| after.as_secs())
    }
}
