//! What images cost in writes where every node has its agent: jobs above many nodes, on a clean network, with one
//! manager.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what is missing fails the test"
)]

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use kruise_api::{
    containerrecreaterequest, imagelistpulljob, imagepulljob, names::agent::IMAGE_PULLER, nodeimage,
};
use kruise_dst::engine::{
    agents, boot,
    cluster::{Cluster, Setup},
    managers,
    oracles::Judges,
    panics,
    report::{Reply, Trace, Written},
    resource::{CONFIGMAPS, MUTATING_WEBHOOKS, NODES, PODS, Resource},
    user::insist,
    verdict::Judged,
};
use kruise_sim::{Method, Request};
use serde_json::{Value, json};
use tokio::time::sleep;

const NODE_IMAGES: Resource = Resource::kruise("nodeimages", "NodeImage");
const JOBS: Resource = Resource::kruise("imagepulljobs", "ImagePullJob");
const LISTS: Resource = Resource::kruise("imagelistpulljobs", "ImageListPullJob");
const REQUESTS: Resource = Resource::kruise("containerrecreaterequests", "ContainerRecreateRequest");
const SECRETS: Resource = Resource::core("secrets", "Secret");
/// All that managers and agents watch.
const RESOURCES: [Resource; 9] = [
    NODE_IMAGES,
    JOBS,
    LISTS,
    REQUESTS,
    SECRETS,
    NODES,
    PODS,
    CONFIGMAPS,
    MUTATING_WEBHOOKS,
];
const CONTROLLER: &str = "imagepulljob-controller";

/// Writes of a NodeImage for each image, until it was pulled.
const OF_MANAGER: u32 = 1;
const OF_AGENT: u32 = 2;
/// And of both together once its job is gone.
const OF_CLEANUP: u32 = 2;

/// How often it is looked whether something has come, and for how long.
const STEP: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_hours(1);
/// Nobody writes a NodeImage in that time after all is done.
const QUIET: Duration = Duration::from_mins(3);

/// Writes since they were last taken, by who wrote what.
type Writes = BTreeMap<Written, u32>;

/// A cluster whose nodes all have their agents.
struct Fleet {
    cluster: Arc<Cluster>,
    nodes: Vec<String>,
    /// When its test began.
    began: Instant,
}

impl Fleet {
    /// A manager and the agents of so many nodes, whose NodeImages are there.
    async fn start(count: usize) -> anyhow::Result<Self> {
        let began = Instant::now();
        let kinds = [
            &nodeimage::KIND,
            &imagepulljob::KIND,
            &imagelistpulljob::KIND,
            &containerrecreaterequest::KIND,
        ];
        let cluster = Cluster::new(Setup {
            seed: 1,
            definitions: kinds.map(|kind| kind.manifest("kruise-system")).into(),
            resources: RESOURCES.into(),
            selectors: Vec::new(),
            all_webhooks: false,
            judges: Judges::new(Vec::new(), Vec::new()),
            judged: Judged::No,
            failing: 0,
            trace: Trace::default(),
            altering: None,
        })?;
        cluster.look(|state| state.counters.each = Some(Writes::new()));
        tokio::spawn(cluster.clone().pump());
        let nodes: Vec<String> = (1..=count).map(|number| format!("n{number}")).collect();
        let fleet = Self {
            cluster,
            nodes,
            began,
        };
        for node in &fleet.nodes[boot::NODES.len()..] {
            fleet.create("/api/v1/nodes", &boot::node(node)).await;
        }
        let namespace = json!({"metadata": {"name": "kruise-daemon-config"}});
        fleet.create("/api/v1/namespaces", &namespace).await;
        agents::attend(
            &fleet.cluster,
            fleet.nodes.iter().cloned(),
            agents::Setup::default(),
        );
        let config = managers::config(&["ImagePullJobGate"], true)?;
        tokio::spawn(managers::supervise(fleet.cluster.clone(), Arc::default(), config));
        fleet
            .until("a NodeImage for each node", |fleet| {
                fleet
                    .cluster
                    .look(|state| state.mirror.of(NODE_IMAGES).now().count())
                    == count
            })
            .await;
        sleep(STEP).await;
        fleet.report("agents are there");
        Ok(fleet)
    }

    async fn create(&self, path: &str, object: &Value) {
        let request = Request::new(Method::Post, path, Some(object));
        if !insist(&self.cluster, request.clone()).await {
            // The same again, for the reason.
            let reply = self.cluster.request(&request).await;
            let Reply::Response(response) = reply else { return };
            panic!("{path}: {}", response.value());
        }
    }

    async fn until(&self, what: &str, has_come: impl Fn(&Self) -> bool) {
        let since = tokio::time::Instant::now();
        while !has_come(self) {
            assert!(since.elapsed() < PATIENCE, "it did not come: {what}");
            self.check();
            sleep(STEP).await;
        }
    }

    fn check(&self) {
        let violation = self.cluster.look(|state| state.violation.clone());
        assert_eq!(violation, None);
    }

    /// An object; null if there is none.
    fn get(&self, path: &str) -> Value {
        let request = Request::new(Method::Get, path, None);
        match self.cluster.with(|state| state.answer(&request)) {
            Reply::Response(response) if response.code == 200 => response.value(),
            _ => Value::Null,
        }
    }

    fn take_writes(&self) -> Writes {
        self.cluster
            .look(|state| state.counters.each.replace(Writes::new()).unwrap_or_default())
    }

    /// Says how long it took up to now, and in what memory.
    fn report(&self, what: &str) {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        println!(
            "{} nodes, {what}: {:.0} s of virtual time, {:.0} s of real time, at most {} of memory",
            self.nodes.len(),
            self.cluster.start.elapsed().as_secs_f64(),
            self.began.elapsed().as_secs_f64(),
            peak.unwrap_or(" ?").trim()
        );
    }

    /// Has a job pull so many images on all nodes, and go; judges what was written.
    async fn pull(&self, of: Resource, spec: &Value, images: u32) {
        let collection = format!("/apis/apps.kruise.io/v1beta1/namespaces/default/{}", of.plural);
        let job = json!({"apiVersion": of.api_version(), "kind": of.kind,
            "metadata": {"name": "warm", "namespace": "default"}, "spec": spec});
        self.take_writes();
        self.create(&collection, &job).await;
        let (path, of_job) = (
            format!("{collection}/warm"),
            format!("the end of the {}", of.kind),
        );
        let has_ended = |fleet: &Self| {
            let status = &fleet.get(&path)["status"];
            let succeeded = if of == JOBS {
                self.nodes.len()
            } else {
                images as usize
            };
            status["completionTime"].is_string() && status["succeeded"] == succeeded
        };
        self.until(&of_job, has_ended).await;
        let writes = self.take_writes();
        self.report(&of_job);
        print(&writes);
        let [manager, agents] =
            [CONTROLLER, IMAGE_PULLER].map(|who| self.of_nodes(&writes, &|one| one == who));
        assert_eq!(
            manager,
            Spread::even(OF_MANAGER * images),
            "writes of the manager"
        );
        assert!(
            agents.least >= 1 && agents.most <= OF_AGENT * images,
            "{agents:?} of agents"
        );
        let others = self.of_nodes(&writes, &|one| one != CONTROLLER && one != IMAGE_PULLER);
        assert_eq!(others, Spread::even(0), "writes of others");

        self.until("the end of all traces", |fleet| {
            fleet.get(&path).is_null()
                && fleet.cluster.look(|state| {
                    let empty = |part: &Value| part.as_object().is_none_or(serde_json::Map::is_empty);
                    let mut all = state.mirror.of(NODE_IMAGES).now().map(|one| one.value());
                    all.all(|one| empty(&one["spec"]["images"]) && empty(&one["status"]["imageStatuses"]))
                })
        })
        .await;
        let writes = self.take_writes();
        self.report("everything is tidied up");
        print(&writes);
        let all = self.of_nodes(&writes, &|_| true);
        assert!(
            all.least >= 1 && all.most <= OF_CLEANUP * images,
            "{all:?} to clean up"
        );

        sleep(QUIET).await;
        let idle = self.of_nodes(&self.take_writes(), &|_| true);
        assert_eq!(idle, Spread::even(0), "writes while nothing happens");
        self.check();
    }

    /// How often components wrote the NodeImages.
    fn of_nodes(&self, writes: &Writes, wrote: &dyn Fn(&str) -> bool) -> Spread {
        let mut counts: BTreeMap<&str, u32> = self.nodes.iter().map(|node| (node.as_str(), 0)).collect();
        for (written, count) in writes {
            if written.resource == NODE_IMAGES.plural && wrote(&written.component) {
                *counts.entry(&written.name).or_default() += count;
            }
        }
        Spread {
            least: counts.values().copied().min().unwrap_or_default(),
            most: counts.values().copied().max().unwrap_or_default(),
        }
    }
}

/// Prints how much each component wrote of each resource.
fn print(writes: &Writes) {
    let mut sums: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for (written, count) in writes {
        *sums.entry((&written.component, &written.resource)).or_default() += count;
    }
    for ((component, resource), count) in sums {
        println!("    {count:>6} writes of {resource} by {component}");
    }
}

/// Writes of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spread {
    least: u32,
    most: u32,
}

impl Spread {
    fn even(count: u32) -> Self {
        Self {
            least: count,
            most: count,
        }
    }
}

/// What both kinds of job say beside their images.
fn spec(more: &Value) -> Value {
    let mut spec = json!({"parallelism": 500, "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3},
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 30}});
    for (name, value) in more.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    spec
}

/// Runs an ImagePullJob and an ImageListPullJob above so many nodes.
fn measure(nodes: usize) -> anyhow::Result<()> {
    let panicked = panics::count();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    runtime.block_on(async {
        let fleet = Fleet::start(nodes).await?;
        fleet
            .pull(JOBS, &spec(&json!({"image": "registry.example.com/app:1"})), 1)
            .await;
        let images = [
            "registry.example.com/a:1",
            "registry.example.com/b:1",
            "registry.example.com/c:1",
        ];
        fleet.pull(LISTS, &spec(&json!({"images": images})), 3).await;
        anyhow::Ok(())
    })?;
    drop(runtime);
    assert_eq!(panics::count(), panicked);
    Ok(())
}

#[test]
fn an_image_on_a_hundred_nodes_costs_each_three_writes_until_it_is_there_and_two_when_it_goes() {
    measure(100).unwrap();
}

/// `KRUISE_DST_NODES` is how many nodes, 5,000 by default.
#[test]
#[ignore = "minutes: cargo test --release -p kruise-dst --test it thousands -- --ignored --nocapture"]
fn an_image_on_thousands_of_nodes_costs_each_three_writes_until_it_is_there_and_two_when_it_goes() {
    let given = std::env::var("KRUISE_DST_NODES").ok();
    measure(given.map_or(5_000, |text| text.parse().unwrap())).unwrap();
}
