//! A world for one agent: it carries out effects after made-up delays, and holds what must hold at every step.

mod seen;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_agent_core::{
    Agent, AttemptId, Config, ContainerId, Effect, Event, Failure, Filesystem, NodeImageView, Pull,
    PullError, RuntimeContainer, RuntimeImage, SecretRef, SecretState, WriteError,
};
use kruise_views::NodePodView;
use serde_json::{Map, Value, json};

pub const START: &str = "2026-01-02T03:04:05Z";

/// How a pull goes.
#[derive(Clone, Debug)]
pub enum Course {
    Succeeds(Duration),
    Fails(Duration, &'static str),
    Hangs,
    Breaks(Duration),
}

/// What happens at a time.
#[derive(Clone, Debug)]
struct Item {
    event: Event,
    /// An image that the runtime has from then on.
    image: Option<String>,
}

pub struct World {
    pub agent: Agent,
    pub config: Config,
    pub now: Timestamp,
    items: BTreeMap<(Timestamp, u64), Item>,
    count: u64,
    /// When the watch of the NodeImage says what it said last.
    last_watched: Timestamp,
    /// The stored NodeImage; null if there is none.
    pub node_image: Value,
    pub pods: BTreeMap<String, Value>,
    /// The stored ContainerRecreateRequests, by name.
    pub requests: BTreeMap<String, Value>,
    pub are_pods_unreadable: bool,
    version: u64,
    /// What is wrong with the API server, if something is.
    pub api_error: Option<WriteError>,
    pub secrets: BTreeMap<SecretRef, SecretState>,
    pub is_up: bool,
    pub images: Vec<String>,
    pub disk: Filesystem,
    pub is_disk_unreadable: bool,
    pub courses: BTreeMap<String, VecDeque<Course>>,
    pub usual: Course,
    pub listing: Duration,
    pub reading_secrets: Duration,
    pub broken_listing: bool,
    pub containers: BTreeMap<String, Vec<RuntimeContainer>>,
    pub environments: BTreeMap<String, Result<String, Failure>>,
    pub is_env_missing: bool,
    pub stop_error: Option<Failure>,
    /// How long a stop takes.
    pub stopping: Duration,
    /// How long a hook takes.
    pub hook: Duration,
    /// Does a test start the successors of containers that were stopped?
    pub is_kubelet_away: bool,
    /// What containers end with that are stopped.
    pub exit_code: i32,
    /// From a change of a pod to the event of it.
    pub watch_delay: Duration,
    pulling: BTreeMap<AttemptId, (String, Option<(Timestamp, u64)>)>,
    /// Everything that was done, and when.
    pub trace: Vec<(Timestamp, Effect)>,
}

pub fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let members = target.as_object_mut().unwrap();
    for (name, value) in patch {
        if value.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

impl World {
    /// A node whose agent has started and found its runtime.
    pub fn new(config: Config) -> Self {
        let mut world = Self::unstarted(config);
        world.start();
        world.run(seconds(1));
        world
    }

    pub fn unstarted(config: Config) -> Self {
        Self {
            agent: Agent::new(config.clone()),
            config,
            now: time(START),
            items: BTreeMap::new(),
            count: 0,
            last_watched: time(START),
            node_image: Value::Null,
            pods: BTreeMap::new(),
            requests: BTreeMap::new(),
            are_pods_unreadable: false,
            version: 100,
            api_error: None,
            secrets: BTreeMap::new(),
            is_up: true,
            images: Vec::new(),
            disk: Filesystem { free: 50, size: 100 },
            is_disk_unreadable: false,
            courses: BTreeMap::new(),
            usual: Course::Succeeds(seconds(5)),
            listing: millis(20),
            reading_secrets: millis(10),
            broken_listing: false,
            containers: BTreeMap::new(),
            environments: BTreeMap::new(),
            is_env_missing: false,
            stop_error: None,
            stopping: millis(100),
            hook: seconds(4),
            is_kubelet_away: false,
            exit_code: 137,
            watch_delay: millis(10),
            pulling: BTreeMap::new(),
            trace: Vec::new(),
        }
    }

    pub fn start(&mut self) {
        self.deliver(Event::Started);
        self.deliver(match self.view() {
            Some(view) => Event::NodeImage(view),
            None => Event::NodeImageDeleted,
        });
        let pods: Vec<Value> = self.pods.values().cloned().collect();
        for pod in pods {
            let pod = Arc::new(serde_json::from_value(pod).unwrap());
            self.deliver(Event::Pod { pod, initial: true });
        }
        let requests: Vec<Value> = self.requests.values().cloned().collect();
        for request in requests {
            self.deliver(Event::Request(Arc::new(serde_json::from_value(request).unwrap())));
        }
    }

    /// The process ends, its calls with it, and another one starts.
    pub fn restart(&mut self) {
        self.agent = Agent::new(self.config.clone());
        self.items.clear();
        self.pulling.clear();
        self.start();
    }

    fn view(&self) -> Option<Arc<NodeImageView>> {
        (!self.node_image.is_null())
            .then(|| Arc::new(serde_json::from_value(self.node_image.clone()).unwrap()))
    }

    fn later(&self, delay: Duration) -> Timestamp {
        self.now
            .checked_add(SignedDuration::try_from(delay).unwrap())
            .unwrap()
    }

    fn schedule(&mut self, delay: Duration, event: Event, image: Option<String>) -> (Timestamp, u64) {
        self.count += 1;
        let key = (self.later(delay), self.count);
        self.items.insert(key, Item { event, image });
        key
    }

    pub fn inject(&mut self, event: Event) {
        self.schedule(Duration::ZERO, event, None);
    }

    // --- users and controllers

    /// Edits the NodeImage as a merge patch of all of it.
    pub fn edit(&mut self, patch: &Value) {
        if self.node_image.is_null() {
            self.node_image = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage",
                "metadata": {"name": "n1", "uid": format!("uid-{}", self.version)}, "spec": {}});
        }
        merge(&mut self.node_image, patch);
        self.changed(millis(10));
    }

    /// Replaces the images of the NodeImage.
    pub fn want(&mut self, images: Value) {
        self.edit(&json!({"spec": {"images": null}}));
        self.edit(&json!({"spec": {"images": images}}));
    }

    pub fn delete_node_image(&mut self) {
        self.node_image = Value::Null;
        self.version += 1;
        self.watched(millis(10), Event::NodeImageDeleted);
    }

    /// The watch of the NodeImage says something. It keeps the order of the changes, however long each takes to arrive.
    fn watched(&mut self, delay: Duration, event: Event) {
        let arrival = self.later(delay).max(self.last_watched);
        self.last_watched = arrival;
        self.count += 1;
        self.items
            .insert((arrival, self.count), Item { event, image: None });
    }

    fn changed(&mut self, delay: Duration) {
        self.version += 1;
        self.node_image["metadata"]["resourceVersion"] = self.version.to_string().into();
        if let Some(view) = self.view() {
            self.watched(delay, Event::NodeImage(view));
        }
    }

    /// Creates or changes a pod.
    pub fn put_pod(&mut self, name: &str, patch: &Value) {
        self.version += 1;
        let version = self.version.to_string();
        let pod = self.pods.entry(name.to_owned()).or_insert_with(
            || json!({"metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}")}}),
        );
        merge(pod, patch);
        pod["metadata"]["resourceVersion"] = version.into();
        let pod: NodePodView = serde_json::from_value(pod.clone()).unwrap();
        let event = Event::Pod {
            pod: Arc::new(pod),
            initial: false,
        };
        self.schedule(self.watch_delay, event, None);
    }

    /// Creates or changes a ContainerRecreateRequest.
    pub fn put_request(&mut self, name: &str, patch: &Value) {
        self.version += 1;
        let request = self.requests.entry(name.to_owned()).or_insert_with(
            || json!({"metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}")}}),
        );
        merge(request, patch);
        request["metadata"]["resourceVersion"] = self.version.to_string().into();
        let view = Arc::new(serde_json::from_value(request.clone()).unwrap());
        self.schedule(self.watch_delay, Event::Request(view), None);
    }

    pub fn delete_request(&mut self, name: &str) {
        self.requests.remove(name);
        let uid = format!("uid-{name}").into();
        self.schedule(self.watch_delay, Event::RequestDeleted { uid }, None);
    }

    // --- time

    pub fn run(&mut self, duration: Duration) {
        let end = self.later(duration);
        let mut steps_at_once = 0;
        loop {
            let timer = self.agent.next_timer().map(|timer| timer.max(self.now));
            let item = self.items.keys().next().map(|(time, _)| *time);
            let Some(next) = timer.into_iter().chain(item).min().filter(|next| *next <= end) else {
                break;
            };
            steps_at_once = if next == self.now { steps_at_once + 1 } else { 0 };
            assert!(steps_at_once < 10_000, "the agent never waits");
            self.now = next;
            if item == Some(next) {
                let (_, item) = self.items.pop_first().unwrap();
                self.images.extend(item.image);
                self.deliver(item.event);
            } else {
                self.deliver(Event::Timer);
            }
        }
        self.now = end;
    }

    fn deliver(&mut self, event: Event) {
        if let Event::PullEnded { attempt, .. } = &event {
            self.pulling.remove(attempt);
        }
        let effects = self.agent.handle(event, self.now);
        for effect in effects {
            self.trace.push((self.now, effect.clone()));
            self.carry_out(effect);
        }
    }

    fn unavailable<T>() -> Result<T, Failure> {
        Err(Failure::Unavailable("connection refused".into()))
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::DetectRuntimes => {
                let found = if self.is_up {
                    Ok(["containerd".into()].into())
                } else {
                    Err("connection refused".into())
                };
                self.schedule(millis(10), Event::RuntimesDetected(found), None);
            }
            Effect::ListImages => {
                let images = self.images.iter().map(|image| runtime_image(image)).collect();
                let result = match (self.is_up, self.broken_listing) {
                    (false, _) => Self::unavailable(),
                    (true, true) => Err(Failure::Failed("invalid wire type".into())),
                    (true, false) => Ok(images),
                };
                self.schedule(self.listing, Event::ImagesListed(result), None);
            }
            Effect::ReadFilesystem => {
                let result = match (self.is_up, self.is_disk_unreadable) {
                    (false, _) => Self::unavailable(),
                    (true, true) => Err(Failure::Failed("unknown service".into())),
                    (true, false) => Ok(self.disk),
                };
                self.schedule(millis(5), Event::FilesystemRead(result), None);
            }
            Effect::ReadSecrets { attempt, secrets } => {
                let state =
                    |secret: &SecretRef| self.secrets.get(secret).cloned().unwrap_or(SecretState::Missing);
                let secrets = secrets
                    .iter()
                    .map(|secret| (secret.clone(), state(secret)))
                    .collect();
                self.schedule(
                    self.reading_secrets,
                    Event::SecretsRead { attempt, secrets },
                    None,
                );
            }
            Effect::Pull(pull) => self.pull(pull),
            Effect::CancelPull(attempt) => self.cancel(attempt),
            Effect::ReadContainers { pod, .. } => {
                let containers = self.containers.get(&*pod).cloned().unwrap_or_default();
                let result = if self.is_up {
                    Ok(containers)
                } else {
                    Self::unavailable()
                };
                self.schedule(millis(10), Event::ContainersRead { pod, result }, None);
            }
            Effect::ReadPod { request, name, .. } => {
                let pod = self.pods.get(&*name).cloned();
                let pod = pod.map(|pod| serde_json::from_value(pod).unwrap());
                let result = if self.are_pods_unreadable {
                    Err("forbidden".into())
                } else {
                    Ok(pod)
                };
                self.schedule(millis(10), Event::PodRead { request, result }, None);
            }
            Effect::InspectContainers { request, pod, .. } => {
                let containers = self.containers.get(&*pod).cloned().unwrap_or_default();
                let result = if self.is_up {
                    Ok(containers)
                } else {
                    Self::unavailable()
                };
                self.schedule(millis(10), Event::ContainersInspected { request, result }, None);
            }
            Effect::ReadEnvironment { container, .. } => {
                let known = self.environments.get(&*container.id).cloned();
                let result = match (self.is_env_missing, known) {
                    (false, Some(known)) => known.map(Into::into),
                    _ => Err(Failure::Failed("exit code 127".into())),
                };
                self.schedule(millis(30), Event::EnvironmentRead { container, result }, None);
            }
            Effect::RunPreStop {
                container, timeout, ..
            } => {
                let result = if self.hook > timeout {
                    Err("it did not end in time".into())
                } else {
                    Ok(())
                };
                let event = Event::PreStopEnded { container, result };
                self.schedule(self.hook.min(timeout), event, None);
            }
            // The node of this world has no NodePodProbe.
            Effect::ListProbedContainers(_)
            | Effect::RunProbe(_)
            | Effect::CancelProbe(_)
            | Effect::PatchNodePodProbeStatus { .. } => unreachable!("nothing is probed"),
            Effect::StopContainer { container, .. } => self.stop(container),
            Effect::PatchNodeImageStatus { name, patch } => self.patch_status(&name, &patch),
            Effect::PatchPodStatus { name, uid, patch, .. } => self.patch_pod(&name, uid, &patch),
            Effect::PatchRequestStatus { name, uid, patch, .. } => self.patch_request(&name, uid, &patch),
            Effect::Event(_) | Effect::Health(_) | Effect::Log(..) => {}
        }
    }

    fn pull(&mut self, pull: Pull) {
        let is_same = |(image, _): &(String, _)| **image == *pull.image;
        assert!(
            !self.pulling.values().any(is_same),
            "{} is pulled twice at a time",
            pull.image
        );
        let limit = self
            .config
            .max_pulls
            .map_or(usize::MAX, |limit| limit.get() as usize);
        assert!(self.pulling.len() < limit, "more pulls than the limit");
        let attempt = pull.attempt;
        let course = self.courses.get_mut(&*pull.image).and_then(VecDeque::pop_front);
        let course = if self.is_up {
            course
        } else {
            Some(Course::Breaks(millis(10)))
        };
        let (takes, result) = match course.unwrap_or_else(|| self.usual.clone()) {
            Course::Succeeds(takes) => (takes, Ok(format!("id-of-{}", pull.image).into())),
            Course::Fails(takes, problem) => {
                (takes, Err(PullError::Failure(Failure::Failed(problem.into()))))
            }
            Course::Hangs => (Duration::MAX, Err(PullError::TimedOut)),
            Course::Breaks(takes) => (
                takes,
                Err(PullError::Failure(Failure::Unavailable("transport error".into()))),
            ),
        };
        let (takes, result) = if takes > pull.timeout {
            (pull.timeout, Err(PullError::TimedOut))
        } else {
            (takes, result)
        };
        let image = result.is_ok().then(|| pull.image.to_string());
        let key = self.schedule(takes, Event::PullEnded { attempt, result }, image);
        self.pulling.insert(attempt, (pull.image.to_string(), Some(key)));
    }

    fn cancel(&mut self, attempt: AttemptId) {
        let Some((_, key)) = self.pulling.get_mut(&attempt) else {
            return;
        };
        if let Some(key) = key.take() {
            self.items.remove(&key);
            let result = Err(PullError::Cancelled);
            self.schedule(millis(50), Event::PullEnded { attempt, result }, None);
        }
    }

    /// A container ends, and the kubelet starts its successor with what the pod says by then.
    fn stop(&mut self, container: ContainerId) {
        let result = self.stop_error.clone().map_or(Ok(()), Err);
        let has_stopped = result.is_ok();
        let event = Event::ContainerStopped {
            container: container.clone(),
            result,
        };
        self.schedule(self.stopping, event, None);
        if !has_stopped {
            return;
        }
        let uid = self.containers.iter().find_map(|(uid, containers)| {
            containers
                .iter()
                .any(|one| one.id == container.id)
                .then(|| uid.clone())
        });
        let uid = uid.unwrap();
        let name = uid.trim_start_matches("uid-").to_owned();
        let containers = self.containers.get_mut(&uid).unwrap();
        let before = containers.iter_mut().find(|one| one.id == container.id).unwrap();
        before.is_running = false;
        before.exit_code = Some(self.exit_code);
        if self.is_kubelet_away {
            return;
        }
        let mut next = before.clone();
        next.id = format!("{}+", before.id).into();
        next.created += 1;
        next.is_running = true;
        next.exit_code = None;
        let (container_name, id) = (next.name.to_string(), next.id.to_string());
        containers.push(next);
        self.describe_environment(&name, &container_name, &id);
        let mut statuses = self.pods[&name]["status"]["containerStatuses"].clone();
        for status in statuses.as_array_mut().unwrap() {
            if status["name"] == container_name.as_str() {
                status["containerID"] = format!("containerd://{id}").into();
            }
        }
        self.put_pod(&name, &json!({"status": {"containerStatuses": statuses}}));
    }

    /// What `env` prints in a container that starts now.
    pub fn describe_environment(&mut self, pod: &str, container: &str, id: &str) {
        let pod: NodePodView = serde_json::from_value(self.pods[pod].clone()).unwrap();
        let variables = pod.container(container).unwrap().environment.iter();
        let lines: String = variables
            .map(|(name, value)| [&**name, "=", value, "\n"].concat())
            .collect();
        let printed = format!("PATH=/bin\n{lines}HOME=/\n");
        self.environments.insert(id.to_owned(), Ok(printed));
    }

    fn patch_status(&mut self, name: &str, patch: &Value) {
        assert_eq!(name, "n1");
        let result = match &self.api_error {
            Some(error) => Err(error.clone()),
            None if self.node_image.is_null() => Err(WriteError::NotFound),
            None if patch["metadata"]["uid"] != self.node_image["metadata"]["uid"] => {
                Err(WriteError::Conflict)
            }
            None => {
                merge(&mut self.node_image["status"], &patch["status"]);
                self.changed(millis(15));
                Ok(self.version.to_string().into())
            }
        };
        self.schedule(millis(10), Event::StatusWritten(result), None);
    }

    fn patch_pod(&mut self, name: &str, uid: Box<str>, patch: &Value) {
        assert_eq!(patch["metadata"]["uid"], &*uid);
        let result = match &self.api_error {
            Some(error) => Err(error.clone()),
            None if !self.pods.contains_key(name) => Err(WriteError::NotFound),
            None => {
                let annotations = json!({"metadata": {"annotations": patch["metadata"]["annotations"]}});
                self.put_pod(name, &annotations);
                Ok(self.version.to_string().into())
            }
        };
        self.schedule(millis(10), Event::ReportWritten { pod: uid, result }, None);
    }

    fn patch_request(&mut self, name: &str, uid: Box<str>, patch: &Value) {
        assert_eq!(patch["metadata"]["uid"], &*uid);
        let guard = patch["metadata"].get("resourceVersion");
        let stored = self.requests.get(name);
        let version = stored.map(|stored| &stored["metadata"]["resourceVersion"]);
        let result = match &self.api_error {
            Some(error) => Err(error.clone()),
            None if stored.is_none() => Err(WriteError::NotFound),
            None if guard.is_some() && guard != version => Err(WriteError::Conflict),
            None => {
                self.put_request(name, &json!({"status": patch["status"]}));
                Ok(self.version.to_string().into())
            }
        };
        self.schedule(millis(10), Event::RequestWritten { request: uid, result }, None);
    }

    /// Lets events that are under way arrive in another order: each gets a delay of its own.
    pub fn shuffle(&mut self, delays: impl Fn(u64) -> Duration) {
        for ((time, count), item) in std::mem::take(&mut self.items) {
            // Watches never go back.
            let is_watch = matches!(
                item.event,
                Event::NodeImage(_)
                    | Event::NodeImageDeleted
                    | Event::Pod { .. }
                    | Event::Request(_)
                    | Event::RequestDeleted { .. }
            );
            let delay = if is_watch { Duration::ZERO } else { delays(count) };
            let delayed = time
                .checked_add(SignedDuration::try_from(delay).unwrap())
                .unwrap();
            if let Event::PullEnded { attempt, .. } = &item.event
                && let Some((_, Some(key))) = self.pulling.get_mut(attempt)
            {
                *key = (delayed, count);
            }
            self.items.insert((delayed, count), item);
        }
    }
}

/// An image as containerd lists it.
fn runtime_image(reference: &str) -> RuntimeImage {
    let full = match reference.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) => reference.to_owned(),
        Some(_) => format!("docker.io/{reference}"),
        None => format!("docker.io/library/{reference}"),
    };
    let (tags, digests) = if reference.contains('@') {
        (Vec::new(), vec![full.into()])
    } else {
        (vec![full.into()], Vec::new())
    };
    RuntimeImage {
        id: format!("sha256:{reference}").into(),
        tags,
        digests,
    }
}
