//! Nodes, pods, markers and the probes of nodes, a server that carries plans out, and agents.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::{nodepodprobe::NodePodProbe, podprobemarker::PodProbeMarker};
use kruise_plan_kit::{Explain, Memory, Plan, ResourceId, Write};
use kruise_plan_nodes::{
    nodepodprobe::{self, Cluster, Known},
    podprobemarker::{self, Nodes, Options},
};
use kruise_plan_test_kit::{Refused, Store, decode};
use kruise_views::{NodeView, PodView};
use serde_json::{Value, json};

pub(crate) const API_VERSION: &str = "apps.kruise.io/v1alpha1";
const NOW: &str = "2026-01-01T01:00:00Z";
const PPM: ResourceId = kruise_api::podprobemarker::RESOURCE;
const NPP: ResourceId = kruise_api::nodepodprobe::RESOURCE;

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) serverless: bool,
    /// The only namespace that is watched, if it is one.
    pub(crate) watched: Option<String>,
    store: Store,
    /// Writes that were carried out: `verb name`.
    pub(crate) written: Vec<String>,
    /// Events: `Reason: message`, each once.
    pub(crate) events: Vec<String>,
}

impl Deref for World {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Store {
        &mut self.store
    }
}

impl World {
    /// A world with these nodes, which have their NodePodProbes.
    pub(crate) fn new(nodes: &[&str]) -> Self {
        let mut world = Self {
            serverless: false,
            watched: None,
            store: Store::new(NOW),
            written: Vec::new(),
            events: Vec::new(),
        };
        for node in nodes {
            world.node(node, &json!({}));
        }
        world.settle();
        world.written.clear();
        world
    }

    /// A ready node with these labels.
    pub(crate) fn node(&mut self, name: &str, labels: &Value) {
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": NOW});
        let metadata = json!({"name": name, "labels": labels});
        self.put(
            ResourceId::NODES,
            json!({"metadata": metadata, "status": {"conditions": [ready]}}),
        );
    }

    /// A running pod `games/NAME` with the label `app: game`, whose container `main` has a port `web`.
    pub(crate) fn pod(&mut self, name: &str, node: &str) {
        let initialized = json!({"type": "Initialized", "status": "True"});
        let pod = json!({
            "kind": "Pod", "metadata": {"name": name, "namespace": "games", "labels": {"app": "game"}},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "i", "ports": [
                {"name": "web", "containerPort": 8080}]}]},
            "status": {"phase": "Running", "podIP": "192.0.2.1", "conditions": [initialized]},
        });
        self.put(ResourceId::PODS, pod);
    }

    /// A marker of the pods with `app: game`, with these probes.
    pub(crate) fn marker(&mut self, name: &str, probes: &Value) {
        let spec = json!({"selector": {"matchLabels": {"app": "game"}}, "probes": probes});
        let metadata = json!({"name": name, "namespace": "games", "generation": 1});
        let marker =
            json!({"apiVersion": API_VERSION, "kind": "PodProbeMarker", "metadata": metadata, "spec": spec});
        self.put(PPM, marker);
    }

    /// An object; null if there is none.
    pub(crate) fn get(&self, resource: ResourceId, namespace: &str, name: &str) -> &Value {
        self.store.get(resource, namespace, name).unwrap_or(&Value::Null)
    }

    pub(crate) fn the_pod(&self, name: &str) -> &Value {
        self.get(ResourceId::PODS, "games", name)
    }

    /// Labels and annotations of a pod in one map, and its conditions but `Initialized`: type to status.
    pub(crate) fn marks(&self, name: &str) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
        let pod = self.the_pod(name);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let of = |member: &str| pod["metadata"][member].as_object().cloned().unwrap_or_default();
        let mut marks: BTreeMap<String, String> = of("labels")
            .iter()
            .chain(&of("annotations"))
            .map(|(key, value)| (key.clone(), text(value)))
            .collect();
        marks.remove("app");
        let conditions = pod["status"]["conditions"].as_array().unwrap().iter();
        let conditions = conditions.map(|one| (text(&one["type"]), text(&one["status"])));
        (
            marks,
            conditions.filter(|(kind, _)| kind != "Initialized").collect(),
        )
    }

    pub(crate) fn edit_pod(&mut self, name: &str, change: &Value) {
        self.edit(ResourceId::PODS, "games", name, change);
    }

    pub(crate) fn edit_marker(&mut self, name: &str, change: &Value) {
        self.edit(PPM, "games", name, change);
    }

    /// The agent of a node reports a result, as OpenKruise's does: results of probes that left the list go.
    pub(crate) fn report(&mut self, node: &str, pod: &str, probe: &str, state: &str, message: &str) {
        let stored = self.get(NPP, "", node).clone();
        let entries = stored["spec"]["podProbes"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let old = stored["status"]["podProbeStatuses"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let mut is_listed = false;
        let statuses: Vec<Value> = entries
            .iter()
            .map(|entry| {
                let known = old.iter().find(|status| status["uid"] == entry["uid"]);
                let known = known.and_then(|status| status["probeStates"].as_array().cloned());
                let mut states = known.unwrap_or_default();
                let listed = |name: &Value| {
                    let probes = entry["probes"].as_array().unwrap();
                    probes.iter().any(|probe| probe["name"] == *name)
                };
                states.retain(|state| {
                    listed(&state["name"]) && (entry["name"] != pod || state["name"] != probe)
                });
                // While a pod of the same name is replaced, there are two entries.
                if entry["name"] == pod && listed(&json!(probe)) {
                    is_listed = true;
                    let mut result = json!({"name": probe, "state": state, "lastProbeTime": NOW, "lastTransitionTime": NOW});
                    if !message.is_empty() {
                        result["message"] = json!(message);
                    }
                    states.push(result);
                    states.sort_by_key(|state| state["name"].as_str().unwrap().to_owned());
                }
                json!({"name": entry["name"], "namespace": entry["namespace"], "uid": entry["uid"], "probeStates": states})
            })
            .collect();
        assert!(is_listed, "{node} probes {pod} with {probe}");
        self.edit(NPP, "", node, &json!({"status": {"podProbeStatuses": statuses}}));
    }

    /// The probes of a node: `pod probe`.
    pub(crate) fn probes(&self, node: &str) -> Vec<String> {
        let entries = self.get(NPP, "", node)["spec"]["podProbes"].as_array();
        let entries = entries.into_iter().flatten();
        let lines = entries.flat_map(|entry| {
            let probes = entry["probes"].as_array().unwrap().iter();
            probes.map(|probe| {
                format!(
                    "{} {}",
                    entry["name"].as_str().unwrap(),
                    probe["name"].as_str().unwrap()
                )
            })
        });
        lines.collect()
    }

    /// The stored form of a probe.
    pub(crate) fn probe(&self, node: &str, name: &str) -> Value {
        let entries = self.get(NPP, "", node)["spec"]["podProbes"].as_array().unwrap();
        let mut probes = entries
            .iter()
            .flat_map(|entry| entry["probes"].as_array().unwrap());
        probes.find(|probe| probe["name"] == name).unwrap()["probe"].clone()
    }

    fn all_probes(&self) -> Vec<Arc<NodePodProbe>> {
        let all = self.all(NPP);
        all.map(|object| Arc::new(NodePodProbe::from_value(object.clone()).unwrap()))
            .collect()
    }

    pub(crate) fn plan_marker(&self, namespace: &str, name: &str, explain: Explain) -> Plan {
        let marker = PodProbeMarker::from_value(self.get(PPM, namespace, name).clone()).unwrap();
        let pods = self.views::<PodView>(ResourceId::PODS, namespace).into_iter();
        let pods: Vec<Arc<PodView>> = pods
            .filter(|pod| marker.spec.selector.matches_by(|key| pod.labels.get(key)))
            .collect();
        let snapshot = podprobemarker::Snapshot {
            marker: &marker,
            api_version: API_VERSION,
            pods: &pods,
            nodes: self,
            probes: &self.all_probes(),
            options: Options {
                marks_serverless: self.serverless,
            },
            explain,
        };
        podprobemarker::plan(&snapshot)
    }

    pub(crate) fn plan_node(&self, name: &str) -> Plan {
        self.plan_node_after(name, &Memory::default(), NOW.parse().unwrap())
    }

    /// The plan of a node at some time, after earlier ones.
    pub(crate) fn plan_node_after(&self, name: &str, memory: &Memory, now: Timestamp) -> Plan {
        let probes = self.get(NPP, "", name);
        let probes = (!probes.is_null()).then(|| NodePodProbe::from_value(probes.clone()).unwrap());
        let node = self.get(ResourceId::NODES, "", name);
        let node = (!node.is_null()).then(|| decode::<NodeView>(node));
        let snapshot = nodepodprobe::Snapshot {
            name,
            api_version: API_VERSION,
            probes: probes.as_ref(),
            node: node.as_deref(),
            cluster: self,
            memory,
            now,
        };
        nodepodprobe::plan(&snapshot)
    }

    /// Carries a plan out; whether it wrote anything. Each write must succeed.
    pub(crate) fn execute(&mut self, plan: &Plan) -> bool {
        for object in &plan.writes {
            let mut previous = None;
            for step in &object.steps {
                assert_eq!(self.apply(&step.write, &mut previous), Ok(()), "{}", step.write);
            }
        }
        for event in &plan.events {
            let line = format!("{}: {}", event.reason, event.message);
            if !self.events.contains(&line) {
                self.events.push(line);
            }
        }
        let Some(status) = &plan.status else {
            return !plan.writes.is_empty();
        };
        // A report for an object that has changed since is not written.
        self.store.report(status);
        true
    }

    pub(crate) fn apply(&mut self, write: &Write, previous: &mut Option<String>) -> Result<(), Refused> {
        self.store.apply(write, previous)?;
        let line = format!("{} {}", write.intent().as_str(), write.target().name);
        self.written.push(line);
        Ok(())
    }

    /// Lets all controllers run until none has anything to do. Returns the writes that this took.
    pub(crate) fn settle(&mut self) -> Vec<String> {
        let before = self.written.len();
        for _ in 0..50 {
            let mut has_written = false;
            for (_, namespace, name) in self.keys(PPM) {
                let plan = self.plan_marker(&namespace, &name, Explain::No);
                has_written |= self.execute(&plan);
            }
            for name in [ResourceId::NODES, NPP]
                .map(|resource| self.names(resource))
                .concat()
            {
                let plan = self.plan_node(&name);
                has_written |= self.execute(&plan);
            }
            if !has_written {
                return self.written.split_off(before);
            }
        }
        panic!("the controllers never rest");
    }
}

impl Nodes for World {
    fn is_virtual(&self, name: &str) -> Option<bool> {
        let node = self.get(ResourceId::NODES, "", name);
        (!node.is_null()).then(|| decode::<NodeView>(node).is_virtual())
    }
}

impl Cluster for World {
    fn pod(&self, namespace: &str, name: &str) -> Known<Arc<PodView>> {
        if self
            .watched
            .as_deref()
            .is_some_and(|watched| watched != namespace)
        {
            return Known::Unknown;
        }
        let pod = self.get(ResourceId::PODS, namespace, name);
        if pod.is_null() {
            return Known::Gone;
        }
        Known::Found(decode(pod))
    }

    fn marker(&self, namespace: &str, name: &str) -> Known<Arc<PodProbeMarker>> {
        if self
            .watched
            .as_deref()
            .is_some_and(|watched| watched != namespace)
        {
            return Known::Unknown;
        }
        let marker = self.get(PPM, namespace, name);
        if marker.is_null() {
            return Known::Gone;
        }
        Known::Found(Arc::new(PodProbeMarker::from_value(marker.clone()).unwrap()))
    }
}

/// A probe `idle` of the container `main` with a condition and policies for both results.
pub(crate) fn idle() -> Value {
    json!({
        "name": "idle", "containerName": "main", "podConditionType": "game.example/idle",
        "probe": {"exec": {"command": ["/idle.sh"]}, "periodSeconds": 10},
        "markerPolicy": [
            {"state": "Succeeded", "labels": {"game": "idle", "spare": "yes"}, "annotations": {"cost": "-10"}},
            {"state": "Failed", "labels": {"game": "busy"}, "annotations": {"cost": "10", "why": "players"}},
        ],
    })
}

/// A probe with this name and this condition.
pub(crate) fn exec(name: &str, condition: &str) -> Value {
    json!({"name": name, "containerName": "main", "podConditionType": condition, "probe": {"exec": {"command": ["true"]}}})
}
