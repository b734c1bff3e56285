//! A cluster in memory: one set, its revisions, pods of one namespace, and kubelets that do what pods say when told to.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{meta::LabelSelector, sidecarset::SidecarSet};
use kruise_plan_kit::{
    Memory, ObjectWrites, Plan, Precondition, ResourceId, Write,
    ledger::{Budgets, Gates},
    sidecars::{hashes, names, sidecar_list},
};
use kruise_plan_sidecars::{Explain, Repairs, Snapshot, learn, plan};
use kruise_plan_test_kit::{self as kit, Agenda, ReadBudgets, Refused, fingerprint, text};
use kruise_views::{PodView, RevisionView};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

pub(crate) struct World {
    pub(crate) set: Value,
    pub(crate) pods: BTreeMap<String, Value>,
    pub(crate) revisions: BTreeMap<String, Value>,
    pub(crate) budgets: BTreeMap<String, Value>,
    pub(crate) gates: Gates,
    /// Labels by namespace.
    pub(crate) namespaces: BTreeMap<String, BTreeMap<String, String>>,
    pub(crate) memory: Memory,
    pub(crate) repairs: Repairs,
    pub(crate) now: Timestamp,
    /// Writes that the server refuses: verb and pod.
    pub(crate) refuses: Vec<(&'static str, String)>,
    agenda: Agenda<()>,
    serial: u64,
}

/// A container of a set, with the defaults that count for hashes.
pub(crate) fn container(name: &str, image: &str) -> Value {
    json!({"name": name, "image": image, "terminationMessagePath": "/dev/termination-log",
           "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent", "resources": {},
           "podInjectPolicy": "BeforeAppContainer", "upgradeStrategy": {"upgradeType": "ColdUpgrade"},
           "shareVolumePolicy": {"type": "disabled"}})
}

/// The same, upgraded hot.
pub(crate) fn hot(name: &str, image: &str, empty: &str) -> Value {
    let mut container = container(name, image);
    container["upgradeStrategy"] = json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": empty});
    container
}

impl World {
    /// A set with one container `log` of `log:1`, one pod at a time.
    pub(crate) fn new() -> Self {
        let spec = json!({
            "selector": {"matchLabels": {"app": "web"}},
            "containers": [container("log", "log:1")],
            "updateStrategy": {"type": "RollingUpdate", "partition": 0, "maxUnavailable": 1},
            "revisionHistoryLimit": 10,
        });
        let mut world = Self {
            set: json!({
                "apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
                "metadata": {"name": "logs", "uid": "set-uid", "resourceVersion": "1", "generation": 0,
                             "creationTimestamp": "2025-12-01T00:00:00Z"},
                "spec": {},
            }),
            pods: BTreeMap::new(),
            revisions: BTreeMap::new(),
            budgets: BTreeMap::new(),
            gates: Gates::DEFAULT,
            namespaces: BTreeMap::new(),
            memory: Memory::default(),
            repairs: Repairs::default(),
            now: "2026-01-01T01:00:00Z".parse().unwrap(),
            refuses: Vec::new(),
            agenda: Agenda::default(),
            serial: 1,
        };
        world.edit(|set| *set = spec);
        world
    }

    /// The same with so many pods, `p0` and on, all injected and at rest.
    pub(crate) fn settled(pods: usize) -> Self {
        let mut world = Self::new();
        for index in 0..pods {
            world.add(&format!("p{index}"));
        }
        world.settle();
        world
    }

    /// Changes the specification, as an admitted edit does: hashes are computed anew.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.set["spec"]);
        let found = hashes(&self.set["spec"]);
        self.set["metadata"]["annotations"][names::HASH] = json!(found.full);
        self.set["metadata"]["annotations"][names::HASH_WITHOUT_IMAGE] = json!(found.without_image);
        let generation = self.set["metadata"]["generation"].as_i64().unwrap() + 1;
        self.set["metadata"]["generation"] = json!(generation);
        self.set["metadata"]["resourceVersion"] = self.version();
    }

    /// Gives the first container another image.
    pub(crate) fn image(&mut self, image: &str) {
        self.edit(|spec| spec["containers"][0]["image"] = json!(image));
    }

    /// Changes `updateStrategy`.
    pub(crate) fn strategy(&mut self, name: &str, value: Value) {
        self.edit(|spec| spec["updateStrategy"][name] = value);
    }

    pub(crate) fn version(&mut self) -> Value {
        self.serial += 1;
        json!(self.serial.to_string())
    }

    /// A running pod, injected by the set as it is.
    pub(crate) fn add(&mut self, name: &str) {
        let set = self.set["metadata"]["name"].as_str().unwrap().to_owned();
        let (found, list) = (hashes(&self.set["spec"]), sidecar_list(&self.set["spec"]));
        let record = |hash: &str| {
            json!({&*set: {"updateTimestamp": "2026-01-01T00:00:00Z", "hash": hash,
                         "sidecarSetName": set, "sidecarList": list}})
            .to_string()
        };
        let mut annotations = json!({
            names::HASH: record(&found.full), names::HASH_WITHOUT_IMAGE: record(&found.without_image),
            names::INJECTED_LIST: set,
        });
        let mut containers = Vec::new();
        let mut working = json!({});
        for sidecar in self.set["spec"]["containers"].as_array().unwrap() {
            let own = sidecar["name"].as_str().unwrap();
            if sidecar["upgradeStrategy"]["upgradeType"] == "HotUpgrade" {
                containers.push(json!({"name": format!("{own}-1"), "image": sidecar["image"]}));
                let empty = &sidecar["upgradeStrategy"]["hotUpgradeEmptyImage"];
                containers.push(json!({"name": format!("{own}-2"), "image": empty}));
                working[own] = json!(format!("{own}-1"));
                for (twin, version, alternative) in [("1", "1", "0"), ("2", "0", "1")] {
                    annotations[format!("version.sidecarset.kruise.io/{own}-{twin}")] = json!(version);
                    annotations[format!("versionalt.sidecarset.kruise.io/{own}-{twin}")] = json!(alternative);
                }
            } else {
                containers.push(json!({"name": own, "image": sidecar["image"]}));
            }
        }
        if working != json!({}) {
            annotations[names::WORKING] = json!(working.to_string());
        }
        containers.push(json!({"name": "main", "image": "web:1"}));
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"),
                         "resourceVersion": self.version(), "creationTimestamp": "2026-01-01T00:00:00Z",
                         "labels": {"app": "web"}, "annotations": annotations},
            "spec": {"nodeName": "a1", "containers": containers}, "status": {},
        });
        self.pods.insert(name.to_owned(), pod);
        self.run(name);
    }

    /// The kubelet starts what the pod asks for: images of the name `bad…` are not ready.
    pub(crate) fn run(&mut self, name: &str) {
        let version = self.version();
        let (serial, now) = (self.serial, text(self.now));
        let pod = self.pods.get_mut(name).unwrap();
        let before = pod["status"]["containerStatuses"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let containers = pod["spec"]["containers"].as_array().unwrap();
        let statuses: Vec<Value> = containers
            .iter()
            .map(|container| {
                let image = container["image"].as_str().unwrap();
                let same = before.iter().find(|status| {
                    status["name"] == container["name"] && status["image"] == container["image"]
                });
                same.cloned().unwrap_or_else(|| {
                    json!({"name": container["name"], "image": image, "imageID": format!("fake://{image}"),
                           "containerID": format!("cri://{serial}"), "ready": !image.starts_with("bad"),
                           "restartCount": 0, "state": {"running": {}}})
                })
            })
            .collect();
        let ready = statuses.iter().all(|status| status["ready"] == true);
        pod["status"]["phase"] = json!("Running");
        pod["status"]["containerStatuses"] = json!(statuses);
        pod["metadata"]["resourceVersion"] = version;
        kit::set_condition(pod, "Ready", if ready { "True" } else { "False" }, &now);
    }

    /// The pod's own container stops or starts to serve.
    pub(crate) fn serve(&mut self, name: &str, serves: bool) {
        let (version, now) = (self.version(), text(self.now));
        let pod = self.pods.get_mut(name).unwrap();
        for status in pod["status"]["containerStatuses"].as_array_mut().unwrap() {
            if status["name"] == "main" {
                status["ready"] = json!(serves);
            }
        }
        let statuses = pod["status"]["containerStatuses"].as_array().unwrap();
        let ready = statuses.iter().all(|status| status["ready"] == true);
        kit::set_condition(pod, "Ready", if ready { "True" } else { "False" }, &now);
        pod["metadata"]["resourceVersion"] = version;
    }

    /// A budget, in words, that all pods name.
    pub(crate) fn protect(&mut self, budget: &str) {
        self.budgets.insert("web".into(), kit::budget(budget, self.now));
        for pod in self.pods.values_mut() {
            pod["metadata"]["annotations"]["pub.kruise.io/related-pub"] = json!("web");
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        self.plan_with(&self.set, Explain::Yes)
    }

    pub(crate) fn plan_with(&self, set: &Value, explain: Explain) -> Plan {
        self.look(set, explain, |snapshot| plan(snapshot, self.now))
    }

    /// Plans, and remembers what was tried for pods without sidecars.
    pub(crate) fn plan_and_learn(&mut self) -> Plan {
        let mut repairs = self.repairs.clone();
        let plan = self.look(&self.set, Explain::No, |snapshot| {
            let plan = plan(snapshot, self.now);
            learn(&mut repairs, snapshot, &plan, self.now);
            plan
        });
        self.repairs = repairs;
        plan
    }

    pub(crate) fn look<T>(&self, set: &Value, explain: Explain, look: impl FnOnce(&Snapshot<'_>) -> T) -> T {
        let set = SidecarSet::from_json(set).unwrap();
        let pods: Vec<Arc<PodView>> = self.pods.values().map(|pod| Arc::new(decode(pod))).collect();
        let revisions: Vec<Arc<RevisionView>> = self
            .revisions
            .values()
            .map(|revision| Arc::new(decode(revision)))
            .collect();
        let budgets = ReadBudgets::of(&self.budgets);
        let selector = set.spec.namespace_selector.clone().unwrap_or_default();
        let snapshot = Snapshot {
            set: &set,
            api_version: "apps.kruise.io/v1beta1",
            namespace: "kruise-system",
            pods: &pods,
            not_injected: &pods,
            has_canary: &|pod| pod.labels.get("canary").is_some(),
            repairs: &self.repairs,
            revisions: &revisions,
            in_namespace: &|name| self.in_namespace(&selector, name),
            is_set: &|name| name == set.metadata.name || name == "other",
            budgets: Budgets {
                gates: self.gates,
                all: &budgets,
            },
            memory: &self.memory,
            explain,
        };
        look(&snapshot)
    }

    fn in_namespace(&self, selector: &LabelSelector, name: &str) -> bool {
        self.namespaces
            .get(name)
            .is_some_and(|labels| selector.matches(labels))
    }

    /// Plans and carries it out, all objects to their ends. What was written, as `verb name`, sorted.
    pub(crate) fn reconcile(&mut self) -> Vec<String> {
        let plan = self.plan_and_learn();
        self.carry_out(&plan)
    }

    pub(crate) fn carry_out(&mut self, plan: &Plan) -> Vec<String> {
        let (mut done, mut lost) = (Vec::new(), Vec::new());
        let mut objects: Vec<&ObjectWrites> = plan.writes.iter().collect();
        objects.sort_by_key(|object| object.phase);
        for object in objects {
            if object
                .after
                .as_ref()
                .is_some_and(|budget| lost.contains(&**budget))
            {
                continue;
            }
            let mut previous = None;
            for step in &object.steps {
                let refused = self.refuses.iter().any(|(verb, pod)| {
                    *verb == step.write.intent().as_str() && *pod == step.write.target().name
                });
                let uid = step.write.uid().unwrap_or_default().to_owned();
                if refused {
                    *self.memory.refused.entry(uid).or_default() += 1;
                    break;
                }
                if !self.write(&step.write, &mut previous) {
                    lost.push(step.write.target().clone());
                    break;
                }
                self.memory.refused.remove(&uid);
                done.push(format!(
                    "{} {}",
                    step.write.intent().as_str(),
                    step.write.target().name
                ));
            }
        }
        if let Some(status) = &plan.status {
            kit::merge(&mut self.set, &status.patch);
            self.set["metadata"]["resourceVersion"] = self.version();
        }
        done.sort();
        done
    }

    /// Writes as a server would; `false` if the precondition does not hold.
    pub(crate) fn write(&mut self, write: &Write, previous: &mut Option<String>) -> bool {
        self.send(write, previous).is_ok()
    }

    fn send(&mut self, write: &Write, previous: &mut Option<String>) -> Result<(), Refused> {
        let version = self.version();
        let name = &write.target().name;
        let store = match write.target().resource {
            ResourceId::PODS => &mut self.pods,
            kruise_api::podunavailablebudget::RESOURCE => &mut self.budgets,
            _ => &mut self.revisions,
        };
        match write {
            Write::Create { body, .. } => {
                if store.contains_key(name) {
                    return Err(Refused::AlreadyExists);
                }
                let (uid, now) = (format!("uid-{name}"), text(self.now));
                let object = kit::create(body.render(), name, &uid, version, &now);
                store.insert(name.clone(), object);
            }
            Write::Delete {
                target, precondition, ..
            } => {
                assert!(
                    target.resource != ResourceId::PODS
                        || matches!(precondition, Precondition::UidAndVersion(..)),
                    "a pod is removed as it was read"
                );
                kit::may_delete(store.get(name).ok_or(Refused::NotFound)?, precondition)?;
                store.remove(name);
            }
            Write::Patch {
                part,
                patch,
                precondition,
                ..
            } => {
                assert!(!matches!(precondition, Precondition::Test(..)));
                let stored = store.get_mut(name).ok_or(Refused::NotFound)?;
                kit::patch(stored, (*part, patch, precondition), previous, version)?;
            }
        }
        Ok(())
    }

    /// Reconciles if something changed or is due. What was written, as of [`Self::reconcile`].
    fn reconcile_if_due(&mut self) -> Vec<String> {
        let objects = (&self.set, &self.pods, &self.revisions, &self.budgets);
        let state = fingerprint(&(objects, &self.namespaces, self.gates, &self.memory, &self.refuses));
        if !self.agenda.is_due(&(), state, self.now) {
            return Vec::new();
        }
        let plan = self.plan_and_learn();
        self.agenda.note((), state, self.now, &plan);
        self.carry_out(&plan)
    }

    /// The controller, and kubelets that follow at once, act until nothing is done.
    pub(crate) fn settle(&mut self) {
        for _ in 0..200 {
            let before = self.pods.clone();
            let done = self.reconcile_if_due();
            let names: Vec<String> = self.pods.keys().cloned().collect();
            for name in names {
                if self.pods[&name]["spec"] != before[&name]["spec"] {
                    self.run(&name);
                }
            }
            self.now += SignedDuration::from_secs(20);
            if done.is_empty() {
                return;
            }
        }
        panic!("never settles: {:?}", self.plan());
    }

    /// Image of a container of a pod.
    pub(crate) fn image_of(&self, pod: &str, container: &str) -> String {
        let containers = self.pods[pod]["spec"]["containers"].as_array().unwrap();
        let found = containers.iter().find(|have| have["name"] == container).unwrap();
        found["image"].as_str().unwrap().to_owned()
    }

    /// Pods whose container has this image.
    pub(crate) fn with_image(&self, container: &str, image: &str) -> Vec<String> {
        let has = |pod: &&String| self.image_of(pod, container) == image;
        self.pods.keys().filter(has).cloned().collect()
    }

    pub(crate) fn annotation(&self, pod: &str, key: &str) -> String {
        self.pods[pod]["metadata"]["annotations"][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Status, reason and message of the condition that sets write.
    pub(crate) fn upgradable(&self, pod: &str) -> Option<(String, String, String)> {
        let conditions = self.pods[pod]["status"]["conditions"].as_array()?;
        let found = conditions
            .iter()
            .find(|condition| condition["type"] == "SidecarSetUpgradable")?;
        let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
        Some((text("status"), text("reason"), text("message")))
    }

    /// What is said about a pod, or the set if empty.
    pub(crate) fn why(&self, about: &str) -> String {
        let plan = self.plan();
        let lines = plan.why.iter().filter(|why| why.about == about);
        lines.map(|why| why.text.clone()).collect::<Vec<_>>().join("; ")
    }
}

pub(crate) fn decode<T: DeserializeOwned>(object: &Value) -> T {
    serde_json::from_str(&object.to_string()).unwrap()
}

/// Reads JSON in an annotation.
pub(crate) fn parsed<T: for<'de> Deserialize<'de>>(text: &str) -> T {
    serde_json::from_str(text).unwrap()
}
