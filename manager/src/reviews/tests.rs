use std::{future::pending, io, time::Duration};

use bytes::Bytes;
use http::{Request as HttpRequest, Response as HttpResponse, StatusCode};
use http_body_util::Full;
use kruise_admission::table::webhooks;
use kruise_frame::played;
use kruise_kinds::{
    self as controllers,
    charges::Writer,
    webhook_caches::testing::{empty, fill_with, filled},
};
use kruise_runtime::{Served, metrics::Metrics};
use kruise_server::review::Response;
use kube_cache::{Event, SharedInformer, Version};
use kube_client::client::Body;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::*;
use kruise_cli::inject::{Options as InjectOptions, of_cluster};

mod deletion;
mod disruptions;
mod spreads;

/// How a server responds.
#[derive(Clone, Copy)]
enum Server {
    /// After this delay, with the namespace `young`, labelled `env: prod`, the sets `logs` and, by name, `base`, and a
    /// whitelist of annotations.
    Responds(Duration),
    /// Never.
    Silent,
    /// Drops the connection.
    Refuses,
    /// With 429 and a wait.
    Busy,
}

fn client(server: Server) -> Client {
    let service = tower::service_fn(move |request: HttpRequest<Body>| async move {
        let answer = |code: StatusCode, body: &Value| {
            let body = Full::new(Bytes::from(body.to_string()));
            let response = HttpResponse::builder().status(code).header("retry-after", "1");
            Ok(response.body(body).unwrap())
        };
        match server {
            Server::Responds(delay) => {
                tokio::time::sleep(delay).await;
                match request.uri().path() {
                    "/api/v1/namespaces/young" => {
                        let labels = json!({"env": "prod"});
                        answer(
                            StatusCode::OK,
                            &json!({"metadata": {"name": "young", "labels": labels}}),
                        )
                    }
                    "/apis/apps.kruise.io/v1beta1/sidecarsets" => {
                        answer(StatusCode::OK, &json!({"items": [logs()]}))
                    }
                    "/apis/apps.kruise.io/v1alpha1/sidecarsets/base" => answer(StatusCode::OK, &logs()),
                    "/api/v1/namespaces/kruise-system/configmaps/kruise-configuration" => {
                        let rules = json!({"rules": [{"allowedAnnotationKeyExprs": ["^logs"]}]});
                        let data = json!({"SidecarSet_PatchPodMetadata_WhiteList": rules.to_string()});
                        answer(StatusCode::OK, &json!({"data": data}))
                    }
                    "/api/v1/namespaces/default/pods/web-0" => answer(
                        StatusCode::OK,
                        &json!({"metadata": {"name": "web-0", "uid": "u1"},
                            "spec": {"nodeName": "n1", "containers": [{"name": "web"}]},
                            "status": {"containerStatuses": [{"name": "web", "containerID": "containerd://1"}]}}),
                    ),
                    "/api/v1/nodes/n1" => answer(StatusCode::OK, &json!({"metadata": {"name": "n1"}})),
                    "/api/v1/namespaces/kruise-system/configmaps" => {
                        assert_eq!(request.uri().query(), Some("dryRun=All"));
                        answer(
                            StatusCode::UNPROCESSABLE_ENTITY,
                            &json!({"kind": "Status", "code": 422, "message": "no good"}),
                        )
                    }
                    _ => answer(StatusCode::NOT_FOUND, &json!({"kind": "Status", "code": 404})),
                }
            }
            Server::Silent => pending().await,
            Server::Refuses => Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
            Server::Busy => answer(
                StatusCode::TOO_MANY_REQUESTS,
                &json!({"kind": "Status", "code": 429}),
            ),
        }
    });
    played::client_of(service)
}

/// Injects `logs` into pods `app: web` of namespaces `env: prod`.
fn logs() -> Value {
    json!({"metadata": {"name": "logs"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": {"matchLabels": {"env": "prod"}},
        "containers": [{"name": "agent", "image": "agent:1"}],
    }})
}

fn reviews(server: Server, caches: controllers::WebhookCaches) -> Arc<Reviews> {
    let metrics = Metrics::register(&mut Registry::default(), &[]).pods;
    measured_reviews(server, cache(caches), metrics)
}

/// These caches, and neither pods nor nodes.
fn cache(caches: controllers::WebhookCaches) -> ReviewCache {
    ReviewCache {
        webhook_caches: caches,
        pods: SharedInformer::new([]),
        nodes: SharedInformer::new([]),
        workloads: None,
        namespace: "kruise-system".into(),
    }
}

fn measured_reviews(server: Server, cache: ReviewCache, metrics: PodMetrics) -> Arc<Reviews> {
    let caches = cache.webhook_caches.clone();
    let options = Options {
        distributions: true,
        pull_jobs: true,
        ..Options::default()
    };
    Arc::new(Reviews::new(
        options,
        cache,
        client(server),
        metrics,
        effects(&caches, client(server), Refusals::new(&unmeasured(), None)),
    ))
}

fn unmeasured() -> Metrics {
    Metrics::register(&mut Registry::default(), &[])
}

/// Effects without match conditions to widen.
fn effects(caches: &controllers::WebhookCaches, client: Client, refusals: Refusals) -> Effects {
    let served: Served = [(&kruise_api::podunavailablebudget::KIND, "v1beta1")]
        .into_iter()
        .collect();
    let served = Arc::new(served);
    Effects {
        widener: None,
        charges: Charges {
            budgets: Writer::new(
                caches.budgets.clone(),
                client.clone(),
                served.clone(),
                Arc::new(|| 7),
            ),
            spreads: Writer::new(caches.spreads.clone(), client, served, Arc::new(|| 7)),
        },
        refusals,
    }
}

/// The decision of a webhook about a request.
fn at(name: &str, reviews: &Arc<Reviews>, request: Request) -> Decision {
    let webhook = webhooks(kruise_kinds::webhooks()).find(|webhook| webhook.name == name);
    reviews.decide(webhook.unwrap(), request, None)
}

/// The decision of the pod webhook.
fn decide(reviews: &Arc<Reviews>, request: Request) -> Decision {
    at("mpod.kb.io", reviews, request)
}

fn request(namespace: &str, app: &str) -> Request {
    let pod = json!({"metadata": {"name": "p", "labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": "m:1"}]}});
    let review = json!({"uid": "u", "operation": "CREATE", "namespace": namespace,
        "kind": {"group": "", "version": "v1", "kind": "Pod"}, "object": pod});
    Request::from_review(review).unwrap()
}

fn with_namespaces() -> controllers::WebhookCaches {
    let namespaces = [("prod", "prod"), ("test", "test")]
        .map(|(name, env)| json!({"metadata": {"name": name, "labels": {"env": env}}}));
    filled(&[logs()], &namespaces, &[])
}

fn is_injected(response: &Response) -> bool {
    match response {
        Response::Allow { patch, .. } => patch.as_ref().is_some_and(|patch| patch.contains("agent:1")),
        Response::Deny { .. } => false,
    }
}

async fn later(decision: Decision) -> Response {
    match decision {
        Decision::Later(response) => response.await,
        Decision::Now(response) => panic!("decided without a lookup: {response:?}"),
    }
}

fn now(decision: Decision) -> Response {
    match decision {
        Decision::Now(response) => response,
        Decision::Later(_) => panic!("the caches suffice"),
    }
}

/// Time limit of the lookups of the pod webhook.
fn limit() -> Duration {
    let pods = webhooks(kruise_kinds::webhooks()).find(|webhook| webhook.name == "mpod.kb.io");
    pods.unwrap().time_limit().lookups
}

fn is_unavailable(response: &Response) -> bool {
    matches!(response, Response::Deny { code: 503, message, .. } if message.ends_with("; try again"))
}

#[tokio::test(start_paused = true)]
async fn a_review_that_the_caches_suffice_for_is_decided_without_the_server() {
    let reviews = reviews(Server::Silent, with_namespaces());
    assert!(is_injected(&now(decide(&reviews, request("prod", "web")))));
    for (namespace, app) in [("test", "web"), ("prod", "db"), ("unknown", "db")] {
        let response = now(decide(&reviews, request(namespace, app)));
        assert!(
            matches!(&response, Response::Allow { patch, .. } if patch.is_none()),
            "{response:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_missing_from_the_cache_is_read_from_the_server() {
    let reviews = reviews(Server::Responds(Duration::from_millis(200)), with_namespaces());
    assert!(is_injected(
        &later(decide(&reviews, request("young", "web"))).await
    ));
    let gone = later(decide(&reviews, request("gone", "web"))).await;
    assert!(
        matches!(&gone, Response::Allow { patch, .. } if patch.is_none()),
        "{gone:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_silent_busy_or_absent_server_delays_no_response_beyond_the_limit() {
    for server in [
        Server::Responds(Duration::from_millis(301)),
        Server::Silent,
        Server::Refuses,
        Server::Busy,
    ] {
        let start = Instant::now();
        let reviews = reviews(server, with_namespaces());
        let response = later(decide(&reviews, request("young", "web"))).await;
        assert!(is_unavailable(&response), "{response:?}");
        // Timers of the runtime have a resolution of a millisecond; its paused clock advances with them only.
        assert!(
            start.elapsed() <= limit() + Duration::from_millis(2),
            "{:?}",
            start.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_covers_all_lookups_together() {
    let revision = |name: &str, wanted: &str| {
        let mut set = logs();
        set["metadata"]["name"] = json!(name);
        set["spec"]["injectionStrategy"] = json!({"revision": {"revisionName": wanted}});
        set
    };
    let caches = filled(&[revision("a", "a-1"), revision("b", "b-1")], &[], &[]);
    let start = Instant::now();
    // Three lookups, the namespace and two revisions: each alone is within the limit.
    let reviews = reviews(Server::Responds(Duration::from_millis(140)), caches);
    assert!(is_unavailable(
        &later(decide(&reviews, request("young", "web"))).await
    ));
    assert!(start.elapsed() <= limit() + Duration::from_millis(2));
}

#[tokio::test(start_paused = true)]
async fn before_the_first_list_the_response_is_to_try_again() {
    let start = Instant::now();
    let reviews = reviews(Server::Silent, empty(Some("v1beta1")));
    let response = later(decide(&reviews, request("prod", "web"))).await;
    assert!(is_unavailable(&response), "{response:?}");
    assert!(start.elapsed() <= limit() + Duration::from_millis(2));
}

#[tokio::test(start_paused = true)]
async fn a_first_list_within_the_limit_is_waited_for() {
    let caches = empty(Some("v1beta1"));
    let reviews = reviews(Server::Silent, caches.clone());
    let response = decide(&reviews, request("prod", "web"));
    let fill_later = async {
        sleep(Duration::from_millis(200)).await;
        fill_with(
            &caches,
            &[logs()],
            &[json!({"metadata": {"name": "prod", "labels": {"env": "prod"}}})],
            &[],
        );
    };
    let (response, ()) = tokio::join!(later(response), fill_later);
    assert!(is_injected(&response), "{response:?}");
}

#[tokio::test]
async fn a_kind_that_is_not_served_needs_no_lookup() {
    let reviews = reviews(Server::Silent, empty(None));
    let mut request = request("prod", "web");
    request.object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "controller": true}]);
    let response = now(decide(&reviews, request));
    assert!(
        matches!(&response, Response::Allow { patch: Some(patch), .. } if patch.matches("\"op\"").count() == 1),
        "{response:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn kruise_inject_prints_byte_for_byte_what_the_webhook_makes() {
    let reviews = reviews(Server::Responds(Duration::ZERO), with_namespaces());
    for (namespace, app) in [("young", "web"), ("young", "db")] {
        let request = request(namespace, app);
        let pod = request.object.clone();
        let options = InjectOptions::default();
        let printed = of_cluster(&pod, namespace, &options, reviews.client.clone())
            .await
            .unwrap();
        let response = match decide(&reviews, request) {
            Decision::Now(response) => response,
            Decision::Later(response) => response.await,
        };
        let Response::Allow { patch, .. } = response else {
            panic!("{response:?}")
        };
        let mut made = pod;
        if let Some(patch) = patch {
            kube_schema::patch::json(&mut made, &serde_json::from_str(&patch).unwrap()).unwrap();
        }
        let printed: Vec<&str> = printed.lines().filter(|line| !line.starts_with('#')).collect();
        let made = serde_saphyr::to_string(&made).unwrap();
        assert_eq!(printed, made.lines().collect::<Vec<_>>());
        assert_eq!(made.contains("agent:1"), app == "web", "{made}");
    }
}

fn set_request(change: impl FnOnce(&mut Value)) -> Request {
    let mut set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": "own"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "updateStrategy": {"type": "NotUpdate"},
            "containers": [{"name": "own", "image": "own:1"}]}});
    change(&mut set);
    kruise_admission::sidecarset::complete(&mut set);
    let review = json!({"operation": "CREATE", "object": set,
        "kind": {"group": "apps.kruise.io", "version": "v1beta1", "kind": "SidecarSet"}});
    Request::from_review(review).unwrap()
}

#[tokio::test(start_paused = true)]
async fn objects_that_a_sidecarset_refers_to_are_read_from_the_server_on_a_cache_miss() {
    let reviews = reviews(Server::Responds(Duration::ZERO), with_namespaces());
    let code = |response: &Response| match response {
        Response::Allow { .. } => 200,
        Response::Deny { code, .. } => *code,
    };
    let canary_of = |base: &'static str| {
        set_request(|set| {
            set["metadata"]["annotations"] =
                json!({"apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": base});
        })
    };
    let patching = |key: &'static str| {
        set_request(|set| set["spec"]["patchPodMetadata"] = json!([{"annotations": {key: "1"}}]))
    };
    let injecting = |revision: &'static str| {
        set_request(|set| set["spec"]["injectionStrategy"] = json!({"revision": {"revisionName": revision}}))
    };
    for (request, expected) in [
        (canary_of("base"), 200),
        (canary_of("nobody"), 422),
        (patching("logs.x"), 200),
        (patching("x.logs"), 422),
        (injecting("gone"), 422),
    ] {
        let object = request.object.clone();
        let response = later(at("vsidecarset.kb.io", &reviews, request)).await;
        assert_eq!(code(&response), expected, "{object} {response:?}");
    }
    let clash = set_request(|set| set["spec"]["containers"][0]["name"] = json!("agent"));
    assert_eq!(code(&now(at("vsidecarset.kb.io", &reviews, clash))), 422);
    // The server does not judge its template, and that is no verdict.
    let good = at("vsidecarset.kb.io", &reviews, set_request(|_| ()));
    assert_eq!(code(&later(good).await), 200);
}

#[tokio::test(start_paused = true)]
async fn steps_are_counted_by_their_result() {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry, &[]).pods;
    let reviews = measured_reviews(Server::Silent, cache(with_namespaces()), metrics);
    for app in ["web", "db", "web"] {
        now(decide(&reviews, request("prod", app)));
    }
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    // Reviews that lack lookups do not count: SidecarSets and namespaces are looked up first.
    for line in [
        "{step=\"sidecars\",result=\"changed\"} 2",
        "{step=\"sidecars\",result=\"unchanged\"} 1",
        "{step=\"launch\",result=\"unchanged\"} 3",
    ] {
        let line = format!("kruise_pod_webhook_step_duration_seconds_count{line}");
        assert!(text.lines().any(|have| have == line), "{line}\n{text}");
    }
}

fn kind_request(kind: &str, spec: &Value) -> Request {
    let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "metadata": {"name": "one"},
        "spec": spec});
    let review = json!({"operation": "CREATE", "namespace": "default", "name": "one", "object": object,
        "kind": {"group": "apps.kruise.io", "version": "v1beta1", "kind": kind}});
    Request::from_review(review).unwrap()
}

#[tokio::test(start_paused = true)]
async fn objects_that_a_specification_refers_to_are_read_from_the_server() {
    let reviews = reviews(Server::Responds(Duration::from_millis(50)), with_namespaces());
    let recreate = |pod: &str| {
        let spec = json!({"podName": pod, "containers": [{"name": "web"}]});
        kind_request("ContainerRecreateRequest", &spec)
    };
    // The pod, and then its node.
    let Response::Allow { patch, .. } =
        later(at("mcontainerrecreaterequest.kb.io", &reviews, recreate("web-0"))).await
    else {
        panic!("refused")
    };
    let patch = patch.unwrap();
    assert!(
        patch.contains("containerd://1") && patch.contains("n1"),
        "{patch}"
    );
    let refused = later(at("mcontainerrecreaterequest.kb.io", &reviews, recreate("gone"))).await;
    assert!(
        matches!(&refused, Response::Deny { code: 400, message, .. } if message.contains("no found Pod named gone")),
        "{refused:?}"
    );
    // A dry run, which refuses the object.
    let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}});
    let distribution = kind_request(
        "ResourceDistribution",
        &json!({"resource": resource, "targets": {}}),
    );
    let refused = later(at("vresourcedistribution.kb.io", &reviews, distribution)).await;
    assert!(
        matches!(&refused, Response::Deny { code: 422, message, .. } if message.contains("spec.resource: Invalid value: \"shared\": no good")),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_looked_up_without_a_reference_and_a_silent_server_is_not_waited_for() {
    let reviews = reviews(Server::Silent, with_namespaces());
    let image = kind_request(
        "ImageListPullJob",
        &json!({"images": ["nginx"], "completionPolicy": {"type": "Never"}}),
    );
    assert!(matches!(
        now(at("vimagelistpulljob-v1beta1.kb.io", &reviews, image)),
        Response::Allow { .. }
    ));
    let target = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"});
    let state = json!({"targetRef": target, "requiredPersistentTopology": {"keys": ["zone"]}});
    let state = kind_request("PersistentPodState", &state);
    let response = later(at("vpersistentpodstate.kb.io", &reviews, state)).await;
    assert!(is_unavailable(&response), "{response:?}");
}

fn deleting(pods: &[&str]) -> Request {
    let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
    "metadata": {"name": "web", "namespace": "default", "uid": "u1"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}},
        "updateStrategy": {"type": "RollingUpdate"},
        "scaleStrategy": {"podsToDelete": pods},
    }});
    let review = json!({"operation": "CREATE", "namespace": "default", "name": "web", "object": set,
        "kind": {"group": "apps.kruise.io", "version": "v1beta1", "kind": "CloneSet"}});
    Request::from_review(review).unwrap()
}

fn message(response: &Response) -> &str {
    match response {
        Response::Deny { message, .. } => message,
        Response::Allow { .. } => "",
    }
}

#[tokio::test(start_paused = true)]
async fn pods_to_delete_come_from_the_cache_and_before_its_first_list_from_the_server() {
    let name = "vcloneset.kb.io";
    let owned = json!({"metadata": {"name": "mine", "namespace": "default", "uid": "p1", "resourceVersion": "1",
        "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "u1",
            "controller": true}]}, "spec": {"containers": []}});
    let pods = SharedInformer::new([]);
    let caches = || ReviewCache {
        pods: pods.clone(),
        ..cache(with_namespaces())
    };
    let metrics = || Metrics::register(&mut Registry::default(), &[]).pods;
    let reviews = measured_reviews(Server::Responds(Duration::ZERO), caches(), metrics());
    // Before the first list. The server has `web-0`, which has no owner.
    let response = later(at(name, &reviews, deleting(&["web-0", "gone", "no/name"]))).await;
    for (index, reason) in [
        (0, "Invalid value: \"web-0\": the pod is not controlled"),
        (1, "Not found"),
        (2, "Not found"),
    ] {
        let expected = format!("spec.scaleStrategy.podsToDelete[{index}]: {reason}");
        assert!(message(&response).contains(&expected), "{response:?}");
    }
    let silent = measured_reviews(Server::Silent, caches(), metrics());
    assert!(is_unavailable(
        &later(at(name, &silent, deleting(&["mine"]))).await
    ));
    for event in [
        Event::ListStarted,
        Event::Page(vec![serde_json::from_value(owned).unwrap()]),
        Event::ListDone {
            version: Version::new(100),
        },
    ] {
        pods.apply(event).unwrap();
    }
    // All that is left is the server's judgement of the template, which is not waited for long.
    let allowed = later(at(name, &silent, deleting(&["mine"]))).await;
    assert!(
        matches!(allowed, Response::Allow { patch: None, .. }),
        "{allowed:?}"
    );
    let refused = now(at(name, &silent, deleting(&["mine", "web-0"])));
    assert!(
        message(&refused).contains("podsToDelete[1]: Not found"),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cached_node_is_not_read_from_the_server() {
    let caches = cache(with_namespaces());
    let node = json!({"metadata": {"name": "n1", "uid": "n", "resourceVersion": "1",
        "labels": {"type": "virtual-kubelet"}}});
    for event in [
        Event::ListStarted,
        Event::Page(vec![serde_json::from_value(node).unwrap()]),
        Event::ListDone {
            version: Version::new(100),
        },
    ] {
        caches.nodes.apply(event).unwrap();
    }
    let metrics = Metrics::register(&mut Registry::default(), &[]).pods;
    let reviews = measured_reviews(Server::Responds(Duration::ZERO), caches, metrics);
    let spec = json!({"podName": "web-0", "containers": [{"name": "web"}]});
    let request = kind_request("ContainerRecreateRequest", &spec);
    let response = later(at("mcontainerrecreaterequest.kb.io", &reviews, request)).await;
    // The server has this node without the label.
    assert!(
        matches!(&response, Response::Allow { patch: Some(patch), .. } if patch.contains("virtual-kubelet")),
        "{response:?}"
    );
}
