use std::{future::pending, io};

use bytes::Bytes;
use http::{Request as HttpRequest, Response, StatusCode};
use http_body_util::Full;
use kruise_runtime::{Clock, client::Settings, metrics::Metrics};
use kruise_server::review::Verdict;
use kube_client::client::Body;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::controllers::lookups::tests::{empty, fill_with, filled};
use crate::inject::{Options as InjectOptions, of_cluster};
use crate::manager::admission::{mutate_kind, review_pod, validate_kind, validate_sidecarset};

/// How a server treats whoever asks.
#[derive(Clone, Copy)]
enum Server {
    /// After this time, with the namespace `young`, labelled `env: prod`, the sets `logs` and, by name, `base`, and a
    /// whitelist of annotations.
    Answers(Duration),
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
            let response = Response::builder().status(code).header("retry-after", "1");
            Ok(response.body(body).unwrap())
        };
        match server {
            Server::Answers(delay) => {
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
    let settings = Settings {
        user_agent: "kruise-manager/test".into(),
        timeout: Duration::from_secs(30),
        rate: None,
        host: "here".into(),
        observer: None,
        clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH),
    };
    Client::new(kube_client::Client::new(service, "default"), settings)
}

/// Injects `logs` into pods `app: web` of namespaces `env: prod`.
fn logs() -> Value {
    json!({"metadata": {"name": "logs"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": {"matchLabels": {"env": "prod"}},
        "containers": [{"name": "agent", "image": "agent:1"}],
    }})
}

fn reviews(server: Server, caches: Lookups) -> Arc<Reviews> {
    Arc::new(Reviews {
        options: Options::default(),
        caches,
        pods: SharedInformer::new([]),
        client: client(server),
        namespace: "kruise-system".into(),
        metrics: Metrics::register(&mut Registry::default(), &[]).pods,
    })
}

fn request(namespace: &str, app: &str) -> Request {
    let pod = json!({"metadata": {"name": "p", "labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": "m:1"}]}});
    let review = json!({"uid": "u", "operation": "CREATE", "namespace": namespace,
        "kind": {"group": "", "version": "v1", "kind": "Pod"}, "object": pod});
    Request::from_review(review).unwrap()
}

fn with_namespaces() -> Lookups {
    let namespaces = [("prod", "prod"), ("test", "test")]
        .map(|(name, env)| json!({"metadata": {"name": name, "labels": {"env": env}}}));
    filled(&[logs()], &namespaces, &[])
}

fn is_injected(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Allow { patch, .. } => json!(patch).to_string().contains("agent:1"),
        Verdict::Deny { .. } => false,
    }
}

async fn later(decision: Decision) -> Verdict {
    match decision {
        Decision::Later(verdict) => verdict.await,
        Decision::Now(verdict) => panic!("decided without asking: {verdict:?}"),
    }
}

fn now(decision: Decision) -> Verdict {
    match decision {
        Decision::Now(verdict) => verdict,
        Decision::Later(_) => panic!("the caches suffice"),
    }
}

fn is_unavailable(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Deny { code: 503, message } if message.ends_with("; try again"))
}

#[tokio::test(start_paused = true)]
async fn what_the_caches_know_is_decided_at_once_whatever_the_server_does() {
    let reviews = reviews(Server::Silent, with_namespaces());
    assert!(is_injected(&now(reviews.decide(
        review_pod,
        LIMIT,
        request("prod", "web")
    ))));
    for (namespace, app) in [("test", "web"), ("prod", "db"), ("unknown", "db")] {
        let verdict = now(reviews.decide(review_pod, LIMIT, request(namespace, app)));
        assert!(
            matches!(&verdict, Verdict::Allow { patch, .. } if patch.is_empty()),
            "{verdict:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_was_just_made_is_asked_for() {
    let reviews = reviews(Server::Answers(Duration::from_millis(200)), with_namespaces());
    assert!(is_injected(
        &later(reviews.decide(review_pod, LIMIT, request("young", "web"))).await
    ));
    let gone = later(reviews.decide(review_pod, LIMIT, request("gone", "web"))).await;
    assert!(
        matches!(&gone, Verdict::Allow { patch, .. } if patch.is_empty()),
        "{gone:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_slow_silent_busy_or_gone_delays_no_answer_beyond_the_limit() {
    for server in [
        Server::Answers(Duration::from_millis(301)),
        Server::Silent,
        Server::Refuses,
        Server::Busy,
    ] {
        let start = Instant::now();
        let reviews = reviews(server, with_namespaces());
        let verdict = later(reviews.decide(review_pod, LIMIT, request("young", "web"))).await;
        assert!(is_unavailable(&verdict), "{verdict:?}");
        // Timers of the runtime are a millisecond coarse; its clock stands still but for them.
        assert!(
            start.elapsed() <= LIMIT + Duration::from_millis(2),
            "{:?}",
            start.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_is_for_all_questions_together() {
    let revision = |name: &str, wanted: &str| {
        let mut set = logs();
        set["metadata"]["name"] = json!(name);
        set["spec"]["injectionStrategy"] = json!({"revision": {"revisionName": wanted}});
        set
    };
    let caches = filled(&[revision("a", "a-1"), revision("b", "b-1")], &[], &[]);
    let start = Instant::now();
    // namespace, then two revisions: each alone would be in time
    let reviews = reviews(Server::Answers(Duration::from_millis(140)), caches);
    assert!(is_unavailable(
        &later(reviews.decide(review_pod, LIMIT, request("young", "web"))).await
    ));
    assert!(start.elapsed() <= LIMIT + Duration::from_millis(2));
}

#[tokio::test(start_paused = true)]
async fn before_the_first_list_is_in_the_answer_is_to_try_again() {
    let start = Instant::now();
    let reviews = reviews(Server::Silent, empty(Some("v1beta1")));
    let verdict = later(reviews.decide(review_pod, LIMIT, request("prod", "web"))).await;
    assert!(is_unavailable(&verdict), "{verdict:?}");
    assert!(start.elapsed() <= LIMIT + Duration::from_millis(2));
}

#[tokio::test(start_paused = true)]
async fn a_first_list_that_comes_in_time_is_waited_for() {
    let caches = empty(Some("v1beta1"));
    let reviews = reviews(Server::Silent, caches.clone());
    let verdict = reviews.decide(review_pod, LIMIT, request("prod", "web"));
    let filling = async {
        sleep(Duration::from_millis(200)).await;
        fill_with(
            &caches,
            &[logs()],
            &[json!({"metadata": {"name": "prod", "labels": {"env": "prod"}}})],
            &[],
        );
    };
    let (verdict, ()) = tokio::join!(later(verdict), filling);
    assert!(is_injected(&verdict), "{verdict:?}");
}

#[tokio::test]
async fn without_the_kind_there_is_nothing_to_look_up() {
    let reviews = reviews(Server::Silent, empty(None));
    let mut request = request("prod", "web");
    request.object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "controller": true}]);
    let verdict = now(reviews.decide(review_pod, LIMIT, request));
    assert!(
        matches!(&verdict, Verdict::Allow { patch, .. } if patch.len() == 1),
        "{verdict:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn kruise_inject_prints_byte_for_byte_what_the_webhook_makes() {
    let reviews = reviews(Server::Answers(Duration::ZERO), with_namespaces());
    for (namespace, app) in [("young", "web"), ("young", "db")] {
        let request = request(namespace, app);
        let pod = request.object.clone();
        let options = InjectOptions::of_a_test(namespace);
        let told = of_cluster(&pod, &options, reviews.client.clone()).await.unwrap();
        let verdict = match reviews.decide(review_pod, LIMIT, request) {
            Decision::Now(verdict) => verdict,
            Decision::Later(verdict) => verdict.await,
        };
        let Verdict::Allow { patch, .. } = verdict else {
            panic!("{verdict:?}")
        };
        let mut made = pod;
        kube_schema::patch::json(&mut made, &json!(patch)).unwrap();
        let printed: Vec<&str> = told.lines().filter(|line| !line.starts_with('#')).collect();
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
async fn what_a_set_refers_to_is_asked_for_when_the_caches_do_not_have_it() {
    let reviews = reviews(Server::Answers(Duration::ZERO), with_namespaces());
    let code = |verdict: &Verdict| match verdict {
        Verdict::Allow { .. } => 200,
        Verdict::Deny { code, .. } => *code,
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
        let verdict = later(reviews.decide(validate_sidecarset, PATIENCE, request)).await;
        assert_eq!(code(&verdict), expected, "{object} {verdict:?}");
    }
    let clash = set_request(|set| set["spec"]["containers"][0]["name"] = json!("agent"));
    assert_eq!(
        code(&now(reviews.decide(validate_sidecarset, PATIENCE, clash))),
        422
    );
    assert_eq!(
        code(&now(reviews.decide(
            validate_sidecarset,
            PATIENCE,
            set_request(|_| ())
        ))),
        200
    );
}

#[tokio::test(start_paused = true)]
async fn steps_are_counted_by_what_came_of_them() {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry, &[]).pods;
    let reviews = Arc::new(Reviews {
        options: Options::default(),
        pods: SharedInformer::new([]),
        caches: with_namespaces(),
        client: client(Server::Silent),
        namespace: "kruise-system".into(),
        metrics,
    });
    for app in ["web", "db", "web"] {
        now(reviews.decide(review_pod, LIMIT, request("prod", app)));
    }
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    // Sets and namespaces are asked for first.
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
async fn other_objects_that_a_kind_is_about_are_asked_for() {
    let reviews = reviews(Server::Answers(Duration::from_millis(50)), with_namespaces());
    let recreate = |pod: &str| {
        let spec = json!({"podName": pod, "containers": [{"name": "web"}]});
        kind_request("ContainerRecreateRequest", &spec)
    };
    // the pod, and then its node
    let Verdict::Allow { patch, .. } = later(reviews.decide(mutate_kind, PATIENCE, recreate("web-0"))).await
    else {
        panic!("refused")
    };
    let patch = json!(patch).to_string();
    assert!(
        patch.contains("containerd://1") && patch.contains("n1"),
        "{patch}"
    );
    let refused = later(reviews.decide(mutate_kind, PATIENCE, recreate("gone"))).await;
    assert!(
        matches!(&refused, Verdict::Deny { code: 400, message } if message.contains("no found Pod named gone")),
        "{refused:?}"
    );
    // a trial, whose refusal is the object's fault
    let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}});
    let distribution = kind_request(
        "ResourceDistribution",
        &json!({"resource": resource, "targets": {}}),
    );
    let refused = later(reviews.decide(validate_kind, PATIENCE, distribution)).await;
    assert!(
        matches!(&refused, Verdict::Deny { code: 422, message } if message.contains("spec.resource: Invalid value: \"shared\": no good")),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_an_object_does_not_say_of_others_is_not_asked_and_a_silent_server_is_not_waited_for() {
    let reviews = reviews(Server::Silent, with_namespaces());
    let image = kind_request(
        "ImageListPullJob",
        &json!({"images": ["nginx"], "completionPolicy": {"type": "Never"}}),
    );
    assert!(matches!(
        now(reviews.decide(validate_kind, PATIENCE, image)),
        Verdict::Allow { .. }
    ));
    let target = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"});
    let state = json!({"targetRef": target, "requiredPersistentTopology": {"keys": ["zone"]}});
    let state = kind_request("PersistentPodState", &state);
    let verdict = later(reviews.decide(validate_kind, PATIENCE, state)).await;
    assert!(is_unavailable(&verdict), "{verdict:?}");
}
