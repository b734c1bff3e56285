//! One pod, its node, the requests for it, and a server that carries plans out. The agent and the kubelet act when
//! a test says so.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kruise_api::containerrecreaterequest::ContainerRecreateRequest;
use kruise_plan_kit::{Memory, Plan, ResourceId, Write, ledger::Budgets};
use kruise_plan_nodes::sidecarterminator::{Snapshot, concerns, plan};
use kruise_plan_test_kit::{Agenda, create, decode, fingerprint, merge, patch, text};
use kruise_views::{NodeView, PodView};
use serde_json::{Value, json};

pub(super) const WHEN: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT";
pub(super) const IMAGE: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE";
pub(super) const IGNORE: &str = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE";
/// The name of the first request.
pub(super) const FIRST: &str = "sidecar-termination-uid-report";

#[derive(Clone, Debug)]
pub(super) struct Bench {
    pub(super) now: Timestamp,
    pub(super) pod: Value,
    /// The node, if there is one.
    pub(super) node: Option<Value>,
    pub(super) requests: BTreeMap<String, Value>,
    /// Writes that were carried out: `verb name`.
    pub(super) written: Vec<String>,
    /// Events: `reason message`.
    pub(super) events: Vec<String>,
    pub(super) memory: Memory,
    agenda: Agenda<()>,
    version: u64,
}

/// A sidecar with these variables, each `true`.
pub(super) fn sidecar(name: &str, variables: &[&str]) -> Value {
    let env = variables
        .iter()
        .map(|name| json!({"name": name, "value": "true"}));
    json!({"name": name, "image": format!("{name}:1"), "env": env.collect::<Vec<_>>()})
}

impl Bench {
    /// Pod `report` with the container `main` and these sidecars, all of which run.
    pub(super) fn new(policy: &str, sidecars: &[Value]) -> Self {
        let main = json!({"name": "main", "image": "report:1"});
        Self::of(policy, &[&[main], sidecars].concat())
    }

    /// Pod `report` with these containers, all of which run.
    pub(super) fn of(policy: &str, containers: &[Value]) -> Self {
        let statuses = containers.iter().map(|one| {
            let name = one["name"].as_str().unwrap();
            json!({"name": name, "containerID": format!("containerd://{name}-0"), "restartCount": 0, "ready": true,
                "state": {"running": {"startedAt": "2025-12-31T00:00:00Z"}}})
        });
        Self {
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            pod: json!({
                "kind": "Pod",
                "metadata": {"name": "report", "namespace": "shop", "uid": "uid-report", "resourceVersion": "1"},
                "spec": {"nodeName": "n1", "restartPolicy": policy, "containers": containers, "newField": {"kept": true}},
                "status": {"phase": "Running", "containerStatuses": statuses.collect::<Vec<_>>(), "conditions": []},
            }),
            node: Some(json!({"metadata": {"name": "n1"}})),
            requests: BTreeMap::new(),
            written: Vec::new(),
            events: Vec::new(),
            memory: Memory::default(),
            agenda: Agenda::default(),
            version: 1,
        }
    }

    /// On a virtual node.
    pub(super) fn on_virtual_node(mut self) -> Self {
        self.node = Some(json!({"metadata": {"name": "n1", "labels": {"type": "virtual-kubelet"}}}));
        self
    }

    fn bump(&mut self) -> Value {
        self.version += 1;
        json!(self.version.to_string())
    }

    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Changes the pod as somebody else would.
    pub(super) fn touch(&mut self, change: impl FnOnce(&mut Value)) {
        let version = self.bump();
        change(&mut self.pod);
        self.pod["metadata"]["resourceVersion"] = version;
    }

    pub(super) fn status(&self, container: &str) -> &Value {
        let mut statuses = self.pod["status"]["containerStatuses"].as_array().unwrap().iter();
        statuses.find(|one| one["name"] == container).unwrap()
    }

    fn set(&mut self, container: &str, change: &Value) {
        self.touch(|pod| {
            let mut statuses = pod["status"]["containerStatuses"]
                .as_array_mut()
                .unwrap()
                .iter_mut();
            let status = statuses.find(|one| one["name"] == container).unwrap();
            merge(status, change);
        });
    }

    /// A container has ended.
    pub(super) fn end(&mut self, container: &str, code: i32) {
        let state = json!({"running": null, "waiting": null, "terminated": {"exitCode": code}});
        self.set(container, &json!({"ready": false, "state": state}));
    }

    /// The kubelet has not started a container yet.
    pub(super) fn hold(&mut self, container: &str) {
        let state = json!({"running": null, "terminated": null, "waiting": {"reason": "ImagePullBackOff"}});
        self.set(
            container,
            &json!({"ready": false, "containerID": null, "state": state}),
        );
    }

    /// The kubelet has started a container anew.
    pub(super) fn restart(&mut self, container: &str) {
        let count = self.status(container)["restartCount"].as_i64().unwrap() + 1;
        let state = json!({"terminated": null, "waiting": null, "running": {"startedAt": text(self.now)}});
        let id = format!("containerd://{container}-{count}");
        self.set(
            container,
            &json!({"restartCount": count, "containerID": id, "state": state}),
        );
    }

    /// Does a container run?
    pub(super) fn runs(&self, container: &str) -> bool {
        self.status(container)["state"]["running"].is_object()
    }

    /// The kubelet and the agent: phase, and the state of containers, of a request.
    pub(super) fn report(&mut self, request: &str, status: &Value) {
        let version = self.bump();
        let request = self.requests.get_mut(request).unwrap();
        merge(request, &json!({ "status": status }));
        request["metadata"]["resourceVersion"] = version;
    }

    /// The agent has stopped the containers of a request, which waits for new ones.
    pub(super) fn killed(&mut self, request: &str) {
        let names = self.targets(request);
        let states = names
            .iter()
            .map(|name| json!({"name": name, "phase": "Recreating", "isKilled": true}));
        let states: Vec<Value> = states.collect();
        self.report(
            request,
            &json!({"phase": "Recreating", "containerRecreateStates": states}),
        );
    }

    /// A request has ended.
    pub(super) fn complete(&mut self, request: &str) {
        let time = text(self.now);
        self.report(request, &json!({"phase": "Completed", "completionTime": time}));
    }

    /// The containers of a request.
    pub(super) fn targets(&self, request: &str) -> Vec<String> {
        let containers = self.requests[request]["spec"]["containers"].as_array().unwrap();
        let name = |one: &Value| one["name"].as_str().unwrap().to_owned();
        containers.iter().map(name).collect()
    }

    /// The requests that have not ended.
    pub(super) fn open(&self) -> Vec<String> {
        let open = self
            .requests
            .iter()
            .filter(|(_, one)| one["status"]["phase"] != "Completed");
        open.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.requests.keys().map(String::as_str).collect()
    }

    pub(super) fn view(&self) -> PodView {
        (*decode::<PodView>(&self.pod)).clone()
    }

    pub(super) fn concerns(&self) -> bool {
        concerns(&self.view())
    }

    pub(super) fn plan(&self) -> Plan {
        self.plan_with(Budgets::NONE)
    }

    pub(super) fn plan_with(&self, budgets: Budgets<'_>) -> Plan {
        let pod = self.view();
        let node = self.node.as_ref().map(decode::<NodeView>);
        let read = |one: &Value| ContainerRecreateRequest::from_value(one.clone()).unwrap();
        let requests: Vec<ContainerRecreateRequest> = self.requests.values().map(read).collect();
        let requests: Vec<&ContainerRecreateRequest> = requests.iter().collect();
        let snapshot = Snapshot {
            pod: &pod,
            node: node.as_deref(),
            requests: &requests,
            budgets,
            memory: &self.memory,
        };
        plan(&snapshot, self.now)
    }

    /// Carries a plan out. Returns whether it wrote anything.
    pub(super) fn execute(&mut self, plan: Plan) -> bool {
        let told = |note: &kruise_plan_kit::EventNote| format!("{} {}", note.reason, note.message);
        self.events.extend(plan.events.iter().map(told));
        for object in &plan.writes {
            let mut previous = None;
            for step in &object.steps {
                self.apply(&step.write, &mut previous);
                self.events.extend(step.done.iter().map(told));
            }
        }
        self.memory.count(plan.attempts, self.now);
        !plan.writes.is_empty()
    }

    fn apply(&mut self, write: &Write, previous: &mut Option<String>) {
        let name = write.target().name.clone();
        self.written.push(format!("{} {name}", write.intent().as_str()));
        let version = self.bump();
        match write {
            Write::Create { body, owner_uid, .. } => {
                assert!(!self.requests.contains_key(&name), "{name} exists");
                assert_eq!(owner_uid.as_deref(), Some("uid-report"));
                let created = text(self.now);
                let mut request = create(body.render(), &name, &format!("uid-{name}"), version, &created);
                self.admit(&mut request);
                self.requests.insert(name, request);
            }
            Write::Patch {
                part,
                patch: change,
                precondition,
                ..
            } => {
                let is_pod = write.target().resource == ResourceId::PODS;
                let object = if is_pod {
                    Some(&mut self.pod)
                } else {
                    self.requests.get_mut(&name)
                };
                patch(object.unwrap(), (*part, change, precondition), previous, version).unwrap();
            }
            Write::Delete { .. } => panic!("nothing is deleted"),
        }
    }

    /// What the webhook refuses and fills in.
    fn admit(&self, request: &mut Value) {
        let over = matches!(self.pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        let conditions = self.pod["status"]["conditions"].as_array().unwrap();
        let excused = conditions.iter().any(|one| one["type"] == "SidecarTerminated");
        assert!(!over || excused, "the pod has ended");
        for one in request["spec"]["containers"].as_array_mut().unwrap() {
            let status = self.status(one["name"].as_str().unwrap());
            assert!(status["containerID"].is_string(), "{status} has not been started");
            one["statusContext"] =
                json!({"containerID": status["containerID"], "restartCount": status["restartCount"]});
        }
    }

    /// The controller runs until nothing is due.
    pub(super) fn settle(&mut self) {
        for _ in 0..20 {
            let state = fingerprint(&(&self.pod, &self.node, &self.requests));
            if !self.agenda.is_due(&(), state, self.now) {
                return;
            }
            let plan = self.plan();
            self.agenda.note((), state, self.now, &plan);
            self.execute(plan);
        }
        panic!("the controller never rests: {:?}", self.written);
    }

    /// Seconds until the plan is wanted again.
    pub(super) fn again(&self) -> Option<u64> {
        self.plan().requeue.map(|after| after.as_secs())
    }
}
