use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use jiff::Timestamp;
use kruise_plan_kit::{
    Body, EventNote, Intent, Memory, Need, ObjectWrites, Phase, Plan, Precondition, ResourceId, Target,
    Write, events,
};
use kruise_views::PodView;
use kube_cache::{ObjectKey, Version};
use kube_client::client::Body as HttpBody;
use serde_json::{Value, json};
use tower::service_fn;

use super::{Controller, DryRun, Observer, Outcome, Reconciler, Settings};
use crate::Client;
use crate::caches::CacheView;
use crate::client;
use crate::events::{EventSink, ObjectRef};

/// Plans one pod for every key at its first reconcile, panics for `bad`, and counts its reconciles.
struct Stub {
    keys: Vec<ObjectKey>,
    /// The objects that the last plan was told may still appear.
    late: Arc<Mutex<Vec<String>>>,
    reconciles: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Reconciler for Stub {
    fn reconcile(&self, key: &ObjectKey, memory: &Memory, _now: Timestamp) -> Outcome {
        if &*key.name != "unreadable" {
            *self.late.lock().unwrap() = memory.late.iter().map(|late| late.name.clone()).collect();
        }
        let reconciles = {
            let mut reconciles = self.reconciles.lock().unwrap();
            let reconciles = reconciles.entry(key.name.to_string()).or_default();
            *reconciles += 1;
            *reconciles
        };
        assert_ne!(&*key.name, "bad", "injected");
        let mut plan = Plan::default();
        if &*key.name == "changed" && reconciles == 1 {
            let outdated = (0..20).map(|number| delete(&format!("outdated-{number}")));
            plan.writes.extend(outdated.chain([delete("current")]));
        } else if &*key.name == "limited" {
            let message = if reconciles < 4 { "limit: 1" } else { "limit: 2" };
            plan.events.push(EventNote::new(&events::FAILED_CREATE, message));
            plan.requeue = Some(Duration::from_millis(1));
        } else if &*key.name == "late-pods" {
            let late = |name: &str| {
                let pod = PodView {
                    name: name.into(),
                    uid: name.into(),
                    ..PodView::default()
                };
                EventNote::new(&events::FAILED_CREATE, "late").on(&pod)
            };
            plan.events.extend(["a", "b"].map(late));
            plan.requeue = Some(Duration::from_millis(1));
        } else if key.name.starts_with("needs-") {
            let need = Need::Live(ResourceId::PODS, "ns".into(), key.name.to_string());
            match memory.read.get(&need) {
                Some(read) => self.late.lock().unwrap().push(format!("{}", read.is_some())),
                None => plan.needs.push(need),
            }
        } else if &*key.name == "unreadable" {
            let need = Need::Content(ResourceId::PODS, "ns".into(), key.name.to_string());
            if memory.has_read {
                let unread = &memory.unread[&need];
                let line = format!("{} {}", unread.attempts.count, memory.read.len());
                self.late.lock().unwrap().push(line);
                plan.requeue = Some(Duration::from_millis(1));
            } else {
                plan.needs.push(need);
            }
        } else if &*key.name == "in-vain" {
            plan.writes.push(create(&key.name));
            plan.requeue = Some(Duration::ZERO);
        } else if &*key.name == "refused" {
            plan.writes.push(create(&key.name));
            plan.requeue = Some(Duration::from_millis(1));
        } else if reconciles == 1 {
            plan.writes.push(create(&key.name));
        }
        Outcome::Plan(Box::new(plan))
    }

    fn keys(&self) -> Vec<ObjectKey> {
        self.keys.clone()
    }

    fn about(&self, key: &ObjectKey) -> Option<ObjectRef> {
        Some(ObjectRef {
            api_version: "v1".into(),
            kind: "Set".into(),
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
            uid: "u".into(),
            resource_version: "1".into(),
            field_path: String::new(),
        })
    }
}

/// Caches of pods, claims and revisions that have all observed the same version.
struct FakeCaches {
    newest: Arc<AtomicU64>,
}

impl CacheView for FakeCaches {
    fn observed(&self, resource: ResourceId) -> Option<Version> {
        let watched = [ResourceId::PODS, ResourceId::CLAIMS, ResourceId::REVISIONS].contains(&resource);
        watched.then(|| Version::new(self.newest.load(Ordering::SeqCst)))
    }

    fn present(&self, _resource: ResourceId, _uid: &str) -> bool {
        false
    }

    /// Every pod but `current` has changed.
    fn version(&self, target: &Target, _uid: &str) -> Option<Version> {
        Some(Version::new(if target.name == "current" { 5 } else { 6 }))
    }
}

fn target(name: &str) -> Target {
    Target {
        resource: ResourceId::PODS,
        namespace: "ns".into(),
        name: name.into(),
    }
}

fn create(name: &str) -> ObjectWrites {
    object_writes(Write::Create {
        intent: Intent::CREATE_POD,
        target: target(name),
        body: Body::from(json!({"metadata": {"name": name}})),
        owner_uid: Some("owner".into()),
    })
}

/// A deletion of version 5 of the pod.
fn delete(name: &str) -> ObjectWrites {
    object_writes(Write::Delete {
        intent: Intent::DELETE_POD,
        target: target(name),
        precondition: Precondition::UidAndVersion("u".into(), "5".into()),
    })
}

fn object_writes(write: Write) -> ObjectWrites {
    ObjectWrites::alone(Phase::Pods, write, "")
}

#[derive(Default)]
struct Counts {
    panics: AtomicUsize,
}

impl Observer for Counts {
    fn reconciled(&self, _result: &'static str, _took: Duration) {}
    fn queued(&self, _depth: usize, _counters: kube_queue::Counters, _unfinished: kube_queue::Unfinished) {}
    fn popped(&self, _waited: Duration) {}
    fn overdue(&self, _namespace: &str, _name: &str) {}
    fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::SeqCst);
    }
}

/// The requests to the server: method, path and query.
type Requests = Arc<Mutex<Vec<String>>>;

/// A server that responds to writes with the status code `create` and version 5, and to reads with version 9.
fn server(create: u16) -> (Client, Requests) {
    server_with(create, 200)
}

/// The same, that responds to reads with the status code `read`.
fn server_with(create: u16, read: u16) -> (Client, Requests) {
    let requests = Requests::default();
    let seen = requests.clone();
    let service = service_fn(move |request: Request<HttpBody>| {
        let seen = seen.clone();
        async move {
            let (parts, body) = request.into_parts();
            let mut what = format!("{} {}", parts.method, parts.uri.path_and_query().unwrap());
            if parts.uri.path().ends_with("/events") {
                let event = body.collect().await.unwrap().to_bytes();
                let event: Value = serde_json::from_slice(&event).unwrap();
                let about = &event["involvedObject"];
                let pod = about["name"].as_str().filter(|_| about["kind"] == "Pod");
                let on = pod.map_or_else(String::new, |pod| format!("on {pod}: "));
                what = format!("event {on}{}", event["message"].as_str().unwrap());
            }
            seen.lock().unwrap().push(what);
            let (code, body) = match parts.method {
                Method::GET => (read, json!({"metadata": {"resourceVersion": "9"}})),
                _ => (
                    create,
                    json!({"metadata": {"uid": "u", "resourceVersion": "5"}, "message": "no"}),
                ),
            };
            let response = Response::builder()
                .status(code)
                .body(HttpBody::from(body.to_string().into_bytes()));
            Ok::<_, std::io::Error>(response.unwrap())
        }
    });
    let settings = client::Settings::of_a_test(Duration::from_secs(5));
    (
        Client::new(kube_client::Client::new(service, "default"), settings),
        requests,
    )
}

struct Bench {
    controller: Arc<Controller>,
    late: Arc<Mutex<Vec<String>>>,
    reconciles: Arc<Mutex<BTreeMap<String, usize>>>,
    seen: Arc<AtomicU64>,
    counts: Arc<Counts>,
    requests: Requests,
}

fn bench((client, requests): (Client, Requests), keys: &[&str], expectation_timeout: Duration) -> Bench {
    let (reconciles, seen, counts) = (Arc::default(), Arc::default(), Arc::<Counts>::default());
    let late = Arc::default();
    let stub = Stub {
        late: Arc::clone(&late),
        keys: keys.iter().map(|name| key(name)).collect(),
        reconciles: Arc::clone(&reconciles),
    };
    let settings = Settings {
        interval: Duration::ZERO,
        name: "test",
        workers: 1,
        queue: kube_queue::Config::CLIENT_GO,
        expectation_timeout,
        served: Arc::new([(&kruise_api::cloneset::KIND, "v1beta1")].into_iter().collect()),
        caches: Arc::new(FakeCaches {
            newest: Arc::clone(&seen),
        }),
        events: Some(EventSink::spawn(client.clone(), "test").0),
        dry_run: None,
    };
    Bench {
        controller: Controller::new(Arc::new(stub), settings, client, counts.clone()),
        reconciles,
        late,
        seen,
        counts,
        requests,
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

impl Bench {
    fn late(&self) -> Vec<String> {
        self.late.lock().unwrap().clone()
    }

    fn reconciles(&self, key: &str) -> usize {
        self.reconciles.lock().unwrap().get(key).copied().unwrap_or(0)
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
        assert!(ended.is_ok(), "timed out: {:?}", self.requests.lock().unwrap());
    }
}

#[tokio::test]
async fn a_panic_in_a_reconcile_delays_only_its_own_key() {
    let bench = bench(server(201), &["bad", "good"], Duration::from_mins(1));
    bench
        .run_until(|| bench.reconciles("good") > 0 && bench.reconciles("bad") > 1)
        .await;
    assert!(bench.counts.panics.load(Ordering::SeqCst) > 1);
}

#[tokio::test]
async fn a_controller_that_does_not_run_keeps_no_keys_and_reconciles_all_of_them_when_it_does() {
    let bench = bench(server(201), &["here"], Duration::from_mins(1));
    bench.controller.push(key("gone"));
    assert_eq!(bench.controller.lock().queue.len(), 0);
    bench.run_until(|| bench.reconciles("here") > 0).await;
    assert_eq!(bench.reconciles("gone"), 0);
}

#[tokio::test]
async fn a_change_is_reconciled_before_the_initial_keys() {
    let bench = bench(
        server(201),
        &["first", "second", "changed"],
        Duration::from_mins(1),
    );
    let controller = bench.controller.clone();
    let mut order = Vec::new();
    // Polled once all initial keys are pushed, before a worker starts.
    let stop = async {
        controller.push(key("changed"));
        let now = controller.started.elapsed();
        let mut inner = controller.lock();
        order.extend(std::iter::from_fn(|| inner.queue.pop(now)).map(|next| next.key.name.to_string()));
    };
    bench.controller.clone().run(stop).await;
    assert_eq!(order, ["changed", "first", "second"]);
}

#[tokio::test]
async fn a_write_that_is_not_seen_in_time_makes_the_next_plan_wait_for_the_servers_own_version() {
    let bench = bench(server(201), &["web"], Duration::from_millis(40));
    let was_listed = || {
        bench
            .requests
            .lock()
            .unwrap()
            .iter()
            .any(|what| what.starts_with("GET"))
    };
    bench.seen.store(4, Ordering::SeqCst);
    let (reconciles, seen) = (bench.reconciles.clone(), bench.seen.clone());
    // The list has version 9; a cache at version 8 may lack the pod.
    let follow = async {
        while !was_listed() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        seen.store(8, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(
            reconciles.lock().unwrap()["web"],
            1,
            "planned from an outdated cache"
        );
        seen.store(9, Ordering::SeqCst);
    };
    let ((), ()) = tokio::join!(follow, bench.run_until(|| bench.reconciles("web") >= 2));
    let requests = bench.requests.lock().unwrap();
    assert_eq!(requests[0], "POST /api/v1/namespaces/ns/pods");
    assert_eq!(requests[1], "GET /api/v1/namespaces/ns/pods?limit=1");
}

#[tokio::test]
async fn after_a_write_that_may_have_happened_the_next_plan_waits_for_its_object_and_for_no_other() {
    let bench = bench(server(504), &["web"], Duration::from_mins(1));
    bench.seen.store(8, Ordering::SeqCst);
    let (reconciles, seen, requests) = (
        bench.reconciles.clone(),
        bench.seen.clone(),
        bench.requests.clone(),
    );
    // The pod has version 9 on the server.
    let follow = async {
        while requests.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(
            reconciles.lock().unwrap()["web"],
            1,
            "planned from an outdated cache"
        );
        seen.store(9, Ordering::SeqCst);
    };
    let ((), ()) = tokio::join!(follow, bench.run_until(|| bench.reconciles("web") >= 2));
    assert_eq!(
        *bench.requests.lock().unwrap(),
        [
            "POST /api/v1/namespaces/ns/pods",
            "GET /api/v1/namespaces/ns/pods/web"
        ]
    );
    assert!(bench.late().is_empty(), "it exists: there is nothing to wait for");
}

#[tokio::test]
async fn the_name_of_an_object_that_may_still_be_created_is_passed_to_the_next_plan() {
    let bench = bench(server_with(504, 404), &["web"], Duration::from_mins(1));
    bench.run_until(|| bench.reconciles("web") >= 2).await;
    assert_eq!(bench.late(), ["web"]);
}

#[tokio::test]
async fn an_owner_is_not_planned_before_an_object_in_doubt_could_be_read() {
    let bench = bench(server_with(504, 503), &["web"], Duration::from_mins(1));
    let requests = bench.requests.clone();
    bench.run_until(|| requests.lock().unwrap().len() > 4).await;
    assert_eq!(bench.reconciles("web"), 1);
}

#[tokio::test]
async fn an_event_that_every_plan_repeats_is_emitted_once_and_again_when_it_changes() {
    let bench = bench(server(201), &["limited"], Duration::from_mins(1));
    let emitted = || bench.requests.lock().unwrap().clone();
    bench
        .run_until(|| bench.reconciles("limited") > 6 && emitted().len() >= 2)
        .await;
    assert_eq!(emitted(), ["event limit: 1", "event limit: 2"]);
}

#[tokio::test]
async fn events_of_pods_are_about_them_and_each_pod_has_its_own() {
    let bench = bench(server(201), &["late-pods"], Duration::from_mins(1));
    let emitted = || bench.requests.lock().unwrap().clone();
    bench
        .run_until(|| bench.reconciles("late-pods") > 3 && emitted().len() >= 2)
        .await;
    assert_eq!(emitted(), ["event on a: late", "event on b: late"]);
}

#[tokio::test]
async fn a_write_for_an_outdated_version_is_not_sent_and_does_not_block_other_writes() {
    let bench = bench(server(200), &["changed"], Duration::from_mins(1));
    bench.seen.store(5, Ordering::SeqCst);
    bench.run_until(|| bench.reconciles("changed") > 1).await;
    let requests = bench.requests.lock().unwrap();
    assert_eq!(*requests, ["DELETE /api/v1/namespaces/ns/pods/current"]);
}

#[tokio::test]
async fn work_that_is_due_does_not_wait_for_the_back_off_of_a_refused_write() {
    let bench = bench(server(403), &["refused"], Duration::from_mins(1));
    // The back-off alone doubles from 5 ms, and would take minutes for as many.
    bench.run_until(|| bench.reconciles("refused") > 15).await;
}

#[tokio::test]
async fn work_that_is_due_at_once_waits_where_nothing_came_of_what_was_done() {
    let bench = bench(server(403), &["in-vain"], Duration::from_mins(1));
    let stop = tokio::time::sleep(Duration::from_millis(300));
    bench.controller.clone().run(stop).await;
    // The back-off doubles from 5 ms.
    assert!(
        (1..=8).contains(&bench.reconciles("in-vain")),
        "{}",
        bench.reconciles("in-vain")
    );
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_remembered_with_its_attempts() {
    let bench = bench(server_with(201, 500), &["unreadable"], Duration::from_mins(1));
    bench.run_until(|| bench.late().len() >= 3).await;
    assert_eq!(bench.late()[2], "3 0");
}

#[tokio::test]
async fn what_a_plan_needs_is_read_before_the_next_plan_which_follows_at_once() {
    for (read, is_there) in [(200, "true"), (404, "false")] {
        let bench = bench(server_with(201, read), &["needs-pod"], Duration::from_mins(1));
        bench.run_until(|| bench.reconciles("needs-pod") == 2).await;
        assert_eq!(bench.late(), [is_there]);
        let requests = bench.requests.lock().unwrap().clone();
        assert_eq!(requests, ["GET /api/v1/namespaces/ns/pods/needs-pod"]);
    }
}

#[tokio::test]
async fn a_plan_whose_needs_cannot_be_read_is_made_again_later() {
    let bench = bench(server_with(201, 500), &["needs-pod"], Duration::from_mins(1));
    bench.run_until(|| bench.reconciles("needs-pod") == 3).await;
    assert!(bench.late().is_empty());
}

/// Counts plans by key.
#[derive(Default)]
struct Rehearsed(Mutex<BTreeMap<String, usize>>);

impl DryRun for Rehearsed {
    fn begins(&self, _: usize) {}
    fn planned(&self, _: &'static str, key: &ObjectKey, _: Option<&ObjectRef>, _: &Plan) {
        *self.0.lock().unwrap().entry(key.name.to_string()).or_default() += 1;
    }
    fn failed(&self, _: &'static str, _: &ObjectKey, _: Option<&ObjectRef>, _: &str) {}
    fn gone(&self, _: &'static str, _: &ObjectKey) {}
    fn first_pass_ended(&self, _: &'static str) {}
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_plans_again_when_time_has_come_and_what_is_not_written_and_writes_nothing() {
    let mut bench = bench(server(201), &["limited", "web"], Duration::from_mins(1));
    let rehearsed = Arc::<Rehearsed>::default();
    let controller = Arc::get_mut(&mut bench.controller).unwrap();
    controller.settings.dry_run = Some(rehearsed.clone());
    let plans = |key: &str| rehearsed.0.lock().unwrap().get(key).copied().unwrap_or(0);
    let began = tokio::time::Instant::now();
    bench.run_until(|| plans("web") == 2).await;
    assert!(began.elapsed() >= super::PLAN_UNWRITTEN_AGAIN);
    assert!(plans("limited") > 3);
    // The second plan has no writes.
    bench
        .run_until(|| began.elapsed() > super::PLAN_UNWRITTEN_AGAIN * 4)
        .await;
    assert_eq!(plans("web"), 3, "planned once more, as the controller began anew");
    assert!(bench.requests.lock().unwrap().is_empty());
    assert!(bench.controller.plan_now(&key("web")).is_some());
}
