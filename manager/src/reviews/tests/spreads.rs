//! Pods of WorkloadSpreads that come and go, against a played server: counts, races, and what happens when they
//! cannot be stored.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Mutex,
};

use futures::future::join_all;
use http::Method;
use kruise_frame::played;

use super::disruptions::{Fault, code, merge};
use super::*;

const SPREAD: &str = "/apis/apps.kruise.io/v1beta1/namespaces/shop/workloadspreads/web";
const OLDER: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/shop/workloadspreads/web";
const BUDGET: &str = "/apis/policy.kruise.io/v1beta1/namespaces/shop/podunavailablebudgets/guard";
const MATCHED: &str = "apps.kruise.io/matched-workloadspread";

/// A server with objects by path.
#[derive(Clone, Default)]
struct Cluster {
    objects: Arc<Mutex<BTreeMap<String, Value>>>,
    /// Answers to the next writes; those that follow are right.
    faults: Arc<Mutex<VecDeque<Fault>>>,
    /// The paths that were written, also in vain.
    writes: Arc<Mutex<Vec<String>>>,
    reads: Arc<Mutex<u32>>,
}

fn spread(limits: &[Option<i32>]) -> Value {
    let subsets: Vec<Value> = ["a", "b", "c"]
        .iter()
        .zip(limits)
        .map(|(name, limit)| json!({"name": name, "maxReplicas": limit}))
        .collect();
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
        "metadata": {"name": "web", "namespace": "shop", "uid": "s", "resourceVersion": "7"},
        "spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"},
            "subsets": subsets},
    })
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": "1969-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "o", "controller": true}]},
        "spec": {"containers": [{"name": "main", "image": "web:1"}],
            "readinessGates": [{"conditionType": "KruisePodReady"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn in_subset(name: &str, subset: &str) -> Value {
    let mut pod = pod(name);
    let matched = format!(r#"{{"name":"web","subset":"{subset}"}}"#);
    pod["metadata"]["annotations"] = json!({MATCHED: matched});
    pod
}

/// The first list of a cache, at the version that the objects of this server begin with.
fn list<T: kube_cache::Cached + serde::de::DeserializeOwned>(cache: &SharedInformer<T>, objects: Vec<Value>) {
    let objects = objects
        .into_iter()
        .map(|one| serde_json::from_value(one).unwrap());
    for event in [
        Event::ListStarted,
        Event::Page(objects.collect()),
        Event::ListDone {
            version: Version::new(7),
        },
    ] {
        cache.apply(event).unwrap();
    }
}

impl Cluster {
    fn with(limits: &[Option<i32>]) -> Self {
        let cluster = Self::default();
        cluster
            .objects
            .lock()
            .unwrap()
            .insert(SPREAD.into(), spread(limits));
        cluster
    }

    fn change(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut objects = self.objects.lock().unwrap();
        let object = objects.get_mut(path).unwrap();
        change(object);
        let version: u64 = object["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        object["metadata"]["resourceVersion"] = json!((version + 1).to_string());
    }

    fn subset(&self, index: usize, member: &str) -> Value {
        let objects = self.objects.lock().unwrap();
        objects[SPREAD]["status"]["versionedSubsetStatuses"]["versionIgnored"][index][member].clone()
    }

    fn missing(&self, index: usize) -> Option<i64> {
        self.subset(index, "missingReplicas").as_i64()
    }

    fn writes(&self) -> usize {
        self.writes.lock().unwrap().len()
    }

    async fn respond(&self, method: &Method, path: &str, body: &[u8]) -> Result<(u16, Value), io::Error> {
        let failed = |code: u16| {
            Ok((
                code,
                json!({"kind": "Status", "code": code, "reason": "NotFound", "message": "no"}),
            ))
        };
        sleep(Duration::from_millis(5)).await;
        if let Some(name) = path.strip_prefix("/api/v1/namespaces/shop/pods/") {
            return Ok((200, pod(name)));
        }
        if *method == Method::GET {
            *self.reads.lock().unwrap() += 1;
            let found = self.objects.lock().unwrap().get(path).cloned();
            return found.map_or(failed(404), |object| Ok((200, object)));
        }
        assert_eq!(method, Method::PATCH);
        self.writes.lock().unwrap().push(path.to_owned());
        let fault = self.faults.lock().unwrap().pop_front();
        match fault {
            Some(Fault::Refused(code)) => return failed(code),
            Some(Fault::Silent) => pending().await,
            Some(Fault::Lost) | None => {}
        }
        let path = path.strip_suffix("/status").unwrap();
        let patch: Value = serde_json::from_slice(body).unwrap();
        let before = self.objects.lock().unwrap().get(path).cloned();
        let Some(before) = before else { return failed(404) };
        assert_eq!(patch["metadata"]["uid"], before["metadata"]["uid"]);
        if patch["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"] {
            return failed(409);
        }
        self.change(path, |object| merge(&mut object["status"], &patch["status"]));
        if matches!(fault, Some(Fault::Lost)) {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset));
        }
        Ok((200, self.objects.lock().unwrap()[path].clone()))
    }

    fn client(&self) -> Client {
        let cluster = self.clone();
        played::client(move |method, path, body| {
            let cluster = cluster.clone();
            async move { cluster.respond(&method, &path, &body).await }
        })
    }

    /// A replica whose caches have the objects as they are now, and these pods.
    fn replica(&self, pods: &[Value]) -> Arc<Reviews> {
        self.replica_on("v1beta1", pods)
    }

    fn replica_on(&self, version: &'static str, pods: &[Value]) -> Arc<Reviews> {
        let served: Arc<Served> = Arc::new(
            [
                (&kruise_api::workloadspread::KIND, version),
                (&kruise_api::podunavailablebudget::KIND, "v1beta1"),
            ]
            .into_iter()
            .collect(),
        );
        let mut caches = kruise_runtime::caches::Caches::default();
        let mut cache = cache(controllers::WebhookCaches::new(
            &mut caches,
            &served,
            &Options::DEFAULT,
        ));
        let objects = self.objects.lock().unwrap();
        let of = |kind: &str| {
            let all = objects.values().filter(|one| one["kind"] == kind).cloned();
            all.collect::<Vec<_>>()
        };
        list(&cache.webhook_caches.spreads.cache, of("WorkloadSpread"));
        list(&cache.webhook_caches.budgets.cache, of("PodUnavailableBudget"));
        cache.pods = SharedInformer::new([]);
        list(&cache.pods, pods.to_vec());
        let (budgets, spreads) = (&cache.webhook_caches.budgets, &cache.webhook_caches.spreads);
        let effects = Effects {
            widener: None,
            charges: Charges {
                budgets: Writer::new(budgets.clone(), self.client(), served.clone(), Arc::new(|| 7)),
                spreads: Writer::new(spreads.clone(), self.client(), served, Arc::new(|| 7)),
            },
            refusals: Refusals::new(&unmeasured(), None),
        };
        let metrics = Metrics::register(&mut Registry::default(), &[]).pods;
        Arc::new(Reviews::new(
            Options::DEFAULT,
            cache,
            self.client(),
            metrics,
            effects,
        ))
    }
}

async fn response(reviews: &Arc<Reviews>, webhook: &str, review: Value) -> Response {
    match at(webhook, reviews, Request::from_review(review).unwrap()) {
        Decision::Now(response) => response,
        Decision::Later(response) => response.await,
    }
}

/// The code, and the subset that the pod is put into.
async fn created(reviews: &Arc<Reviews>, name: &str) -> (u16, Option<String>) {
    let review = json!({"uid": format!("request-{name}"), "operation": "CREATE", "namespace": "shop", "object": pod(name),
        "kind": {"group": "", "version": "v1", "kind": "Pod"}});
    let response = response(reviews, "mpod.kb.io", review).await;
    let patch = match &response {
        Response::Allow { patch, .. } => patch.clone().unwrap_or_default(),
        Response::Deny { .. } => String::new(),
    };
    let subset = ["a", "b", "c"]
        .into_iter()
        .find(|subset| patch.contains(&format!(r#"\"subset\":\"{subset}\""#)));
    (code(&response), subset.map(str::to_owned))
}

async fn deleted(reviews: &Arc<Reviews>, pod: &Value) -> u16 {
    let review = json!({"uid": "u", "operation": "DELETE", "namespace": "shop", "name": pod["metadata"]["name"],
        "kind": {"group": "", "version": "v1", "kind": "Pod"}, "oldObject": pod});
    code(&response(reviews, "vpod.kb.io", review).await)
}

async fn evicted(reviews: &Arc<Reviews>, name: &str) -> u16 {
    let review = json!({"uid": "u", "operation": "CREATE", "subResource": "eviction", "namespace": "shop", "name": name,
        "kind": {"group": "policy", "version": "v1", "kind": "Eviction"}, "object": {"metadata": {"name": name}}});
    code(&response(reviews, "vpodeviction.kb.io", review).await)
}

fn number(subsets: &[(u16, Option<String>)], subset: Option<&str>) -> usize {
    subsets
        .iter()
        .filter(|(code, one)| *code == 200 && one.as_deref() == subset)
        .count()
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_created_together_share_their_writes_and_are_counted_exactly() {
    let cluster = Cluster::with(&[Some(20), None]);
    let reviews = cluster.replica(&[]);
    let names: Vec<String> = (0..50).map(|number| format!("web-{number}")).collect();
    let all = join_all(names.iter().map(|name| created(&reviews, name))).await;
    assert_eq!((number(&all, Some("a")), number(&all, Some("b"))), (20, 30));
    assert_eq!(cluster.missing(0), Some(0));
    assert_eq!(cluster.subset(0, "creatingPods").as_object().unwrap().len(), 20);
    assert!(cluster.writes() <= 2, "{} writes", cluster.writes());
    // Its pods need no write.
    assert_eq!(created(&reviews, "web-50").await, (200, Some("b".into())));
    assert!(cluster.writes() <= 2);
}

#[tokio::test(start_paused = true)]
async fn several_replicas_fill_each_subset_exactly() {
    let cluster = Cluster::with(&[Some(8), Some(5)]);
    let replicas = [cluster.replica(&[]), cluster.replica(&[]), cluster.replica(&[])];
    let creations = (0..20).map(|number| {
        let reviews = replicas[number % 3].clone();
        async move {
            sleep(Duration::from_millis(number as u64 * 4)).await;
            created(&reviews, &format!("web-{number}")).await
        }
    });
    let all = join_all(creations).await;
    let numbers = [Some("a"), Some("b"), None].map(|subset| number(&all, subset));
    assert_eq!(numbers, [8, 5, 7], "{all:?}");
    assert_eq!((cluster.missing(0), cluster.missing(1)), (Some(0), Some(0)));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_or_a_conflict_takes_no_second_slot() {
    for fault in [Fault::Lost, Fault::Refused(409), Fault::Refused(504)] {
        let cluster = Cluster::with(&[Some(3), None]);
        cluster.faults.lock().unwrap().push_back(fault);
        let reviews = cluster.replica(&[]);
        assert_eq!(created(&reviews, "web-0").await, (200, Some("a".into())));
        assert_eq!(cluster.missing(0), Some(2));
        assert_eq!(cluster.subset(0, "creatingPods").as_object().unwrap().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn before_a_pod_passes_without_a_subset_the_server_is_read_once_for_all_that_wait() {
    let cluster = Cluster::with(&[Some(2)]);
    let full = json!({"versionedSubsetStatuses": {"versionIgnored": [{"name": "a", "replicas": 2, "missingReplicas": 0}]}});
    cluster.change(SPREAD, |spread| spread["status"] = full);
    let reviews = cluster.replica(&[]);
    // Another replica has recorded a deletion, which the cache does not show yet.
    cluster.change(SPREAD, |spread| {
        spread["status"]["versionedSubsetStatuses"]["versionIgnored"][0]["missingReplicas"] = json!(1);
    });
    // The number of replicas is not known, so that the limit may be enough.
    let all = tokio::join!(
        created(&reviews, "web-0"),
        created(&reviews, "web-1"),
        created(&reviews, "web-2")
    );
    let all = [all.0, all.1, all.2];
    assert_eq!((number(&all, Some("a")), number(&all, None)), (1, 2), "{all:?}");
    assert_eq!(cluster.missing(0), Some(0));
    assert_eq!(cluster.writes(), 1);
}

#[tokio::test(start_paused = true)]
async fn deletions_and_evictions_free_slots_for_the_pods_that_replace_them() {
    let cluster = Cluster::with(&[Some(2), Some(2)]);
    let reviews = cluster.replica(&[in_subset("web-1", "a")]);
    for name in ["web-0", "web-1", "web-2", "web-3"] {
        created(&reviews, name).await;
    }
    assert_eq!((cluster.missing(0), cluster.missing(1)), (Some(0), Some(0)));
    assert_eq!(deleted(&reviews, &in_subset("web-0", "a")).await, 200);
    assert_eq!(evicted(&reviews, "web-1").await, 200);
    let before = cluster.writes();
    assert_eq!(deleted(&reviews, &in_subset("web-1", "a")).await, 200);
    assert_eq!((cluster.missing(0), cluster.writes()), (Some(2), before));
    assert_eq!(created(&reviews, "web-4").await, (200, Some("a".into())));
    assert_eq!(created(&reviews, "web-0").await, (200, Some("a".into())));
    assert_eq!((cluster.missing(0), cluster.missing(1)), (Some(0), Some(0)));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_charges_its_budget_first_and_then_frees_the_slot() {
    let cluster = Cluster::with(&[Some(2)]);
    let budget = |allowed: i32| {
        json!({"apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
            "metadata": {"name": "guard", "namespace": "shop", "uid": "b", "resourceVersion": "7", "generation": 1},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
            "status": {"observedGeneration": 1, "unavailableAllowed": allowed, "currentAvailable": 2 + allowed,
                "desiredAvailable": 2, "totalReplicas": 3}})
    };
    cluster.objects.lock().unwrap().insert(BUDGET.into(), budget(1));
    let reviews = cluster.replica(&[]);
    for name in ["web-0", "web-1"] {
        created(&reviews, name).await;
    }
    cluster.writes.lock().unwrap().clear();
    let guarded = |name: &str| {
        let mut pod = in_subset(name, "a");
        pod["metadata"]["annotations"]["pub.kruise.io/related-pub"] = json!("guard");
        // Its creation is later than the clock of the manager.
        pod["metadata"]["creationTimestamp"] = json!("1970-01-02T00:00:00Z");
        pod
    };
    assert_eq!(deleted(&reviews, &guarded("web-0")).await, 200);
    let paths = [BUDGET, SPREAD].map(|path| format!("{path}/status"));
    assert_eq!(*cluster.writes.lock().unwrap(), paths);
    assert_eq!(cluster.missing(0), Some(1));
    // The budget refuses the next one, and nothing is recorded.
    assert_eq!(deleted(&reviews, &guarded("web-1")).await, 403);
    assert_eq!((cluster.missing(0), cluster.writes()), (Some(1), 2));
}

#[tokio::test(start_paused = true)]
async fn a_count_that_cannot_be_stored_is_to_be_tried_again_in_time() {
    for fault in [Fault::Refused(500), Fault::Silent, Fault::Refused(409)] {
        let cluster = Cluster::with(&[Some(2), None]);
        let reviews = cluster.replica(&[in_subset("web-9", "a")]);
        created(&reviews, "web-9").await;
        cluster.faults.lock().unwrap().extend([fault; 100]);
        let begun = Instant::now();
        assert_eq!(created(&reviews, "web-0").await, (503, None));
        assert_eq!(evicted(&reviews, "web-9").await, 429);
        assert!(
            begun.elapsed() <= Duration::from_secs(10),
            "{:?}",
            begun.elapsed()
        );
        assert!(cluster.writes() <= 62, "attempts are bounded");
        cluster.faults.lock().unwrap().clear();
        assert_eq!(
            created(&reviews, "web-0").await,
            (200, Some("a".into())),
            "afterwards it works"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_goes_out_in_the_version_that_is_served() {
    let cluster = Cluster::default();
    let mut older = spread(&[Some(2), None]);
    older["apiVersion"] = json!("apps.kruise.io/v1alpha1");
    cluster.objects.lock().unwrap().insert(OLDER.into(), older);
    let reviews = cluster.replica_on("v1alpha1", &[]);
    assert_eq!(created(&reviews, "web-0").await, (200, Some("a".into())));
    assert_eq!(*cluster.writes.lock().unwrap(), [format!("{OLDER}/status")]);
}

#[tokio::test(start_paused = true)]
async fn a_spread_that_is_deleted_meanwhile_lets_its_pods_pass() {
    let cluster = Cluster::with(&[Some(2)]);
    let reviews = cluster.replica(&[]);
    cluster.objects.lock().unwrap().clear();
    assert_eq!(created(&reviews, "web-0").await, (200, None));
    assert_eq!(deleted(&reviews, &in_subset("web-0", "a")).await, 200);
}

/// Two replicas with caches that lag behind, whose requests overlap, and faults of the server: after each group of
/// requests the numbers are exactly what the pods leave.
#[tokio::test(start_paused = true)]
async fn random_interleavings_of_creations_and_deletions_are_counted_exactly() {
    for seed in 1..=25_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let limits = [random(6) as i32, random(6) as i32];
        let cluster = Cluster::with(&[Some(limits[0]), Some(limits[1])]);
        let replicas = [cluster.replica(&[]), cluster.replica(&[])];
        let mut pods: BTreeMap<u64, Option<String>> = BTreeMap::new();
        for _ in 0..6 {
            for _ in 0..random(3) {
                let fault = if random(2) == 0 {
                    Fault::Lost
                } else {
                    Fault::Refused(409)
                };
                cluster.faults.lock().unwrap().push_back(fault);
            }
            // Each request of a group is for another pod.
            let mut group: BTreeMap<u64, u64> = (0..6).map(|_| (random(12), random(30))).collect();
            group.retain(|pod, _| !matches!(pods.get(pod), Some(None)));
            let requests = group.into_iter().map(|(number, delay)| {
                let reviews = replicas[(delay % 2) as usize].clone();
                let known = pods.get(&number).cloned().flatten();
                async move {
                    sleep(Duration::from_millis(delay)).await;
                    let name = format!("web-{number}");
                    if let Some(subset) = known {
                        assert_eq!(deleted(&reviews, &in_subset(&name, &subset)).await, 200);
                        return (number, None);
                    }
                    let (code, subset) = created(&reviews, &name).await;
                    assert_eq!(code, 200);
                    (number, Some(subset))
                }
            });
            for (number, created) in join_all(requests).await {
                match created {
                    Some(subset) => pods.insert(number, subset),
                    None => pods.remove(&number),
                };
            }
            cluster.faults.lock().unwrap().clear();
            for (index, name) in ["a", "b"].into_iter().enumerate() {
                let number = pods
                    .values()
                    .filter(|subset| subset.as_deref() == Some(name))
                    .count() as i64;
                let limit = i64::from(limits[index]);
                assert!(number <= limit, "seed {seed}: {pods:?}");
                let missing = cluster.missing(index).unwrap_or(limit);
                assert_eq!(missing, limit - number, "seed {seed}, subset {name}: {pods:?}");
            }
        }
    }
}
