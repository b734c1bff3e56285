//! Nodes, their images, jobs and secrets, and a server that carries plans out.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    imagelistpulljob::ImageListPullJob,
    imagepulljob::{self, ImagePullJob},
    nodeimage::{NodeImage, ObjectReference, SecretReference},
};
use kruise_plan_kit::{Explain, Memory, Plan, ResourceId, Target, Write};
use kruise_plan_nodes::{
    imagelistpulljob,
    imagepulljob::{self as pulls, Nodes},
    nodeimage::{self, Jobs, Owner, Secrets},
};
use kruise_plan_test_kit::{Refused, create, may_delete, merge, patch, text};
use kruise_views::{PodView, SecretView};
use serde_json::{Value, json};

pub(crate) const API_VERSION: &str = "apps.kruise.io/v1beta1";
pub(crate) const AGENT: &str = "kruise-daemon-config";

/// An object by resource, namespace and name.
type Key = (ResourceId, String, String);

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) explain: Explain,
    pub(crate) sees_copies: bool,
    objects: BTreeMap<Key, Value>,
    memory: BTreeMap<Key, Memory>,
    /// Writes that were carried out: `verb name`.
    pub(crate) written: Vec<String>,
    /// Events of the plans that were carried out: `Reason kind/name: message`.
    pub(crate) events: Vec<String>,
    version: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            now: "2026-01-01T01:00:00Z".parse().unwrap(),
            explain: Explain::No,
            sees_copies: true,
            objects: BTreeMap::new(),
            memory: BTreeMap::new(),
            written: Vec::new(),
            events: Vec::new(),
            version: 1,
        }
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    fn bump(&mut self) -> Value {
        self.version += 1;
        json!(self.version.to_string())
    }

    /// Stores an object as it is, with a uid and a version if it has none.
    pub(crate) fn store(&mut self, resource: ResourceId, mut object: Value) {
        let version = self.bump();
        let metadata = &mut object["metadata"];
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!(
                "uid-{}-{}",
                resource.plural,
                metadata["name"].as_str().unwrap()
            ));
        }
        if metadata["resourceVersion"].is_null() {
            metadata["resourceVersion"] = version;
        }
        let member = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
        let key = (resource, member("namespace"), member("name"));
        self.objects.insert(key, object);
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
            ResourceId::NODE_IMAGES,
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
        self.store(ResourceId::IMAGE_PULL_JOBS, job);
    }

    /// The list `shop/NAME` with this specification.
    pub(crate) fn list(&mut self, name: &str, spec: &Value) {
        let mut full = json!({"completionPolicy": {"type": "Always"}});
        merge(&mut full, spec);
        let metadata = json!({"name": name, "namespace": "shop", "creationTimestamp": text(self.now)});
        let list = json!({"apiVersion": API_VERSION, "kind": "ImageListPullJob", "metadata": metadata, "spec": full});
        self.store(ResourceId::IMAGE_LIST_PULL_JOBS, list);
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

    pub(crate) fn get(&self, resource: ResourceId, namespace: &str, name: &str) -> Option<&Value> {
        self.objects
            .get(&(resource, namespace.to_owned(), name.to_owned()))
    }

    /// The NodeImage of a node.
    pub(crate) fn image(&self, node: &str) -> &Value {
        self.get(ResourceId::NODE_IMAGES, "", node)
            .unwrap_or(&Value::Null)
    }

    /// The job `shop/NAME`; null if there is none.
    pub(crate) fn the_job(&self, name: &str) -> &Value {
        let job = self.get(ResourceId::IMAGE_PULL_JOBS, "shop", name);
        job.unwrap_or(&Value::Null)
    }

    /// All objects of a resource.
    pub(crate) fn all(&self, resource: ResourceId) -> impl Iterator<Item = &Value> {
        let of = move |((one, ..), _): &(&Key, &Value)| *one == resource;
        self.objects.iter().filter(of).map(|(_, object)| object)
    }

    /// Names of all objects of a resource.
    pub(crate) fn names(&self, resource: ResourceId) -> Vec<String> {
        let names = self
            .all(resource)
            .map(|object| object["metadata"]["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    }

    /// Somebody changes an object.
    pub(crate) fn edit(&mut self, resource: ResourceId, namespace: &str, name: &str, change: &Value) {
        let version = self.bump();
        let key = (resource, namespace.to_owned(), name.to_owned());
        let object = self
            .objects
            .get_mut(&key)
            .unwrap_or_else(|| panic!("there is a {key:?}"));
        merge(object, change);
        object["metadata"]["resourceVersion"] = version;
    }

    /// Somebody deletes an object: it stays while it has finalizers.
    pub(crate) fn delete(&mut self, resource: ResourceId, namespace: &str, name: &str) {
        let key = (resource, namespace.to_owned(), name.to_owned());
        let object = self
            .objects
            .get_mut(&key)
            .unwrap_or_else(|| panic!("there is a {key:?}"));
        object["metadata"]["deletionTimestamp"] = json!(text(self.now));
        let version = self.bump();
        self.objects.get_mut(&key).unwrap()["metadata"]["resourceVersion"] = version;
        self.collect(&key);
    }

    /// An object that is deleted goes once nothing holds it, and what it controls goes with it.
    fn collect(&mut self, key: &Key) {
        let Some(object) = self.objects.get(key) else {
            return;
        };
        let metadata = &object["metadata"];
        let is_held = metadata["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
        if metadata["deletionTimestamp"].is_null() || is_held {
            return;
        }
        let uid = metadata["uid"].clone();
        self.objects.remove(key);
        let controlled = |object: &Value| object["metadata"]["ownerReferences"][0]["uid"] == uid;
        let orphans = self.objects.iter().filter(|(_, object)| controlled(object));
        let orphans: Vec<Key> = orphans.map(|(key, _)| key.clone()).collect();
        for (resource, namespace, name) in orphans {
            self.delete(resource, &namespace, &name);
        }
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
        self.edit(ResourceId::NODE_IMAGES, "", node, &change);
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
        let nodes = self.all(ResourceId::NODE_IMAGES).filter(is_active);
        nodes
            .map(|node| node["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }

    fn decode<T: serde::de::DeserializeOwned>(&self, resource: ResourceId, namespace: &str) -> Vec<Arc<T>> {
        let of = |((one, within, _), _): &(&Key, &Value)| *one == resource && within == namespace;
        let objects = self
            .objects
            .iter()
            .filter(of)
            .map(|(_, object)| object.to_string());
        objects
            .map(|object| Arc::new(serde_json::from_str(&object).unwrap()))
            .collect()
    }

    fn secrets(&self) -> Vec<Arc<SecretView>> {
        let all = self.all(ResourceId::SECRETS).map(Value::to_string);
        all.map(|object| Arc::new(serde_json::from_str(&object).unwrap()))
            .collect()
    }

    /// Plans until the plan needs nothing more.
    fn with_needs(&self, key: &Key, plan: impl Fn(&Memory) -> Plan) -> Plan {
        let mut memory = self.memory.get(key).cloned().unwrap_or_default();
        for _ in 0..3 {
            let planned = plan(&memory);
            if planned.needs.is_empty() {
                return planned;
            }
            for need in planned.needs {
                let target = need.target();
                let object = self
                    .get(target.resource, &target.namespace, &target.name)
                    .cloned();
                memory.read.insert(need, object);
            }
        }
        panic!("a plan asks again and again");
    }

    /// The plan of the NodeImage of a node.
    pub(crate) fn plan_node(&self, name: &str) -> Plan {
        let image = self.get(ResourceId::NODE_IMAGES, "", name);
        let image = image.map(|image| NodeImage::from_value(image.clone()).unwrap());
        let node = self.get(ResourceId::NODES, "", name);
        let node = node.map(|node| serde_json::from_str(&node.to_string()).unwrap());
        let snapshot = nodeimage::Snapshot {
            name,
            api_version: API_VERSION,
            image: image.as_ref(),
            node: node.as_ref(),
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
        let key = (ResourceId::IMAGE_PULL_JOBS, "shop".to_owned(), name.to_owned());
        let job = ImagePullJob::from_value(self.objects[&key].clone()).unwrap();
        self.plan_for(&key, &job, changed_after_end)
    }

    /// The plan of this job, which need not be stored.
    pub(crate) fn plan_of(&self, job: &ImagePullJob) -> Plan {
        let metadata = &job.metadata;
        let key = (
            ResourceId::IMAGE_PULL_JOBS,
            metadata.namespace.clone(),
            metadata.name.clone(),
        );
        self.plan_for(&key, job, false)
    }

    fn plan_for(&self, key: &Key, job: &ImagePullJob, changed_after_end: bool) -> Plan {
        let pods = pulls::of_pods(&job.spec, self.decode::<PodView>(ResourceId::PODS, "shop"));
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
            ResourceId::IMAGE_LIST_PULL_JOBS,
            "shop".to_owned(),
            name.to_owned(),
        );
        let list = ImageListPullJob::from_value(self.objects[&key].clone()).unwrap();
        let uid = &self.objects[&key]["metadata"]["uid"];
        let jobs = self.all(ResourceId::IMAGE_PULL_JOBS);
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
        let reported = plan.status.as_ref().is_some_and(|status| {
            let key = key(&status.target);
            let version = self.bump();
            // A report for an object that has changed since is not written.
            let object = self.objects.get_mut(&key);
            let current = object.filter(|object| object["metadata"]["resourceVersion"] == *status.version);
            current.is_some_and(|object| {
                merge(object, &status.patch);
                object["metadata"]["resourceVersion"] = version;
                true
            })
        });
        reported || !plan.writes.is_empty()
    }

    /// None of the writes of the plan of a job is carried out.
    pub(crate) fn try_in_vain(&mut self, job: &str, plan: &Plan) {
        let key = (ResourceId::IMAGE_PULL_JOBS, "shop".to_owned(), job.to_owned());
        let memory = self.memory.entry(key).or_default();
        memory.count(plan.attempts.clone(), self.now);
    }

    /// Carries one write out.
    pub(crate) fn apply(&mut self, write: &Write, previous: &mut Option<String>) -> Result<(), Refused> {
        let key = key(write.target());
        let version = self.bump();
        match write {
            Write::Create { target, body, .. } => {
                if self.objects.contains_key(&key) {
                    return Err(Refused::AlreadyExists);
                }
                let uid = format!("uid-{}", self.version);
                let object = create(body.render(), &target.name, &uid, version, &text(self.now));
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
                let object = self.objects.get(&key).ok_or(Refused::NotFound)?;
                may_delete(object, precondition)?;
                let (resource, namespace, name) = key;
                self.delete(resource, &namespace, &name);
            }
        }
        let line = format!("{} {}", write.intent().as_str(), write.target().name);
        self.written.push(line);
        Ok(())
    }

    /// Lets the controller of jobs run for one job until it has nothing to do.
    pub(crate) fn settle_job(&mut self, name: &str) {
        for _ in 0..20 {
            let plan = self.plan_job(name);
            if !self.execute(&plan) {
                return;
            }
        }
        panic!("{name} never rests");
    }

    /// Lets all controllers run until none has anything to do. Returns the number of rounds.
    pub(crate) fn settle(&mut self) -> usize {
        for round in 0..200 {
            let mut has_written = false;
            for name in self.names(ResourceId::IMAGE_LIST_PULL_JOBS) {
                let plan = self.plan_list(&name);
                has_written |= self.execute(&plan);
            }
            for name in self.names(ResourceId::IMAGE_PULL_JOBS) {
                if !self.the_job(&name).is_null() {
                    let plan = self.plan_job(&name);
                    has_written |= self.execute(&plan);
                }
            }
            let mut nodes = self.names(ResourceId::NODES);
            nodes.extend(self.names(ResourceId::NODE_IMAGES));
            for name in nodes {
                let plan = self.plan_node(&name);
                has_written |= self.execute(&plan);
            }
            if !has_written {
                return round;
            }
        }
        panic!("the controllers never rest");
    }
}

fn key(target: &Target) -> Key {
    (target.resource, target.namespace.clone(), target.name.clone())
}

impl Jobs for World {
    fn owner(&self, reference: &ObjectReference) -> Owner {
        if !reference.is_of(&imagepulljob::KIND) {
            return Owner::Unknown;
        }
        let job = self.get(ResourceId::IMAGE_PULL_JOBS, &reference.namespace, &reference.name);
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
            self.get(ResourceId::SECRETS, &secret.namespace, &secret.name)
                .is_some(),
        )
    }
}

impl Nodes for World {
    fn get(&self, name: &str) -> Option<Arc<NodeImage>> {
        let node = self.get(ResourceId::NODE_IMAGES, "", name)?;
        Some(Arc::new(NodeImage::from_value(node.clone()).unwrap()))
    }

    fn all(&self) -> Vec<Arc<NodeImage>> {
        let all = self.all(ResourceId::NODE_IMAGES);
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
