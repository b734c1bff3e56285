//! The pods as a watch shows them, and how many of each workload are available.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::TryStreamExt as _;
use http::Request;
use kube_client::Client;
use kube_core::WatchEvent;
use serde::Deserialize;

use super::NAME;

/// What is read of a pod.
#[derive(Clone, Debug, Deserialize)]
struct Pod {
    metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    deletion_timestamp: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Spec {
    containers: Vec<Container>,
}

#[derive(Clone, Debug, Deserialize)]
struct Container {
    name: String,
    image: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
    conditions: Vec<Condition>,
    container_statuses: Vec<Container>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    name: String,
    status: String,
}

#[derive(Deserialize)]
struct List {
    metadata: ListMetadata,
    items: Vec<Pod>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
}

impl Pod {
    fn app(&self) -> String {
        self.metadata.labels.get("app").cloned().unwrap_or_default()
    }

    fn has(&self, condition: &str) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|one| one.name == condition && one.status == "True")
    }

    /// Ready, staying, and with the images that it should run.
    fn is_available(&self) -> bool {
        let runs = |container: &Container| {
            let mut statuses = self.status.container_statuses.iter();
            statuses.any(|status| status.name == container.name && status.image == container.image)
        };
        self.metadata.deletion_timestamp.is_none()
            && self.status.phase == "Running"
            && self.has("Ready")
            && self.has("InPlaceUpdateReady")
            && self.spec.containers.iter().all(runs)
    }
}

/// A pod as it was seen last.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    app: String,
    image: String,
    pub(super) available: bool,
}

impl Seen {
    pub(super) fn runs(&self, image: &str) -> bool {
        self.image == image
    }
}

impl From<&Pod> for Seen {
    fn from(pod: &Pod) -> Self {
        let image = pod
            .spec
            .containers
            .first()
            .map(|container| container.image.clone());
        Self {
            app: pod.app(),
            image: image.unwrap_or_default(),
            available: pod.is_available(),
        }
    }
}

/// What a watch has shown so far.
#[derive(Default)]
pub(super) struct Watched(Mutex<State>);

#[derive(Default)]
struct State {
    pods: BTreeMap<String, Seen>,
    /// How many pods of each workload must be available.
    demanded: BTreeMap<String, usize>,
    /// The fewest that were, of all workloads; none before anything is demanded.
    least: Option<usize>,
    violations: Vec<String>,
    /// Pods that a client is about to evict.
    taken: BTreeSet<String>,
}

impl State {
    fn available(&self, app: &str) -> usize {
        let pods = self.pods.values();
        pods.filter(|pod| pod.app == app && pod.available).count()
    }

    fn see(&mut self, event: WatchEvent<Pod>) {
        let (name, app) = match &event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod) => {
                (pod.metadata.name.clone(), pod.app())
            }
            WatchEvent::Bookmark(_) => return,
            WatchEvent::Error(error) => return self.violations.push(format!("the watch fails: {error:?}")),
        };
        match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                self.pods.insert(name.clone(), Seen::from(&pod));
            }
            _ => {
                self.pods.remove(&name);
            }
        }
        self.judge(&app, &name);
    }

    /// Compares what is available of a workload with what is demanded, after a pod of it has changed.
    fn judge(&mut self, app: &str, pod: &str) {
        let Some(demanded) = self.demanded.get(app).copied() else {
            return;
        };
        let available = self.available(app);
        self.least = Some(self.least.map_or(available, |least| least.min(available)));
        if available < demanded {
            self.violations.push(format!(
                "{available} pods of {app} are available after {pod} has changed, {demanded} must be"
            ));
        }
    }
}

impl Watched {
    /// Follows the pods with a client until the runtime ends.
    pub(super) async fn follow(self: &Arc<Self>, client: Client) {
        let pods = format!("/api/v1/pods?labelSelector=load%3D{NAME}");
        let list: List = client.request(get(&pods)).await.unwrap();
        for pod in list.items {
            self.state()
                .pods
                .insert(pod.metadata.name.clone(), Seen::from(&pod));
        }
        let version = list.metadata.resource_version;
        let watch = format!("{pods}&watch=true&timeoutSeconds=3600&resourceVersion={version}");
        let events = client.request_events::<Pod>(get(&watch)).await.unwrap();
        let this = self.clone();
        tokio::spawn(async move {
            let mut events = pin!(events);
            let ended = loop {
                match events.try_next().await {
                    Ok(Some(event)) => this.state().see(event),
                    ended => break ended.map(drop),
                }
            };
            // What comes after it is not seen.
            this.state()
                .violations
                .push(format!("the watch has ended: {ended:?}"));
        });
    }

    /// From now on so many pods of each workload must be available.
    pub(super) fn demand(&self, demanded: BTreeMap<String, usize>) {
        self.state().demanded = demanded;
    }

    /// Pods of a workload with a property.
    pub(super) fn count(&self, app: &str, has: impl Fn(&Seen) -> bool) -> usize {
        let state = self.state();
        let pods = state.pods.values().filter(|pod| pod.app == app);
        pods.filter(|pod| has(pod)).count()
    }

    /// An available pod of a workload that no other client takes; `draw` chooses.
    pub(super) fn take(&self, app: &str, draw: usize) -> Option<String> {
        let mut state = self.state();
        let free = state
            .pods
            .iter()
            .filter(|(name, pod)| pod.app == app && pod.available && !state.taken.contains(*name));
        let free: Vec<&String> = free.map(|(name, _)| name).collect();
        let chosen = free.get(draw % free.len().max(1)).map(|name| (*name).clone())?;
        state.taken.insert(chosen.clone());
        Some(chosen)
    }

    /// Others may take the pod again.
    pub(super) fn give_back(&self, pod: &str) {
        self.state().taken.remove(pod);
    }

    /// The fewest pods that were available of any workload.
    pub(super) fn least(&self) -> usize {
        self.state().least.unwrap_or(usize::MAX)
    }

    pub(super) fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn get(path: &str) -> Request<Vec<u8>> {
    Request::get(path).body(Vec::new()).unwrap()
}

#[test]
fn every_change_is_judged_by_the_pods_that_are_available_then() {
    use serde_json::json;
    let pod = |name: &str, ready: &str, image: &str| -> Pod {
        let conditions = [("Ready", ready), ("InPlaceUpdateReady", "True")];
        let conditions = conditions.map(|(name, status)| json!({"type": name, "status": status}));
        serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "a:2"}]},
            "status": {"phase": "Running", "conditions": conditions,
                       "containerStatuses": [{"name": "main", "image": image}]},
        }))
        .unwrap()
    };
    let mut state = State::default();
    for name in ["one", "two"] {
        state.see(WatchEvent::Added(pod(name, "True", "a:2")));
    }
    state.demanded = BTreeMap::from([("web".to_owned(), 1)]);
    state.see(WatchEvent::Modified(pod("one", "True", "a:1")));
    assert!(state.violations.is_empty() && state.least == Some(1));
    state.see(WatchEvent::Modified(pod("two", "False", "a:2")));
    assert_eq!((state.violations.len(), state.least), (1, Some(0)));
    state.see(WatchEvent::Modified(pod("one", "True", "a:2")));
    state.see(WatchEvent::Deleted(pod("two", "True", "a:2")));
    assert_eq!(state.violations.len(), 1);
}
