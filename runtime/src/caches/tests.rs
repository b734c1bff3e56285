use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kruise_plan_kit::{ResourceId, Target};
use kruise_views::{ClaimView, MetadataView, PodView};
use kube_cache::{Index, Version};
use kube_client::client::Body;
use serde_json::json;
use tokio::sync::watch;

use super::{CacheId, CacheView, Caches, Following};
use crate::{Client, Served, client::Settings};

const CLAIMS: CacheId<ClaimView> = CacheId::of("claims", ResourceId::CLAIMS).before(&["pods"]);
const PODS: CacheId<PodView> = CacheId::of("pods", ResourceId::PODS)
    .indexed(&[Index::new("name", |pod: &PodView| vec![pod.name.clone()])]);
const SECRETS: CacheId<MetadataView> = CacheId::of("secrets, metadata", ResourceId::SECRETS).of_metadata();
const JOBS: CacheId<PodView> = CacheId::of("jobs", ResourceId::IMAGE_PULL_JOBS);

/// The paths of the lists.
type Paths = Arc<Mutex<Vec<String>>>;

/// A server with one pod, whose claims are at version 8 and pods at 9. Watches stay open without events.
fn server() -> (Client, Paths) {
    let listed = Paths::default();
    let seen = listed.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (path, query) = (
            request.uri().path().to_owned(),
            request.uri().query().unwrap_or(""),
        );
        let is_watch = query.contains("watch=true");
        if !is_watch {
            seen.lock().unwrap().push(path.clone());
        }
        let body: UnsyncBoxBody<Bytes, Infallible> = if is_watch {
            StreamBody::new(stream::pending()).boxed_unsync()
        } else {
            let pod =
                json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7"}});
            let (version, items) = match path.rsplit('/').next() {
                Some("pods") => ("9", vec![pod]),
                _ => ("8", Vec::new()),
            };
            let list = json!({"metadata": {"resourceVersion": version}, "items": items});
            Full::from(list.to_string().into_bytes()).boxed_unsync()
        };
        async move { Ok::<_, Infallible>(Response::new(body)) }
    });
    let client = kube_client::Client::new(service, "default");
    (
        Client::new(client, Settings::of_a_test(Duration::from_secs(5))),
        listed,
    )
}

async fn started(caches: &Caches) -> (super::Watches, Paths, watch::Sender<bool>) {
    let (client, listed) = server();
    let (stop, stopped) = watch::channel(false);
    let following = Following {
        client: &client,
        served: &Served::default(),
        namespace: Some("shop"),
        own_namespace: "system",
        patience: Duration::from_mins(1),
        jitter: Arc::new(|| 0),
        stop: stopped,
    };
    let watches = caches.start(&following).await.unwrap();
    (watches, listed, stop)
}

#[tokio::test(start_paused = true)]
async fn a_cache_is_listed_once_for_all_requests_and_after_the_caches_of_its_owners() {
    let mut caches = Caches::default();
    let (pods, claims) = (caches.informer(&PODS), caches.informer(&CLAIMS));
    let again = caches.informer(&PODS);
    let (_watches, listed, _stop) = started(&caches).await;
    assert_eq!(
        *listed.lock().unwrap(),
        [
            "/api/v1/namespaces/shop/persistentvolumeclaims",
            "/api/v1/namespaces/shop/pods"
        ]
    );
    assert_eq!(claims.observed(), Some(Version::new(8)));
    assert_eq!(pods.snapshot().len(), 1);
    assert_eq!(again.snapshot().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn readers_of_one_cache_add_their_own_indexes_to_it() {
    static DERIVED: AtomicUsize = AtomicUsize::new(0);
    const BY_UID: Index<PodView> = Index::new("own", |pod| {
        DERIVED.fetch_add(1, Ordering::Relaxed);
        vec![pod.uid.clone()]
    });
    let mut caches = Caches::default();
    let other = caches.informer(&PODS);
    let indexed = caches.indexed(&PODS, &[BY_UID]);
    let (_watches, listed, _stop) = started(&caches).await;
    assert_eq!(listed.lock().unwrap().len(), 1, "one cache");
    let derived = DERIVED.load(Ordering::Relaxed);
    for pods in [other, indexed] {
        assert_eq!(pods.snapshot().by_index(&BY_UID, "u").len(), 1);
    }
    assert_eq!(DERIVED.load(Ordering::Relaxed), derived, "no scan");
}

#[tokio::test(start_paused = true)]
async fn caches_that_name_each_other_in_a_chain_are_listed_in_its_order() {
    const REVISIONS: CacheId<PodView> =
        CacheId::of("revisions", ResourceId::REVISIONS).before(&["claims", "pods"]);
    let mut caches = Caches::default();
    caches.informer(&PODS);
    caches.informer(&CLAIMS);
    caches.informer(&REVISIONS);
    let (_watches, listed, _stop) = started(&caches).await;
    let plurals: Vec<String> = listed
        .lock()
        .unwrap()
        .iter()
        .filter_map(|path| path.rsplit('/').next().map(str::to_owned))
        .collect();
    assert_eq!(plurals, ["controllerrevisions", "persistentvolumeclaims", "pods"]);
}

#[tokio::test(start_paused = true)]
async fn a_cache_of_a_resource_that_is_not_served_stays_empty_without_a_watch() {
    let mut caches = Caches::default();
    let jobs = caches.informer(&JOBS);
    let (watches, listed, _stop) = started(&caches).await;
    assert!(watches.tasks.is_empty() && listed.lock().unwrap().is_empty());
    assert_eq!(jobs.synced_version(), None);
}

#[tokio::test(start_paused = true)]
async fn handlers_receive_each_change_in_the_order_of_their_registration() {
    let mut caches = Caches::default();
    let received = Arc::new(Mutex::new(Vec::new()));
    caches.informer(&PODS);
    for name in ["first", "second"] {
        let received = received.clone();
        caches.on_change(&PODS, move |delta| {
            let pod = delta.new.as_ref().unwrap().name.to_string();
            received.lock().unwrap().push((name, pod));
        });
    }
    let (_watches, _listed, _stop) = started(&caches).await;
    let web = "web".to_owned();
    assert_eq!(
        *received.lock().unwrap(),
        [("first", web.clone()), ("second", web)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_view_shows_the_caches_that_its_controller_reads_and_no_others() {
    let mut caches = Caches::default();
    caches.informer(&PODS);
    caches.informer(&CLAIMS);
    let view = caches.view(&["pods"]);
    let (_watches, _listed, _stop) = started(&caches).await;
    let target = |resource, name: &str| Target {
        resource,
        namespace: "shop".into(),
        name: name.into(),
    };
    assert_eq!(view.observed(ResourceId::PODS), Some(Version::new(9)));
    assert_eq!(view.observed(ResourceId::CLAIMS), None);
    assert!(view.present(ResourceId::PODS, "u") && !view.present(ResourceId::PODS, "other"));
    let version = |name, uid| view.version(&target(ResourceId::PODS, name), uid);
    assert_eq!(version("web", "u"), Some(Version::new(7)));
    assert_eq!(version("web", "other"), None);
    assert_eq!(version("gone", "u"), None);
}

#[tokio::test(start_paused = true)]
async fn a_cache_of_metadata_asks_the_server_for_nothing_else() {
    let accepted = Paths::default();
    let seen = accepted.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let accept = request.headers().get(http::header::ACCEPT).unwrap();
        let (form, _) = accept.to_str().unwrap().split_once(';').unwrap();
        let rest = accept.to_str().unwrap().strip_prefix(form).unwrap();
        let (what, _) = rest.strip_prefix(";as=").unwrap().split_once(';').unwrap();
        seen.lock().unwrap().push(what.to_owned());
        let is_watch = request.uri().query().unwrap_or("").contains("watch=true");
        let body: UnsyncBoxBody<Bytes, Infallible> = if is_watch {
            StreamBody::new(stream::pending()).boxed_unsync()
        } else {
            let secret =
                json!({"metadata": {"name": "reg", "namespace": "shop", "uid": "u", "resourceVersion": "7"}});
            let list = json!({"metadata": {"resourceVersion": "9"}, "items": [secret]});
            Full::from(list.to_string().into_bytes()).boxed_unsync()
        };
        async move { Ok::<_, Infallible>(Response::new(body)) }
    });
    let client = kube_client::Client::new(service, "default");
    let client = Client::new(client, Settings::of_a_test(Duration::from_secs(5)));
    let mut caches = Caches::default();
    let secrets = caches.informer(&SECRETS);
    let (_stop, stopped) = watch::channel(false);
    let following = Following {
        client: &client,
        served: &Served::default(),
        namespace: None,
        own_namespace: "system",
        patience: Duration::from_mins(1),
        jitter: Arc::new(|| 0),
        stop: stopped,
    };
    let _watches = caches.start(&following).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        *accepted.lock().unwrap(),
        ["PartialObjectMetadataList", "PartialObjectMetadata"]
    );
    assert_eq!(secrets.snapshot().len(), 1);
}
