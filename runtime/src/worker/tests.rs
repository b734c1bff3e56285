use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use jiff::Timestamp;
use kruise_plan_kit::{
    Body, Chain, EventNote, Intent, Memory, Plan, Precondition, ResourceId, Target, Wave, Write, events,
};
use kube_cache::Version;
use kube_client::client::Body as HttpBody;
use serde_json::json;
use tower::service_fn;

use super::{Controller, Observer, Outcome, Planner, Settings};
use crate::Client;
use crate::client;

/// Plans one pod for every key at its first look, panics for `bad`, and counts its looks.
struct Stub {
    keys: Vec<String>,
    looks: Arc<Mutex<BTreeMap<String, usize>>>,
    /// Newest version the caches show.
    seen: Arc<AtomicU64>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Planner for Stub {
    type Key = String;

    fn plan(&self, key: &String, _memory: &Memory, _now: Timestamp) -> Outcome {
        let looks = {
            let mut looks = self.looks.lock().unwrap();
            let looks = looks.entry(key.clone()).or_default();
            *looks += 1;
            *looks
        };
        assert_ne!(key, "bad", "planted");
        let mut plan = Plan::default();
        if key == "changed" && looks == 1 {
            let outdated = (0..20).map(|number| delete(&format!("outdated-{number}")));
            plan.chains.extend(outdated.chain([delete("current")]));
        } else if key == "limited" {
            let message = if looks < 4 { "limit: 1" } else { "limit: 2" };
            plan.events.push(EventNote {
                reason: &events::SCALE_UP_LIMITED,
                message: message.into(),
            });
            plan.requeue = Some(Duration::from_millis(1));
        } else if looks == 1 {
            plan.chains.push(create(key));
        }
        Outcome::Plan(Box::new(plan))
    }

    /// Jobs that pull images are not watched, and so not asked about.
    fn observed(&self, resource: ResourceId) -> Option<Version> {
        let watched = resource != ResourceId::IMAGE_PULL_JOBS;
        watched.then(|| Version::new(self.seen.load(Ordering::SeqCst)))
    }

    fn present(&self, _resource: ResourceId, _uid: &str) -> bool {
        false
    }

    /// All but one pod have changed.
    fn version(&self, target: &Target, _uid: &str) -> Option<Version> {
        Some(Version::new(if target.name == "current" { 5 } else { 6 }))
    }

    fn keys(&self) -> Vec<String> {
        self.keys.clone()
    }

    fn overdue(&self, _key: &String) {}

    fn emit(&self, _key: &String, note: EventNote) {
        self.told.lock().unwrap().push(note.message);
    }
}

fn target(name: &str) -> Target {
    Target {
        resource: ResourceId::PODS,
        namespace: "ns".into(),
        name: name.into(),
    }
}

fn create(name: &str) -> Chain {
    chain(Write::Create {
        intent: Intent::CreatePod,
        target: target(name),
        body: Body::from(json!({"metadata": {"name": name}})),
        owner_uid: "owner".into(),
    })
}

/// For version 5 of the pod.
fn delete(name: &str) -> Chain {
    chain(Write::Delete {
        intent: Intent::DeletePod,
        target: target(name),
        precondition: Precondition::UidAndVersion("u".into(), "5".into()),
    })
}

fn chain(write: Write) -> Chain {
    Chain::alone(Wave::Pods, write, "")
}

#[derive(Default)]
struct Counts {
    panics: AtomicUsize,
}

impl Observer for Counts {
    fn reconciled(&self, _result: &'static str, _took: Duration) {}
    fn queued(&self, _depth: usize, _counters: kube_queue::Counters, _unfinished: kube_queue::Unfinished) {}
    fn popped(&self, _waited: Duration) {}
    fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::SeqCst);
    }
}

/// What the server was asked: method, path and query.
type Asked = Arc<Mutex<Vec<String>>>;

/// A server whose creates give version 5 (or `create` as their status code) and whose lists are at version 9.
fn server(create: u16) -> (Client, Asked) {
    let asked = Asked::default();
    let seen = asked.clone();
    let service = service_fn(move |request: Request<HttpBody>| {
        let what = format!("{} {}", request.method(), request.uri().path_and_query().unwrap());
        seen.lock().unwrap().push(what);
        let (code, body) = match *request.method() {
            Method::GET => (200, json!({"metadata": {"resourceVersion": "9"}})),
            _ => (
                create,
                json!({"metadata": {"uid": "u", "resourceVersion": "5"}, "message": "no"}),
            ),
        };
        let response = Response::builder()
            .status(code)
            .body(HttpBody::from(body.to_string().into_bytes()));
        async move { Ok::<_, std::io::Error>(response.unwrap()) }
    });
    let settings = client::Settings::of_a_test(Duration::from_secs(5));
    (
        Client::new(kube_client::Client::new(service, "default"), settings),
        asked,
    )
}

struct Bench {
    controller: Arc<Controller<Stub>>,
    looks: Arc<Mutex<BTreeMap<String, usize>>>,
    seen: Arc<AtomicU64>,
    counts: Arc<Counts>,
    asked: Asked,
    told: Arc<Mutex<Vec<String>>>,
}

fn bench((client, asked): (Client, Asked), keys: &[&str], expectation_timeout: Duration) -> Bench {
    let (looks, seen, counts) = (Arc::default(), Arc::default(), Arc::<Counts>::default());
    let told = Arc::<Mutex<Vec<String>>>::default();
    let stub = Stub {
        told: Arc::clone(&told),
        keys: keys.iter().map(ToString::to_string).collect(),
        looks: Arc::clone(&looks),
        seen: Arc::clone(&seen),
    };
    let settings = Settings {
        name: "test",
        workers: 1,
        queue: kube_queue::Config::CLIENT_GO,
        expectation_timeout,
        served: Arc::new([(ResourceId::CLONESETS, "v1beta1")].into_iter().collect()),
        dry_run: false,
    };
    Bench {
        controller: Controller::new(stub, settings, client, counts.clone(), |_| "ns"),
        looks,
        seen,
        counts,
        asked,
        told,
    }
}

impl Bench {
    fn looks(&self, key: &str) -> usize {
        self.looks.lock().unwrap().get(key).copied().unwrap_or(0)
    }

    /// Runs the controller until the condition holds.
    async fn run_until(&self, condition: impl Fn() -> bool) {
        let reached = async {
            while !condition() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let run = self.controller.clone().run(reached);
        let ended = tokio::time::timeout(Duration::from_mins(1), run).await;
        assert!(ended.is_ok(), "not in time: {:?}", self.asked.lock().unwrap());
    }
}

#[tokio::test]
async fn a_plan_that_panics_costs_only_its_own_key() {
    let bench = bench(server(201), &["bad", "good"], Duration::from_mins(1));
    bench
        .run_until(|| bench.looks("good") > 0 && bench.looks("bad") > 1)
        .await;
    assert!(bench.counts.panics.load(Ordering::SeqCst) > 1);
}

#[tokio::test]
async fn a_controller_that_does_not_run_keeps_no_keys_and_looks_at_all_of_them_when_it_does() {
    let bench = bench(server(201), &["here"], Duration::from_mins(1));
    bench.controller.push("gone".into());
    assert_eq!(bench.controller.lock().queue.len(), 0);
    bench.run_until(|| bench.looks("here") > 0).await;
    assert_eq!(bench.looks("gone"), 0);
}

#[tokio::test]
async fn a_write_that_is_not_seen_in_time_makes_the_next_plan_wait_for_the_servers_own_version() {
    let bench = bench(server(201), &["web"], Duration::from_millis(40));
    let is_asked = || {
        bench
            .asked
            .lock()
            .unwrap()
            .iter()
            .any(|what| what.starts_with("GET"))
    };
    bench.seen.store(4, Ordering::SeqCst);
    let (looks, seen) = (bench.looks.clone(), bench.seen.clone());
    // The list says 9; at 8 the cache may still lack the pod.
    let follow = async {
        while !is_asked() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        seen.store(8, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(looks.lock().unwrap()["web"], 1, "planned on an old cache");
        seen.store(9, Ordering::SeqCst);
    };
    let ((), ()) = tokio::join!(follow, bench.run_until(|| bench.looks("web") >= 2));
    let asked = bench.asked.lock().unwrap();
    assert_eq!(asked[0], "POST /api/v1/namespaces/ns/pods");
    assert_eq!(asked[1], "GET /api/v1/namespaces/ns/pods?limit=1");
}

#[tokio::test]
async fn a_write_that_may_have_happened_makes_the_next_plan_wait_for_the_servers_own_version() {
    let bench = bench(server(504), &["web"], Duration::from_mins(1));
    bench.seen.store(9, Ordering::SeqCst);
    bench.run_until(|| bench.looks("web") >= 2).await;
    let asked = bench.asked.lock().unwrap();
    let gets: Vec<&String> = asked.iter().filter(|what| what.starts_with("GET")).collect();
    assert_eq!(
        gets,
        [
            "GET /api/v1/namespaces/ns/pods?limit=1",
            "GET /api/v1/namespaces/ns/persistentvolumeclaims?limit=1",
            "GET /apis/apps/v1/namespaces/ns/controllerrevisions?limit=1"
        ]
    );
}

#[tokio::test]
async fn an_event_that_every_plan_repeats_is_told_once_and_again_when_it_changes() {
    let bench = bench(server(201), &["limited"], Duration::from_mins(1));
    bench.run_until(|| bench.looks("limited") > 6).await;
    assert_eq!(*bench.told.lock().unwrap(), ["limit: 1", "limit: 2"]);
}

#[tokio::test]
async fn a_write_for_a_version_that_is_known_to_be_outdated_is_not_sent_and_keeps_nobody_from_writing() {
    let bench = bench(server(200), &["changed"], Duration::from_mins(1));
    bench.seen.store(5, Ordering::SeqCst);
    bench.run_until(|| bench.looks("changed") > 1).await;
    let asked = bench.asked.lock().unwrap();
    assert_eq!(*asked, ["DELETE /api/v1/namespaces/ns/pods/current"]);
}
