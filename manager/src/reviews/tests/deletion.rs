//! Deletions of protected objects: what is counted where, and what is recorded.

use std::sync::Mutex;

use http::header;
use kruise_kinds::refusals::METRICS;
use kruise_views::PodView;
use prometheus_client::encoding::text::encode;

use super::*;

const ON: Options = Options {
    deletion_protection: true,
    definitions_protection: true,
    ..Options::DEFAULT
};

/// A server with these lists, by path and query. It notes what is asked for.
#[derive(Clone, Default)]
struct Lists {
    pages: Arc<Vec<(&'static str, Value)>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Lists {
    fn of(pages: &[(&'static str, Value)]) -> Self {
        Self {
            pages: Arc::new(pages.to_vec()),
            asked: Arc::default(),
        }
    }

    fn client(&self) -> Client {
        let lists = self.clone();
        let service = tower::service_fn(move |request: HttpRequest<Body>| {
            let lists = lists.clone();
            async move {
                let uri = request.uri().to_string();
                let accepted = request.headers()[header::ACCEPT].to_str().unwrap();
                let is_of_metadata = accepted.contains("as=PartialObjectMetadataList");
                assert_eq!(is_of_metadata, uri.contains("/widgets"), "{uri}: {accepted}");
                lists.asked.lock().unwrap().push(uri.clone());
                let page = lists.pages.iter().find(|(path, _)| *path == uri);
                let (code, body) = match page {
                    Some((_, page)) => (StatusCode::OK, page.clone()),
                    None => (
                        StatusCode::FORBIDDEN,
                        json!({"kind": "Status", "code": 403, "message": "no rights"}),
                    ),
                };
                let body = Full::new(Bytes::from(body.to_string()));
                let response = HttpResponse::builder().status(code).body(body).unwrap();
                Ok::<_, io::Error>(response)
            }
        });
        played::client_of(service)
    }
}

/// The response to a deletion, and the lines of its metrics.
async fn deleted(lists: &Lists, pods: &[Value], kind: &str, stored: &Value) -> (Response, String) {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry, &METRICS);
    let mut cache = cache(with_namespaces());
    cache.pods = SharedInformer::new([]);
    let pods: Vec<PodView> = pods
        .iter()
        .map(|pod| serde_json::from_value(pod.clone()).unwrap())
        .collect();
    for event in [
        Event::ListStarted,
        Event::Page(pods),
        Event::ListDone {
            version: Version::new(100),
        },
    ] {
        cache.pods.apply(event).unwrap();
    }
    let refusals = Refusals::new(&metrics, None);
    let effects = effects(&cache.webhook_caches, lists.client(), refusals);
    let reviews = Arc::new(Reviews::new(
        ON,
        cache,
        lists.client(),
        metrics.pods.clone(),
        effects,
    ));
    let group = match kind {
        "CustomResourceDefinition" => "apiextensions.k8s.io",
        _ => "",
    };
    let review = json!({"operation": "DELETE", "name": "shop", "oldObject": stored,
        "userInfo": {"username": "jane"}, "kind": {"group": group, "version": "v1", "kind": kind}});
    let request = Request::from_review(review).unwrap();
    let row = webhooks(kruise_kinds::webhooks()).find(|row| {
        let path = row.path();
        path == format!("/validate-{}", kind.to_lowercase())
    });
    let response = match reviews.decide(row.unwrap(), request, None) {
        Decision::Now(response) => response,
        Decision::Later(response) => response.await,
    };
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let counted = text.lines().filter(|line| line.contains("_deletion_protection{"));
    (response, counted.collect::<Vec<_>>().join("\n"))
}

fn namespace() -> Value {
    json!({"metadata": {"name": "shop", "labels": {"policy.kruise.io/delete-protection": "Cascading"}}})
}

fn pod(phase: &str) -> Value {
    json!({"metadata": {"name": phase.to_lowercase(), "namespace": "shop", "uid": phase, "resourceVersion": "1"},
        "spec": {"containers": []}, "status": {"phase": phase}})
}

const PODS: &str = "/api/v1/namespaces/shop/pods?limit=500";
const CLAIMS: &str = "/api/v1/namespaces/shop/persistentvolumeclaims?limit=500";

fn claim(phase: &str, deleting: bool) -> Value {
    let deleting = deleting.then_some("2026-01-02T03:04:05Z");
    json!({"metadata": {"deletionTimestamp": deleting}, "status": {"phase": phase}})
}

#[tokio::test]
async fn active_pods_of_the_cache_keep_their_namespace_without_a_request() {
    let lists = Lists::default();
    let pods = [pod("Running"), pod("Pending"), pod("Succeeded"), pod("Failed")];
    let (response, counted) = deleted(&lists, &pods, "Namespace", &namespace()).await;
    assert!(
        message(&response).ends_with("=Cascading and active pods 2>0"),
        "{response:?}"
    );
    assert_eq!(
        counted,
        "namespace_deletion_protection{name=\"shop\",username=\"jane\"} 1"
    );
    assert!(lists.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_pod_that_the_cache_does_not_have_yet_keeps_its_namespace() {
    let lists = Lists::of(&[(PODS, json!({"items": [pod("Running"), pod("Succeeded")]}))]);
    let (response, _) = deleted(&lists, &[pod("Succeeded")], "Namespace", &namespace()).await;
    assert!(
        message(&response).ends_with("=Cascading and active pods 1>0"),
        "{response:?}"
    );
}

#[tokio::test]
async fn bound_claims_on_every_page_keep_their_namespace_and_others_do_not() {
    let no_pods = (PODS, json!({"items": []}));
    let lost = [
        claim("Pending", false),
        claim("Lost", false),
        claim("Bound", true),
    ];
    let lists = Lists::of(&[no_pods.clone(), (CLAIMS, json!({"items": lost}))]);
    let (response, counted) = deleted(&lists, &[], "Namespace", &namespace()).await;
    assert!(matches!(response, Response::Allow { .. }), "{response:?}");
    assert_eq!(counted, "");

    let second = "/api/v1/namespaces/shop/persistentvolumeclaims?limit=500&continue=a%2Fb";
    let lists = Lists::of(&[
        no_pods,
        (
            CLAIMS,
            json!({"metadata": {"continue": "a/b"}, "items": [claim("Bound", false)]}),
        ),
        (
            second,
            json!({"items": [claim("Bound", false), claim("Bound", true)]}),
        ),
    ]);
    let (response, _) = deleted(&lists, &[], "Namespace", &namespace()).await;
    let expected = "=Cascading and \"Bound\" status pvc 2>0";
    assert!(message(&response).ends_with(expected), "{response:?}");
}

#[tokio::test]
async fn a_list_that_fails_refuses_the_deletion_with_its_reason() {
    let lists = Lists::of(&[(PODS, json!({"items": []}))]);
    let (response, _) = deleted(&lists, &[], "Namespace", &namespace()).await;
    assert_eq!(
        message(&response),
        "forbidden by ResourcesProtectionDeletion for list pvc error: no rights"
    );
}

#[tokio::test]
async fn objects_of_a_definition_are_counted_by_metadata_up_to_the_first_page_with_a_live_one() {
    let mut definition = namespace();
    definition["spec"] = json!({"group": "example.com", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "storage": true, "served": true}]});
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}});
    let live = json!({"metadata": {}});
    let list = "/apis/example.com/v1/widgets?limit=500";
    let lists = Lists::of(&[
        (list, json!({"metadata": {"continue": "b"}, "items": [going]})),
        (
            "/apis/example.com/v1/widgets?limit=500&continue=b",
            json!({"metadata": {"continue": "c", "remainingItemCount": 7}, "items": [going, live, live]}),
        ),
    ]);
    let kind = "CustomResourceDefinition";
    let (response, counted) = deleted(&lists, &[], kind, &definition).await;
    assert!(
        message(&response).ends_with("=Cascading and active CRs 9>0"),
        "{response:?}"
    );
    assert_eq!(
        counted,
        "crd_deletion_protection{name=\"shop\",username=\"jane\"} 1"
    );
    assert_eq!(lists.asked.lock().unwrap().len(), 2);

    let none = Lists::of(&[(list, json!({"metadata": {}, "items": [going]}))]);
    let (response, _) = deleted(&none, &[], kind, &definition).await;
    assert!(matches!(response, Response::Allow { .. }), "{response:?}");
}
