use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use http::Method;
use kruise_admission::{Options, Request, table::webhooks};
use kruise_frame::played;
use kruise_kinds::{
    charges::{Charges, Writer},
    refusals::Refusals,
    webhook_caches::{ReviewCache, conditional_webhook, testing::filled, webhook_of_evictions},
};
use kruise_runtime::metrics::Metrics;
use kruise_server::{review::Response, webhook::Decision};
use kube_cache::SharedInformer;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::reviews::{Effects, Reviews};

/// An API server with a configuration. It answers writes with these codes, and then with 200.
#[derive(Clone, Default)]
struct Server {
    configuration: Arc<Mutex<Value>>,
    sets: Arc<Mutex<Vec<Value>>>,
    codes: Arc<Mutex<VecDeque<u16>>>,
    writes: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    fn respond(&self, method: &Method, path: &str, body: &[u8]) -> (u16, Value) {
        let gone = (404, json!({"kind": "Status", "code": 404}));
        if path.ends_with("/sidecarsets") {
            return (200, json!({"items": *self.sets.lock().unwrap()}));
        }
        if path == "/api/v1/namespaces/shop" {
            return (200, json!({"metadata": {"name": "shop"}}));
        }
        if !path.ends_with(MUTATING) {
            return gone;
        }
        let mut configuration = self.configuration.lock().unwrap();
        if configuration.is_null() {
            return gone;
        }
        if *method == Method::PATCH {
            let patch: Value = serde_json::from_slice(body).unwrap();
            self.writes.lock().unwrap().push(patch.clone());
            let code = self.codes.lock().unwrap().pop_front().unwrap_or(200);
            if code != 200 {
                return (
                    code,
                    json!({"kind": "Status", "code": code, "reason": "Conflict"}),
                );
            }
            configuration["webhooks"] = patch["webhooks"].clone();
            configuration["metadata"]["annotations"] = patch["metadata"]["annotations"].clone();
        }
        (200, configuration.clone())
    }

    fn client(&self) -> Client {
        let server = self.clone();
        played::client(move |method, path, body| {
            let answer = server.respond(&method, &path, &body);
            std::future::ready(Ok(answer))
        })
    }

    fn reviews(&self) -> Arc<Reviews> {
        let cache = ReviewCache {
            webhook_caches: filled(&[], &[], &[]),
            pods: SharedInformer::new([]),
            nodes: SharedInformer::new([]),
            workloads: None,
            namespace: "kruise-system".into(),
        };
        let metrics = Metrics::register(&mut Registry::default(), &[]);
        let widener = Widener::new(self.client(), vec![conditional_webhook(), webhook_of_evictions()]);
        let (budgets, spreads) = (
            cache.webhook_caches.budgets.clone(),
            cache.webhook_caches.spreads.clone(),
        );
        let effects = Effects {
            widener: Some(widener),
            charges: Charges {
                budgets: Writer::new(budgets, self.client(), Arc::default(), Arc::new(|| 7)),
                spreads: Writer::new(spreads, self.client(), Arc::default(), Arc::new(|| 7)),
            },
            refusals: Refusals::new(&metrics, None),
        };
        Arc::new(Reviews::new(
            Options::default(),
            cache,
            self.client(),
            metrics.pods.clone(),
            effects,
        ))
    }
}

/// A server with the configuration that we print.
fn installed() -> Server {
    let server = Server::default();
    let printed =
        kruise_admission::manifests::configurations(kruise_kinds::webhooks(), "kruise-system", false);
    *server.configuration.lock().unwrap() = printed[0].clone();
    server.configuration.lock().unwrap()["metadata"]["resourceVersion"] = json!("7");
    server
}

async fn response(
    reviews: &Arc<Reviews>,
    webhook: &str,
    kind: &str,
    object: &Value,
    dry_run: bool,
) -> Response {
    let webhook = webhooks(kruise_kinds::webhooks())
        .find(|one| one.name == webhook)
        .unwrap();
    let (group, version) = match kind {
        "Pod" => ("", "v1"),
        _ => ("apps.kruise.io", "v1beta1"),
    };
    let review = json!({"uid": "u", "operation": "CREATE", "name": "logs", "namespace": "shop", "dryRun": dry_run,
        "kind": {"group": group, "version": version, "kind": kind}, "object": object});
    match reviews.decide(webhook, Request::from_review(review).unwrap(), None) {
        Decision::Now(response) => response,
        Decision::Later(response) => response.await,
    }
}

fn logs() -> Value {
    let mut set = json!({"metadata": {"name": "logs", "uid": "u", "generation": 1}, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "containers": [{"name": "agent", "image": "agent:1"}]}});
    kruise_admission::sidecarset::complete(&mut set);
    set
}

async fn create_set(reviews: &Arc<Reviews>, dry_run: bool) -> Response {
    response(reviews, "vsidecarset.kb.io", "SidecarSet", &logs(), dry_run).await
}

fn is_allowed(response: &Response) -> bool {
    matches!(response, Response::Allow { .. })
}

#[tokio::test(start_paused = true)]
async fn a_set_is_stored_once_api_servers_had_time_to_learn_of_its_pods() {
    let server = installed();
    server.codes.lock().unwrap().push_back(409);
    let (reviews, begun) = (server.reviews(), Instant::now());
    assert!(is_allowed(&create_set(&reviews, false).await));
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    let webhooks = server.configuration.lock().unwrap()["webhooks"].clone();
    let of_sets = webhooks.as_array().unwrap().iter();
    let mut of_sets = of_sets.filter(|one| one["name"] == "mpod-sidecars.kb.io");
    let condition = of_sets.next().unwrap()["matchConditions"][0]["expression"].to_string();
    assert!(condition.contains("l['app'] == 'web'"), "{condition}");
    let writes = server.writes.lock().unwrap().len();
    assert_eq!(writes, 2, "one was overtaken");
    let begun = Instant::now();
    assert!(is_allowed(&create_set(&reviews, false).await));
    assert!(
        begun.elapsed() <= Duration::from_secs(1),
        "another replica may have widened it a moment ago"
    );
    assert_eq!(server.writes.lock().unwrap().len(), writes);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_neither_writes_nor_waits() {
    let server = installed();
    let begun = Instant::now();
    assert!(is_allowed(&create_set(&server.reviews(), true).await));
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(server.writes.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_set_whose_pods_cannot_be_announced_is_to_be_tried_again() {
    let failing = installed();
    failing.codes.lock().unwrap().extend([500]);
    let overtaken = installed();
    overtaken.codes.lock().unwrap().extend([409; 100]);
    for server in [Server::default(), failing, overtaken] {
        let response = create_set(&server.reviews(), false).await;
        let Response::Deny {
            code: 503, message, ..
        } = &response
        else {
            panic!("{response:?}");
        };
        assert!(
            message.contains(MUTATING) && message.ends_with("; try again"),
            "{message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_injected_by_a_set_that_the_watch_has_not_delivered_yet() {
    let server = installed();
    let reviews = server.reviews();
    let pod = json!({"metadata": {"name": "p", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "m:1"}]}});
    let is_injected = |response: Response| match response {
        Response::Allow { patch, .. } => patch.is_some_and(|patch| patch.contains("agent:1")),
        Response::Deny { message, .. } => panic!("{message}"),
    };
    server.sets.lock().unwrap().push(logs());
    let before = response(&reviews, "mpod.kb.io", "Pod", &pod, false).await;
    assert!(!is_injected(before), "the cache is believed");
    assert!(is_allowed(&create_set(&reviews, false).await));
    let after = response(&reviews, "mpod.kb.io", "Pod", &pod, false).await;
    assert!(is_injected(after));
    tokio::time::advance(Duration::from_secs(31)).await;
    let later = response(&reviews, "mpod.kb.io", "Pod", &pod, false).await;
    assert!(!is_injected(later), "it was not stored");
}
