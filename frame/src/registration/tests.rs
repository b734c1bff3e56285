//! What the manager derives from a registration, with a controller of a kind that has none in this build.

use std::{
    convert::Infallible,
    sync::{LazyLock, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use go_compat::flags::FlagSet;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use jiff::Timestamp;
use kruise_api::uniteddeployment::{KIND, RESOURCE};
use kruise_plan_kit::Memory;
use kruise_runtime::{Clock, caches::Following, client, events::ObjectRef, worker::Outcome};
use kube_client::client::Body;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::caches::PODS;
use crate::flags::OWN;

const SETS: CacheId<Set> = CacheId::of("uniteddeployments", RESOURCE).before(&[PODS.name]);

static TOY: Registration = Registration::of::<Toy>("uniteddeployment-controller", 1)
    .reconciles(
        &KIND,
        "uniteddeployment-workers",
        "UnitedDeployments handled side by side",
    )
    .gated(&["DaemonSetPruneIneligibleNodes"])
    .granted(&[
        Grant::on(ResourceId::PODS, &["create", "delete"]),
        Grant::on(kruise_api::imagepulljob::RESOURCE, &["create"])
            .with(&["PreDownloadImageForInPlaceUpdate"]),
    ]);

/// The flags of a process with this controller.
static FLAGS: LazyLock<Vec<Flag>> = LazyLock::new(|| OWN.iter().copied().chain(TOY.flags()).collect());

/// The flag that turns it on.
const GATE: &str = "--feature-gates=DaemonSetPruneIneligibleNodes=true";

/// Keys that were reconciled.
static RECONCILED: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Set {
    metadata: Meta,
}

kube_cache::cached!(Set, metadata);

struct Toy {
    sets: SharedInformer<Set>,
}

impl Controls for Toy {
    fn new(setup: &mut Setup<'_>) -> Self {
        setup.cache(&PODS);
        Self {
            sets: setup.cache(&SETS),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&SETS);
    }
}

impl Reconciler for Toy {
    fn reconcile(&self, key: &ObjectKey, _memory: &Memory, _now: Timestamp) -> Outcome {
        let mut reconciled = RECONCILED.lock().unwrap_or_else(PoisonError::into_inner);
        reconciled.push(key.to_string());
        Outcome::Gone
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let sets = self.sets.snapshot();
        sets.iter().map(|set| ObjectKey::of(&**set)).collect()
    }

    fn about(&self, _key: &ObjectKey) -> Option<ObjectRef> {
        None
    }
}

/// A server with the UnitedDeployment `shop/db`, whose watches end at once, and the paths of its requests.
fn server() -> (Client, Arc<Mutex<Vec<String>>>) {
    let requested = Arc::new(Mutex::new(Vec::new()));
    let seen = requested.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        let items = match path.rsplit('/').next() {
            Some("uniteddeployments") => {
                vec![
                    json!({"metadata": {"namespace": "shop", "name": "db", "uid": "u", "resourceVersion": "3"}}),
                ]
            }
            _ => Vec::new(),
        };
        seen.lock().unwrap().push(path);
        let list = json!({"metadata": {"resourceVersion": "5"}, "items": items});
        let body: UnsyncBoxBody<Bytes, Infallible> = Full::from(list.to_string().into_bytes()).boxed_unsync();
        async move { Ok::<_, Infallible>(Response::new(body)) }
    });
    let settings = client::Settings {
        user_agent: "test".into(),
        timeout: Duration::from_secs(5),
        rate: None,
        host: "here".into(),
        observer: None,
        clock: Clock::starting_at(Timestamp::UNIX_EPOCH),
    };
    let client = kube_client::Client::new(service, "default");
    (Client::new(client, settings), requested)
}

/// The controllers and caches that are built from the registration with this flag, on a cluster that serves these
/// versions.
fn built(flag: &str, served: Served, client: &Client) -> (Built, Caches) {
    let values = FlagSet::new(&FLAGS).parse([flag]).unwrap();
    let config = Config::new(&values, TOY.limits, &[], &|_| None).unwrap();
    let (served, mut caches) = (Arc::new(served), Caches::default());
    let workloads = Workloads::new(Vec::new(), &mut caches, &served, false, client, "kruise-system");
    let parts = Parts {
        workloads: &workloads,
        config: &config,
        served: &served,
        server: &ServerFacts::default(),
        metrics: &Metrics::register(&mut Registry::default(), &[]),
        client,
        dry_run: None,
    };
    let built = build_all(parts, &mut caches, &[&TOY]);
    (built, caches)
}

#[tokio::test(start_paused = true)]
async fn a_registration_is_all_that_a_controller_needs_to_follow_and_reconcile_its_kind() {
    let (client, requested) = server();
    let served: Served = [(&KIND, "v1beta1")].into_iter().collect();
    let (mut built, caches) = built(GATE, served.clone(), &client);
    let (stop, stopped) = watch::channel(false);
    let following = Following {
        client: &client,
        served: &served,
        namespace: None,
        own_namespace: "kruise-system",
        patience: Duration::from_mins(1),
        jitter: Arc::new(|| 0),
        convertible: watch::channel(true).1,
        stop: stopped.clone(),
    };
    let _watches = caches.start(&following).await.unwrap();
    for path in ["/apis/apps.kruise.io/v1beta1/uniteddeployments", "/api/v1/pods"] {
        assert!(requested.lock().unwrap().contains(&path.to_owned()), "{path}");
    }
    let controller = built.controllers.remove(0);
    let run = tokio::spawn(controller.run(stopped));
    while RECONCILED.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.send_replace(true);
    run.await.unwrap();
    assert_eq!(RECONCILED.lock().unwrap()[0], "shop/db");
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_kind_is_not_served_is_not_built_and_nothing_is_followed() {
    let (client, requested) = server();
    let (built, caches) = built(GATE, Served::default(), &client);
    assert!(built.controllers.is_empty());
    let (_stop, stopped) = watch::channel(false);
    let following = Following {
        client: &client,
        served: &Served::default(),
        namespace: None,
        own_namespace: "kruise-system",
        patience: Duration::from_mins(1),
        jitter: Arc::new(|| 0),
        convertible: watch::channel(true).1,
        stop: stopped,
    };
    let watches = caches.start(&following).await.unwrap();
    assert!(watches.tasks.is_empty() && requested.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_controller_whose_gate_is_off_is_not_built() {
    let (client, _) = server();
    let served: Served = [(&KIND, "v1beta1")].into_iter().collect();
    let (built, _) = built(
        "--feature-gates=DaemonSetPruneIneligibleNodes=false",
        served,
        &client,
    );
    assert!(built.controllers.is_empty());
}

#[test]
fn the_flag_of_its_workers_follows_from_a_registration() {
    let flags: Vec<&str> = TOY.flags().iter().map(|flag| flag.name).collect();
    assert_eq!(flags, ["uniteddeployment-workers"]);
}
