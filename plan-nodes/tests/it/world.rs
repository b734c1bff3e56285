//! Nodes, their images, jobs and secrets, and a server that carries plans out.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use jiff::SignedDuration;
use kruise_api::{
    imagelistpulljob::ImageListPullJob,
    imagepulljob::{self, ImagePullJob},
    nodeimage::{NodeImage, ObjectReference, SecretReference},
};
use kruise_plan_kit::{Explain, Memory, Plan, ResourceId, Write};
use kruise_plan_nodes::{
    imagelistpulljob,
    imagepulljob::{self as pulls, Nodes},
    nodeimage::{self, Jobs, Owner, Secrets},
};
use kruise_plan_test_kit::{Agenda, Key, Refused, Store, decode, merge, planned, text};
use kruise_views::{PodView, SecretView};
use serde_json::{Value, json};

pub(crate) const API_VERSION: &str = "apps.kruise.io/v1beta1";
pub(crate) const AGENT: &str = "kruise-daemon-config";

#[derive(Clone)]
pub(crate) struct World {
    store: Store,
    agenda: Agenda<Key>,
    pub(crate) explain: Explain,
    pub(crate) sees_copies: bool,
    memory: BTreeMap<Key, Memory>,
    /// Writes that were carried out: `verb name`.
    pub(crate) written: Vec<String>,
    /// Events of the plans that were carried out: `Reason kind/name: message`.
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
    pub(crate) fn new() -> Self {
        Self {
            store: Store::new("2026-01-01T01:00:00Z"),
            agenda: Agenda::default(),
            explain: Explain::No,
            sees_copies: true,
            memory: BTreeMap::new(),
            written: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Stores an object as it is, with a uid of its name.
    pub(crate) fn store(&mut self, resource: ResourceId, mut object: Value) {
        let metadata = &mut object["metadata"];
        if metadata["uid"].is_null() {
            let name = metadata["name"].as_str().unwrap();
            metadata["uid"] = json!(format!("uid-{}-{name}", resource.plural));
        }
        self.store.put(resource, object);
    }

    /// A node that has been ready for an hour, with its NodeImage.
    pub(crate) fn node(&mut self, name: &str) {
        let labels = json!({"kubernetes.io/hostname": name});
        let since = text(self.now - SignedDuration::from_secs(3600));
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": since});
        self.store(
            ResourceId::NODES,
            json!({"metadata": {"name": name, "labels": labels}, "status": {"conditions": [ready]}}),
        );
        self.store(
            kruise_api::nodeimage::RESOURCE,
            json!({"apiVersion": API_VERSION, "kind": "NodeImage", "metadata": {"name": name, "labels": labels},
                "spec": {}}),
        );
    }

    /// The job `shop/NAME` with this specification, and the defaults of the webhook.
    pub(crate) fn job(&mut self, name: &str, spec: &Value) {
        let mut full = json!({
            "image": "app:1", "imagePullPolicy": "IfNotPresent",
            "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3}, "completionPolicy": {"type": "Always"},
        });
        merge(&mut full, spec);
        let metadata = json!({"name": name, "namespace": "shop", "creationTimestamp": text(self.now)});
        let job =
            json!({"apiVersion": API_VERSION, "kind": "ImagePullJob", "metadata": metadata, "spec": full});
        self.store(kruise_api::imagepulljob::RESOURCE, job);
    }

    /// The list `shop/NAME` with this specification.
    pub(crate) fn list(&mut self, name: &str, spec: &Value) {
        let mut full = json!({"completionPolicy": {"type": "Always"}});
        merge(&mut full, spec);
        let metadata = json!({"name": name, "namespace": "shop", "creationTimestamp": text(self.now)});
        let list = json!({"apiVersion": API_VERSION, "kind": "ImageListPullJob", "metadata": metadata, "spec": full});
        self.store(kruise_api::imagelistpulljob::RESOURCE, list);
    }

    /// A pull secret.
    pub(crate) fn secret(&mut self, namespace: &str, name: &str, data: &str) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace, "labels": {"team": "shop"}},
            "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": data},
        });
        self.store(ResourceId::SECRETS, secret);
    }

    /// The NodeImage of a node.
    pub(crate) fn image(&self, node: &str) -> &Value {
        let image = self.store.get(kruise_api::nodeimage::RESOURCE, "", node);
        image.unwrap_or(&Value::Null)
    }

    /// The job `shop/NAME`; null if there is none.
    pub(crate) fn the_job(&self, name: &str) -> &Value {
        let job = self.store.get(kruise_api::imagepulljob::RESOURCE, "shop", name);
        job.unwrap_or(&Value::Null)
    }

    /// The agent of a node reports on an image. The round is that of the specification.
    pub(crate) fn report(&mut self, node: &str, image: &str, phase: &str) {
        let (name, tag) = kruise_plan_kit::image::name_and_tag(image);
        let now = text(self.now);
        let stored = self.image(node).clone();
        let tags = stored["spec"]["images"][&name]["tags"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let wanted = tags.iter().find(|one| one["tag"] == tag.as_str());
        let wanted = wanted.unwrap_or_else(|| panic!("{node} is to pull {image}"));
        let mut status = json!({"tag": tag, "phase": phase, "startTime": now, "progress": 0});
        if wanted["version"].as_i64().unwrap_or(0) != 0 {
            status["version"] = wanted["version"].clone();
        }
        if phase == "Succeeded" || phase == "Failed" {
            status["completionTime"] = json!(now);
        }
        if phase == "Failed" {
            status["message"] = json!("no such image");
        }
        let known = stored["status"]["imageStatuses"][&name]["tags"].as_array();
        let mut statuses = known.cloned().unwrap_or_default();
        statuses.retain(|one| one["tag"] != tag.as_str());
        statuses.push(status);
        let change = json!({"status": {"desired": 1, "imageStatuses": {(&name): {"tags": statuses}}}});
        self.edit(kruise_api::nodeimage::RESOURCE, "", node, &change);
    }

    /// Nodes on which a job is active: they were asked for it, and have not ended the round.
    pub(crate) fn active(&self, job: &str) -> Vec<String> {
        let uid = &self.the_job(job)["metadata"]["uid"];
        let (image, tag) =
            kruise_plan_kit::image::name_and_tag(self.the_job(job)["spec"]["image"].as_str().unwrap());
        let is_active = |node: &&Value| {
            let find = |list: &Value| {
                let list = list.as_array().cloned().unwrap_or_default();
                list.into_iter().find(|one| one["tag"] == tag.as_str())
            };
            let Some(wanted) = find(&node["spec"]["images"][&image]["tags"]) else {
                return false;
            };
            let owners = wanted["ownerReferences"].as_array().cloned().unwrap_or_default();
            let status = find(&node["status"]["imageStatuses"][&image]["tags"]);
            let of_round = status.filter(|one| {
                one["version"].as_i64().unwrap_or(0) == wanted["version"].as_i64().unwrap_or(0)
            });
            let has_ended =
                of_round.is_some_and(|one| one["phase"] == "Succeeded" || one["phase"] == "Failed");
            owners.iter().any(|owner| owner["uid"] == *uid) && !has_ended
        };
        let nodes = self.store.all(kruise_api::nodeimage::RESOURCE).filter(is_active);
        nodes
            .map(|node| node["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }

    fn secrets(&self) -> Vec<Arc<SecretView>> {
        self.store.all(ResourceId::SECRETS).map(decode).collect()
    }

    /// Plans until the plan needs nothing more.
    fn with_needs(&self, key: &Key, plan: impl Fn(&Memory) -> Plan) -> Plan {
        let mut memory = self.memory.get(key).cloned().unwrap_or_default();
        let read = |need: &kruise_plan_kit::Need| {
            let target = need.target();
            let found = self.store.get(target.resource, &target.namespace, &target.name);
            Ok(found.cloned())
        };
        planned(&mut memory, self.now, read, plan)
    }

    /// The plan of the NodeImage of a node.
    pub(crate) fn plan_node(&self, name: &str) -> Plan {
        let image = self.store.get(kruise_api::nodeimage::RESOURCE, "", name);
        let image = image.map(|image| NodeImage::from_value(image.clone()).unwrap());
        let node = self.store.get(ResourceId::NODES, "", name).map(decode);
        let snapshot = nodeimage::Snapshot {
            name,
            api_version: API_VERSION,
            image: image.as_ref(),
            node: node.as_deref(),
            jobs: self,
            secrets: self,
            options: nodeimage::Options::DEFAULT,
        };
        nodeimage::plan(&snapshot, self.now)
    }

    /// The plan of the job `shop/NAME`.
    pub(crate) fn plan_job(&self, name: &str) -> Plan {
        self.plan_changed_job(name, false)
    }

    /// The plan of a job that was changed after its end, or was not.
    pub(crate) fn plan_changed_job(&self, name: &str, changed_after_end: bool) -> Plan {
        let key = (
            kruise_api::imagepulljob::RESOURCE,
            "shop".to_owned(),
            name.to_owned(),
        );
        let job = ImagePullJob::from_value(self.the_job(name).clone()).unwrap();
        self.plan_for(&key, &job, changed_after_end)
    }

    /// The plan of this job, which need not be stored.
    pub(crate) fn plan_of(&self, job: &ImagePullJob) -> Plan {
        let metadata = &job.metadata;
        let key = (
            kruise_api::imagepulljob::RESOURCE,
            metadata.namespace.clone(),
            metadata.name.clone(),
        );
        self.plan_for(&key, job, false)
    }

    fn plan_for(&self, key: &Key, job: &ImagePullJob, changed_after_end: bool) -> Plan {
        let pods = pulls::of_pods(&job.spec, self.views::<PodView>(ResourceId::PODS, "shop"));
        let pods = pulls::in_update_order(None, pods, self.now);
        let on: Vec<&str> = pods.iter().filter_map(|pod| pod.node.as_deref()).collect();
        let (nodes, unlisted) = pulls::targets(&job.spec, self, &on);
        let secrets = self.secrets();
        self.with_needs(key, |memory| {
            let snapshot = pulls::Snapshot {
                job,
                api_version: API_VERSION,
                nodes: &nodes,
                unlisted: &unlisted,
                secrets: &secrets,
                changed_after_end,
                options: pulls::Options {
                    sees_copies: self.sees_copies,
                    ..pulls::Options::DEFAULT
                },
                memory,
                explain: self.explain,
            };
            pulls::plan(&snapshot, self.now)
        })
    }

    /// The plan of the list `shop/NAME`.
    pub(crate) fn plan_list(&self, name: &str) -> Plan {
        let key = (
            kruise_api::imagelistpulljob::RESOURCE,
            "shop".to_owned(),
            name.to_owned(),
        );
        let stored = self
            .store
            .get(kruise_api::imagelistpulljob::RESOURCE, "shop", name)
            .unwrap();
        let list = ImageListPullJob::from_value(stored.clone()).unwrap();
        let uid = &stored["metadata"]["uid"];
        let jobs = self.store.all(kruise_api::imagepulljob::RESOURCE);
        let jobs = jobs.filter(|job| job["metadata"]["ownerReferences"][0]["uid"] == *uid);
        let jobs: Vec<Arc<ImagePullJob>> = jobs
            .map(|job| Arc::new(ImagePullJob::from_value(job.clone()).unwrap()))
            .collect();
        self.with_needs(&key, |memory| {
            let snapshot = imagelistpulljob::Snapshot {
                list: &list,
                api_version: API_VERSION,
                jobs: &jobs,
                memory,
                explain: self.explain,
            };
            imagelistpulljob::plan(&snapshot, self.now)
        })
    }

    /// Carries a plan out, all of it. Returns whether it wrote anything.
    pub(crate) fn execute(&mut self, plan: &Plan) -> bool {
        let mut objects: Vec<_> = plan.writes.iter().collect();
        objects.sort_by_key(|object| object.phase);
        for object in objects {
            let mut previous = None;
            for step in &object.steps {
                let done = self.apply(&step.write, &mut previous);
                assert_eq!(done, Ok(()), "{}", step.write);
            }
        }
        for event in &plan.events {
            let about = event
                .about
                .as_ref()
                .map(|about| format!(" {}/{}", about.kind, about.name));
            let line = format!("{}{}: {}", event.reason, about.unwrap_or_default(), event.message);
            if !self.events.contains(&line) {
                self.events.push(line);
            }
        }
        // A report for an object that has changed since is not written.
        let reported = plan
            .status
            .as_ref()
            .is_some_and(|status| self.store.report(status));
        reported || !plan.writes.is_empty()
    }

    /// None of the writes of the plan of a job is carried out.
    pub(crate) fn try_in_vain(&mut self, job: &str, plan: &Plan) {
        let key = (
            kruise_api::imagepulljob::RESOURCE,
            "shop".to_owned(),
            job.to_owned(),
        );
        let memory = self.memory.entry(key).or_default();
        memory.count(plan.attempts.clone(), self.store.now);
    }

    /// Carries one write out.
    pub(crate) fn apply(&mut self, write: &Write, previous: &mut Option<String>) -> Result<(), Refused> {
        self.store.apply(write, previous)?;
        let line = format!("{} {}", write.intent().as_str(), write.target().name);
        self.written.push(line);
        Ok(())
    }

    /// The manager restarts: everything is planned once more.
    pub(crate) fn restart(&mut self) {
        self.memory.clear();
        self.agenda.clear();
    }

    /// What is due is planned, and the plan is carried out.
    fn reconcile(&mut self, key: Key) {
        let version = self.store.version();
        let is_there =
            self.store.get(key.0, &key.1, &key.2).is_some() || key.0 == kruise_api::nodeimage::RESOURCE;
        if !is_there || !self.agenda.is_due(&key, version, self.now) {
            return;
        }
        let plan = match key.0 {
            kruise_api::imagelistpulljob::RESOURCE => self.plan_list(&key.2),
            kruise_api::imagepulljob::RESOURCE => self.plan_job(&key.2),
            _ => self.plan_node(&key.2),
        };
        let now = self.now;
        self.agenda.note(key, version, now, &plan);
        self.execute(&plan);
    }

    /// Lets the controller of jobs run for one job until it has nothing to do.
    pub(crate) fn settle_job(&mut self, name: &str) {
        let key = (
            kruise_api::imagepulljob::RESOURCE,
            "shop".to_owned(),
            name.to_owned(),
        );
        for _ in 0..20 {
            self.reconcile(key.clone());
            if !self.agenda.is_due(&key, self.store.version(), self.now) {
                return;
            }
        }
        panic!("{name} never rests");
    }

    /// Lets all controllers run until nothing is due. Returns the number of rounds.
    pub(crate) fn settle(&mut self) -> usize {
        for round in 0..200 {
            let before = self.store.version();
            let in_shop = |resource: ResourceId, name: String| (resource, "shop".to_owned(), name);
            for resource in [
                kruise_api::imagelistpulljob::RESOURCE,
                kruise_api::imagepulljob::RESOURCE,
            ] {
                for name in self.names(resource) {
                    self.reconcile(in_shop(resource, name));
                }
            }
            for resource in [ResourceId::NODES, kruise_api::nodeimage::RESOURCE] {
                for name in self.names(resource) {
                    self.reconcile((kruise_api::nodeimage::RESOURCE, String::new(), name));
                }
            }
            if self.store.version() == before {
                return round;
            }
        }
        panic!("the controllers never rest");
    }
}

impl Jobs for World {
    fn owner(&self, reference: &ObjectReference) -> Owner {
        if !reference.is_of(&imagepulljob::KIND) {
            return Owner::Unknown;
        }
        let job = self.store.get(
            kruise_api::imagepulljob::RESOURCE,
            &reference.namespace,
            &reference.name,
        );
        match job.filter(|job| job["metadata"]["uid"] == *reference.uid) {
            None => Owner::Gone,
            Some(job) => {
                let job = ImagePullJob::from_value(job.clone()).unwrap();
                if job.is_active() && !job.spec.completion_policy.is_never() {
                    Owner::Pulls
                } else {
                    Owner::Exists
                }
            }
        }
    }
}

impl Secrets for World {
    fn exists(&self, secret: &SecretReference) -> Option<bool> {
        Some(
            self.store
                .get(ResourceId::SECRETS, &secret.namespace, &secret.name)
                .is_some(),
        )
    }
}

impl Nodes for World {
    fn get(&self, name: &str) -> Option<Arc<NodeImage>> {
        let node = self.store.get(kruise_api::nodeimage::RESOURCE, "", name)?;
        Some(Arc::new(NodeImage::from_value(node.clone()).unwrap()))
    }

    fn all(&self) -> Vec<Arc<NodeImage>> {
        let all = self.store.all(kruise_api::nodeimage::RESOURCE);
        all.map(|node| Arc::new(NodeImage::from_value(node.clone()).unwrap()))
            .collect()
    }
}

/// A world with these nodes.
pub(crate) fn world(nodes: &[&str]) -> World {
    let mut world = World::new();
    for node in nodes {
        world.node(node);
    }
    world
}

/// The tags of an image on a node.
pub(crate) fn tags(world: &World, node: &str, image: &str) -> Vec<Value> {
    let tags = world.image(node)["spec"]["images"][image]["tags"].as_array();
    tags.cloned().unwrap_or_default()
}

/// Names of the jobs that want a tag.
pub(crate) fn owners(tag: &Value) -> Vec<&str> {
    let owners = tag["ownerReferences"].as_array().unwrap().iter();
    owners.map(|owner| owner["name"].as_str().unwrap()).collect()
}

/// Every active node of the job reports success, and so on until there is none.
pub(crate) fn pull(world: &mut World, job: &str, image: &str) {
    for _ in 0..20 {
        world.settle();
        let active = world.active(job);
        if active.is_empty() {
            return;
        }
        for node in active {
            world.report(&node, image, "Succeeded");
        }
    }
    panic!("{job} has no end");
}
