//! The playground as the tour's cluster: it does what the printed command lines would, over the API like any client.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kruise_frame::{
    command,
    explain::{Request, SettingsSource},
    gates::Gates,
};
use kruise_install::manifests::NAMESPACE;
use kruise_kinds::{self as controllers, explainer};
use kruise_runtime::client::{self, Source};
use kruise_runtime::{ApiError, Client};
use kruise_tour::act::{FAILURE, ZONE};
use kruise_tour::pods::{Pod, Ready};
use kruise_tour::subject::Scope;
use kruise_tour::{Act, Requests, Stage, Subject, View};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::probe::page;

const GROUP: &str = "/apis/apps.kruise.io/v1beta1";
const SPREADS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/workloadspreads";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const NODES: &str = "/api/v1/nodes";
const BUDGETS: &str = "/apis/policy.kruise.io/v1beta1/namespaces/default/podunavailablebudgets";
const JOBS: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/ephemeraljobs";
/// How soon `kubectl drain` tries an eviction again.
const AGAIN: Duration = Duration::from_secs(5);
const NAMESPACES: &str = "/api/v1/namespaces";
const SECRETS: &str = "/api/v1/secrets";
const CLONESETS: &str = "clonesets";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
/// The manager is at rest when it wrote nothing for so long: longer than it ever waits between two writes of its own
/// accord, which is a second between two plans of one owner, and half of one between two statuses.
const REST: Duration = Duration::from_millis(1200);
/// How often to check whether it wrote.
const CHECK: Duration = Duration::from_millis(100);
/// Longest time to wait for its rest.
const LIMIT: Duration = Duration::from_mins(1);

/// Requests by method and answer.
type Counts = BTreeMap<(String, String), u64>;

/// What the tour needs of a playground.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Leads to the API.
    pub(super) kubeconfig: PathBuf,
    /// The folder with the manifests of the tour.
    pub(super) manifests: PathBuf,
    /// Where the manager's metrics are.
    pub(super) metrics: SocketAddr,
    /// Since when the process runs.
    pub(super) started: Instant,
}

/// A playground that the tour takes place in. Its methods block: it is no place for tasks.
pub(super) struct Embedded {
    runtime: Handle,
    client: Client,
    place: Place,
    halted: watch::Receiver<bool>,
    counted: Counts,
    created: Option<Instant>,
    first_ready: Option<Instant>,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Value>,
}

impl Embedded {
    /// Connects to a playground.
    pub(super) async fn new(place: Place, halted: watch::Receiver<bool>) -> Result<Self> {
        let settings = client::Settings {
            user_agent: "kruise-playground".into(),
            timeout: Duration::from_secs(30),
            rate: None,
            host: String::new(),
            clock: kruise_runtime::Clock::SYSTEM,
            observer: None,
        };
        let client = client::connect(&Source::File(place.kubeconfig.clone()), settings).await?;
        Ok(Self {
            runtime: Handle::current(),
            client,
            place,
            halted,
            counted: Counts::new(),
            created: None,
            first_ready: None,
        })
    }

    /// When the first pod was ready, since the process started.
    pub(super) fn first_ready(&self) -> Option<Duration> {
        Some(self.first_ready?.duration_since(self.place.started))
    }

    /// When the first pod was ready, since the CloneSet was created.
    pub(super) fn first_ready_after_creation(&self) -> Option<Duration> {
        Some(self.first_ready?.duration_since(self.created?))
    }

    /// Does an act, as kubectl would.
    async fn perform(&self, of: &Subject, act: &Act) -> Result<String> {
        match act {
            Act::Apply => {
                let objects: Vec<Value> = serde_saphyr::from_multiple(of.manifest)?;
                let mut printed = Vec::new();
                for object in &objects {
                    let (path, resource) = destination(of, object)?;
                    self.client.create::<IgnoredAny>(&path, object).await?;
                    let name = object.pointer("/metadata/name").and_then(Value::as_str);
                    printed.push(format!("{resource}/{} created", name.unwrap_or_default()));
                }
                Ok(printed.join("\n"))
            }
            Act::Patch { kind, body } => {
                let path = format!("{}/{}", collection(of), of.name);
                let patch = self.client.patch::<IgnoredAny>(&path, kind.media_type(), body);
                patch.await?;
                Ok(format!("{} patched", of.printed()))
            }
            Act::Label { pod, key, value } => {
                let body = json!({"metadata": {"labels": {*key: value}}});
                let path = format!("{PODS}/{pod}");
                let merge = "application/merge-patch+json";
                self.client.patch::<IgnoredAny>(&path, merge, &body).await?;
                Ok(format!("pod/{pod} labeled"))
            }
            Act::Add(what) => {
                let object: Value = serde_saphyr::from_str(what.manifest)?;
                let path = format!("/apis/{}/namespaces/default/{}", what.api_version, what.plural);
                self.client.create::<IgnoredAny>(&path, &object).await?;
                Ok(format!("{} created", what.printed))
            }
            Act::Drain { node, label } => self.drain(node, label).await,
            Act::Uncordon => self.uncordon().await,
            Act::FailZone(zone) => self.taint(zone, true).await,
            Act::RepairZone(zone) => self.taint(zone, false).await,
            Act::Explain => {
                let (kind, name) = of.explained.split_once('/').context("nothing to explain")?;
                let explain = explainer(kind).context("nothing explains it")?;
                let settings = SettingsSource::Gates(Gates::parse("", "")?);
                let source = Source::File(self.place.kubeconfig.clone());
                explain(&Request {
                    client: &command::connect("explain", &source, Duration::from_secs(30)).await?,
                    namespace: "default",
                    name,
                    pod: None,
                    manager_namespace: NAMESPACE,
                    settings: &settings,
                    registrations: controllers::ALL,
                })
                .await
            }
        }
    }

    /// Evicts pods as `kubectl drain` does: what is refused is tried again. The client itself tries again once a
    /// second at first.
    async fn drain(&self, node: &str, label: &str) -> Result<String> {
        self.cordon(node, true).await?;
        let path = format!("{PODS}?labelSelector={}", label.replace('=', "%3D"));
        let pods: List = self.client.get(&path).await?;
        let pods = pods.items.iter().map(Pod::read).collect::<Result<Vec<_>>>()?;
        let mut printed = vec![format!("node/{node} cordoned")];
        for pod in pods.iter().filter(|pod| pod.node == node) {
            printed.push(format!("evicting pod default/{}", pod.name));
            let eviction =
                json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name}});
            let path = format!("{PODS}/{}/eviction", pod.name);
            let start = Instant::now();
            loop {
                self.check()?;
                match self.client.create::<IgnoredAny>(&path, &eviction).await {
                    Err(error) if error.too_many_requests().is_some() && start.elapsed() < LIMIT => {
                        printed.push(format!(
                            "error when evicting pods/{:?} (will retry): {error}",
                            pod.name
                        ));
                        tokio::time::sleep(AGAIN).await;
                    }
                    Err(error) if !error.is_not_found() => return Err(error.into()),
                    _ => break,
                }
            }
            printed.push(format!("pod/{} evicted", pod.name));
        }
        printed.push(format!("node/{node} drained"));
        Ok(printed.join("\n"))
    }

    async fn uncordon(&self) -> Result<String> {
        let nodes: List = self.client.get(NODES).await?;
        let mut printed = Vec::new();
        for node in &nodes.items {
            let name = node
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let was = node.pointer("/spec/unschedulable") == Some(&json!(true));
            if was {
                self.cordon(name, false).await?;
            }
            let already = if was { "" } else { "already " };
            printed.push(format!("node/{name} {already}uncordoned"));
        }
        Ok(printed.join("\n"))
    }

    /// Gives all nodes of a zone the taint of its failure, or takes it away.
    async fn taint(&self, zone: &str, on: bool) -> Result<String> {
        let [key, value, effect] = FAILURE;
        let nodes: List = self.client.get(NODES).await?;
        let mut printed = Vec::new();
        for node in &nodes.items {
            let labels = node.pointer("/metadata/labels");
            if labels.and_then(|labels| labels.get(ZONE)) != Some(&zone.into()) {
                continue;
            }
            let taints = node.pointer("/spec/taints").and_then(Value::as_array);
            let mut taints = taints.cloned().unwrap_or_default();
            taints.retain(|taint| taint.get("key") != Some(&key.into()));
            if on {
                taints.push(json!({"key": key, "value": value, "effect": effect}));
            }
            let name = node.pointer("/metadata/name").and_then(Value::as_str);
            let name = name.unwrap_or_default();
            // Nobody else may have changed the list meanwhile.
            let version = node.pointer("/metadata/resourceVersion");
            let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
            let merge = "application/merge-patch+json";
            let path = format!("{NODES}/{name}");
            self.client.patch::<IgnoredAny>(&path, merge, &patch).await?;
            printed.push(format!(
                "node/{name} {}",
                if on { "tainted" } else { "untainted" }
            ));
        }
        if printed.is_empty() {
            bail!("no node is in {zone}: the tour needs one in each of three zones");
        }
        Ok(printed.join("\n"))
    }

    async fn cordon(&self, node: &str, on: bool) -> Result<()> {
        let patch = json!({"spec": {"unschedulable": on}});
        let merge = "application/merge-patch+json";
        let path = format!("{NODES}/{node}");
        self.client.patch::<IgnoredAny>(&path, merge, &patch).await?;
        Ok(())
    }

    /// An object; null if it is not there.
    async fn found(&self, path: &str) -> Result<Value> {
        match self.client.get(path).await {
            Err(error) if ApiError::is_not_found(&error) => Ok(Value::Null),
            answer => Ok(answer?),
        }
    }

    async fn read(&self, of: &Subject) -> Result<View> {
        let selector = of.label.replace('=', "%3D");
        let list = async |path: &str| -> Result<Vec<Value>> {
            let found: List = self
                .client
                .get(&format!("{path}?labelSelector={selector}"))
                .await?;
            Ok(found.items)
        };
        let mut view = View {
            set: self.found(&format!("{}/{}", collection(of), of.name)).await?,
            ..View::default()
        };
        if of.scope == Scope::Cluster {
            for secret in &list(SECRETS).await? {
                view.copy(secret);
            }
            return Ok(view);
        }
        view.budget = self.found(&format!("{BUDGETS}/{}", of.name)).await?;
        view.job = self.found(&format!("{JOBS}/{}", of.name)).await?;
        for pod in &list(PODS).await? {
            view.pod(pod)?;
        }
        for claim in &list(CLAIMS).await? {
            view.claim(claim);
        }
        if of.zoned {
            view.spread = self.found(&format!("{SPREADS}/{}", of.name)).await?;
            if of.plural != CLONESETS {
                view.children = list(&format!("{GROUP}/namespaces/default/{CLONESETS}")).await?;
            }
            let nodes: List = self.client.get(NODES).await?;
            for node in &nodes.items {
                view.node(node);
            }
        }
        Ok(view)
    }

    /// All writes of the manager so far.
    async fn writes(&self) -> Result<Counts> {
        let metrics = page(self.place.metrics, "/metrics").await?;
        writes(&metrics.context("the manager has no metrics")?)
    }

    /// Waits until the manager writes nothing any more; returns all its writes. Fails if it does not stop.
    async fn at_rest(&self) -> Result<Counts> {
        let start = Instant::now();
        let mut written = self.writes().await?;
        let mut since = Instant::now();
        while since.elapsed() < REST {
            self.check()?;
            tokio::time::sleep(CHECK).await;
            let now = self.writes().await?;
            if now != written {
                (written, since) = (now, Instant::now());
            }
            if start.elapsed() > LIMIT {
                bail!("the manager does not stop writing");
            }
        }
        Ok(written)
    }
}

impl Stage for Embedded {
    const PAUSE: Duration = Duration::from_millis(20);

    fn manifest(&self, of: &Subject) -> String {
        self.place.manifests.join(of.file).display().to_string()
    }

    fn check(&self) -> Result<()> {
        if *self.halted.borrow() {
            bail!("interrupted");
        }
        Ok(())
    }

    fn run(&mut self, of: &Subject, act: &Act) -> Result<String> {
        if *act == Act::Apply && self.created.is_none() {
            self.created = Some(Instant::now());
        }
        self.runtime.block_on(self.perform(of, act))
    }

    fn view(&mut self, of: &Subject) -> Result<View> {
        let view = self.runtime.block_on(self.read(of))?;
        if self.first_ready.is_none() && view.pods.iter().any(|pod| pod.ready == Ready::Yes) {
            self.first_ready = Some(Instant::now());
        }
        Ok(view)
    }

    fn requests(&mut self) -> Result<Requests> {
        let now = self.runtime.block_on(self.at_rest())?;
        let before = std::mem::replace(&mut self.counted, now);
        let new = self.counted.iter().map(|(shape, count)| {
            let before = before.get(shape).copied().unwrap_or_default();
            (shape, count.saturating_sub(before))
        });
        let new: Vec<_> = new.filter(|(_, count)| *count > 0).collect();
        let shapes = new
            .iter()
            .map(|((method, code), count)| format!("{method} {code} x{count}"));
        Ok(Requests {
            manager: new.iter().map(|(_, count)| count).sum(),
            shapes: shapes.collect::<Vec<_>>().join(", "),
            others: None,
        })
    }
}

/// The path of the collection that a subject is in.
fn collection(of: &Subject) -> String {
    match of.scope {
        Scope::Default => format!("{GROUP}/namespaces/default/{}", of.plural),
        Scope::Cluster => format!("{GROUP}/{}", of.plural),
    }
}

/// The collection that an object of a manifest is created in, and its resource as kubectl prints it.
fn destination(of: &Subject, object: &Value) -> Result<(String, String)> {
    Ok(match object.get("kind").and_then(Value::as_str) {
        Some(kind) if kind == of.kind => (collection(of), format!("{}.apps.kruise.io", kind.to_lowercase())),
        Some("StorageClass") => (CLASSES.to_owned(), "storageclass.storage.k8s.io".to_owned()),
        Some("Namespace") => (NAMESPACES.to_owned(), "namespace".to_owned()),
        Some("WorkloadSpread") => (SPREADS.to_owned(), "workloadspread.apps.kruise.io".to_owned()),
        _ => bail!("no place for {object}"),
    })
}

/// Writes in a text of metrics.
fn writes(metrics: &str) -> Result<Counts> {
    let mut counts = Counts::new();
    for line in metrics.lines() {
        let Some((labels, count)) = line
            .strip_prefix("rest_client_requests_total{")
            .and_then(|rest| rest.split_once("} "))
        else {
            continue;
        };
        let label = |name: &str| {
            let of = labels.split(',').find_map(|label| label.strip_prefix(name));
            of.map(|value| value.trim_matches(['=', '"']).to_owned())
                .with_context(|| format!("a metric without {name}: {line}"))
        };
        let method = label("method")?;
        if method != "GET" {
            let count: u64 = count.parse().with_context(|| format!("not a count: {line}"))?;
            *counts.entry((method, label("code")?)).or_default() += count;
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::writes;

    #[test]
    fn reads_are_not_counted_and_what_cannot_be_read_is_no_zero() {
        let text = "# TYPE rest_client_requests counter\n\
            rest_client_requests_total{code=\"200\",method=\"GET\",host=\"h:1\"} 7\n\
            rest_client_requests_total{code=\"200\",method=\"PATCH\",host=\"h:1\"} 3\n\
            rest_client_requests_total{code=\"409\",method=\"PATCH\",host=\"h:1\"} 1\n\
            other_total{code=\"200\",method=\"PATCH\"} 9\n";
        let counts = writes(text).unwrap();
        let all: Vec<_> = counts
            .iter()
            .map(|((method, code), count)| (method.as_str(), code.as_str(), *count))
            .collect();
        assert_eq!(all, [("PATCH", "200", 3), ("PATCH", "409", 1)]);
        assert!(writes("rest_client_requests_total{method=\"PATCH\",code=\"200\"} many\n").is_err());
    }
}
