//! Nodes, pods, markers and the probes of nodes, a server that carries plans out, and agents.

use std::{collections::BTreeMap, sync::Arc};

use kruise_api::{nodepodprobe::NodePodProbe, podprobemarker::PodProbeMarker};
use kruise_plan_kit::{Explain, Plan, ResourceId, Target, Write};
use kruise_plan_nodes::{
    nodepodprobe::{self, Cluster, Known},
    podprobemarker::{self, Nodes, Options},
};
use kruise_plan_test_kit::{Refused, create, decode, may_delete, merge, patch};
use kruise_views::{NodeView, PodView};
use serde_json::{Value, json};

pub(crate) const API_VERSION: &str = "apps.kruise.io/v1alpha1";
const NOW: &str = "2026-01-01T01:00:00Z";
const PPM: ResourceId = ResourceId::POD_PROBE_MARKERS;
const NPP: ResourceId = ResourceId::NODE_POD_PROBES;

type Key = (ResourceId, String, String);

#[derive(Clone, Default)]
pub(crate) struct World {
    pub(crate) serverless: bool,
    /// The only namespace that is watched, if it is one.
    pub(crate) watched: Option<String>,
    objects: BTreeMap<Key, Value>,
    version: u64,
    /// Writes that were carried out: `verb name`.
    pub(crate) written: Vec<String>,
    /// Events: `Reason: message`, each once.
    pub(crate) events: Vec<String>,
}

impl World {
    /// A world with these nodes, which have their NodePodProbes.
    pub(crate) fn new(nodes: &[&str]) -> Self {
        let mut world = Self::default();
        for node in nodes {
            world.node(node, &json!({}));
        }
        world.settle();
        world.written.clear();
        world
    }

    fn bump(&mut self) -> Value {
        self.version += 1;
        json!(self.version.to_string())
    }

    pub(crate) fn store(&mut self, resource: ResourceId, mut object: Value) {
        let version = self.bump();
        let metadata = &mut object["metadata"];
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{}", version.as_str().unwrap()));
        }
        if metadata["resourceVersion"].is_null() {
            metadata["resourceVersion"] = version;
        }
        let member = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
        let key = (resource, member("namespace"), member("name"));
        self.objects.insert(key, object);
    }

    /// A ready node with these labels.
    pub(crate) fn node(&mut self, name: &str, labels: &Value) {
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": NOW});
        let metadata = json!({"name": name, "labels": labels});
        self.store(
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
        self.store(ResourceId::PODS, pod);
    }

    /// A marker of the pods with `app: game`, with these probes.
    pub(crate) fn marker(&mut self, name: &str, probes: &Value) {
        let spec = json!({"selector": {"matchLabels": {"app": "game"}}, "probes": probes});
        let metadata = json!({"name": name, "namespace": "games", "generation": 1});
        let marker =
            json!({"apiVersion": API_VERSION, "kind": "PodProbeMarker", "metadata": metadata, "spec": spec});
        self.store(PPM, marker);
    }

    pub(crate) fn get(&self, resource: ResourceId, namespace: &str, name: &str) -> &Value {
        let key = (resource, namespace.to_owned(), name.to_owned());
        self.objects.get(&key).unwrap_or(&Value::Null)
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

    pub(crate) fn edit(&mut self, resource: ResourceId, namespace: &str, name: &str, change: &Value) {
        let version = self.bump();
        let key = (resource, namespace.to_owned(), name.to_owned());
        let object = self.objects.get_mut(&key).unwrap_or_else(|| panic!("no {key:?}"));
        merge(object, change);
        object["metadata"]["resourceVersion"] = version;
    }

    pub(crate) fn edit_pod(&mut self, name: &str, change: &Value) {
        self.edit(ResourceId::PODS, "games", name, change);
    }

    pub(crate) fn edit_marker(&mut self, name: &str, change: &Value) {
        let generation = &self.get(PPM, "games", name)["metadata"]["generation"];
        let mut change = change.clone();
        change["metadata"]["generation"] = json!(generation.as_i64().unwrap() + 1);
        self.edit(PPM, "games", name, &change);
    }

    /// Somebody deletes an object: it stays while it has finalizers.
    pub(crate) fn delete(&mut self, resource: ResourceId, namespace: &str, name: &str) {
        self.edit(
            resource,
            namespace,
            name,
            &json!({"metadata": {"deletionTimestamp": NOW}}),
        );
        self.collect(&(resource, namespace.to_owned(), name.to_owned()));
    }

    fn collect(&mut self, key: &Key) {
        let Some(object) = self.objects.get(key) else {
            return;
        };
        let metadata = &object["metadata"];
        let is_held = metadata["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
        if !metadata["deletionTimestamp"].is_null() && !is_held {
            self.objects.remove(key);
        }
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

    fn keys(&self, resource: ResourceId) -> Vec<(String, String)> {
        let of = self.objects.keys().filter(|(one, ..)| *one == resource);
        of.map(|(_, namespace, name)| (namespace.clone(), name.clone()))
            .collect()
    }

    fn all_probes(&self) -> Vec<Arc<NodePodProbe>> {
        let all = self.objects.iter().filter(|((one, ..), _)| *one == NPP);
        all.map(|(_, object)| Arc::new(NodePodProbe::from_value(object.clone()).unwrap()))
            .collect()
    }

    pub(crate) fn plan_marker(&self, namespace: &str, name: &str, explain: Explain) -> Plan {
        let marker = PodProbeMarker::from_value(self.get(PPM, namespace, name).clone()).unwrap();
        let pods = self
            .objects
            .iter()
            .filter(|((one, within, _), _)| *one == ResourceId::PODS && within == namespace);
        let pods = pods.map(|(_, pod)| decode::<PodView>(pod));
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
        let key = key(&status.target);
        let current = self.objects.get(&key).is_some_and(|object| {
            // A report for an object that has changed since is not written.
            object["metadata"]["resourceVersion"] == *status.version
        });
        if current {
            let (resource, namespace, name) = key;
            self.edit(resource, &namespace, &name, &status.patch);
        }
        true
    }

    pub(crate) fn apply(&mut self, write: &Write, previous: &mut Option<String>) -> Result<(), Refused> {
        let key = key(write.target());
        let version = self.bump();
        match write {
            Write::Create { target, body, .. } => {
                if self.objects.contains_key(&key) {
                    return Err(Refused::AlreadyExists);
                }
                let uid = format!("uid-{}", self.version);
                let object = create(body.render(), &target.name, &uid, version, NOW);
                self.objects.insert(key, object);
            }
            Write::Patch {
                part,
                patch: change,
                precondition,
                ..
            } => {
                let object = self.objects.get_mut(&key).ok_or(Refused::NotFound)?;
                patch(object, (*part, change, precondition), previous, version)?;
                self.collect(&key);
            }
            Write::Delete { precondition, .. } => {
                may_delete(self.objects.get(&key).ok_or(Refused::NotFound)?, precondition)?;
                let (resource, namespace, name) = key;
                self.delete(resource, &namespace, &name);
            }
        }
        let line = format!("{} {}", write.intent().as_str(), write.target().name);
        self.written.push(line);
        Ok(())
    }

    /// Lets all controllers run until none has anything to do. Returns the writes that this took.
    pub(crate) fn settle(&mut self) -> Vec<String> {
        let before = self.written.len();
        for _ in 0..50 {
            let mut has_written = false;
            for (namespace, name) in self.keys(PPM) {
                let plan = self.plan_marker(&namespace, &name, Explain::No);
                has_written |= self.execute(&plan);
            }
            let nodes: Vec<(String, String)> = self
                .keys(ResourceId::NODES)
                .into_iter()
                .chain(self.keys(NPP))
                .collect();
            for (_, name) in nodes {
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

fn key(target: &Target) -> Key {
    (target.resource, target.namespace.clone(), target.name.clone())
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
