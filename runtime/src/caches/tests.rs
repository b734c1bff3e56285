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
const JOBS: CacheId<PodView> = CacheId::of("jobs", kruise_api::imagepulljob::RESOURCE);

/// A server with one pod. Each request is answered at the next version, from 8 on. Watches stay open without events.
#[derive(Default)]
struct Server {
    /// Paths and queries of the lists, in the order of their arrival.
    lists: Mutex<Vec<String>>,
    /// Versions since the first.
    writes: AtomicUsize,
    /// Status code of lists at an exact version that are refused.
    refuses_exact: Option<u16>,
}

impl Server {
    fn answer(&self, request: &Request<Body>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let query = request.uri().query().unwrap_or_default();
        if query.contains("watch=true") {
            return Response::new(StreamBody::new(stream::pending()).boxed_unsync());
        }
        let full = |body: serde_json::Value| Full::from(body.to_string().into_bytes()).boxed_unsync();
        let path = request.uri().path();
        self.lists.lock().unwrap().push(format!("{path}?{query}"));
        let wanted = query
            .split('&')
            .find_map(|one| one.strip_prefix("resourceVersion="));
        if let (Some(code), Some(_)) = (self.refuses_exact, wanted) {
            let status = full(json!({"kind": "Status", "code": code}));
            return Response::builder().status(code).body(status).unwrap();
        }
        let pod =
            json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7"}});
        let items = if path.ends_with("/pods") {
            vec![pod]
        } else {
            Vec::new()
        };
        let now = (8 + self.writes.fetch_add(1, Ordering::SeqCst)).to_string();
        let version = wanted.unwrap_or(&now);
        Response::new(full(
            json!({"metadata": {"resourceVersion": version}, "items": items}),
        ))
    }

    /// Plural and query of the lists, without the limit of a page.
    fn lists(&self) -> Vec<String> {
        let lists = self.lists.lock().unwrap();
        let short = |list: &String| {
            let list = list.rsplit('/').next().unwrap().replace("&limit=500", "");
            list.trim_end_matches('?').to_owned()
        };
        lists.iter().map(short).collect()
    }
}

fn client(server: &Arc<Server>) -> Client {
    let server = server.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let answer = server.answer(&request);
        async move { Ok::<_, Infallible>(answer) }
    });
    let client = kube_client::Client::new(service, "default");
    Client::new(client, Settings::of_a_test(Duration::from_secs(5)))
}

/// What a process passes in that is limited to the namespace `shop`.
fn following<'f>(
    client: &'f Client,
    served: &'f Served,
    convertible: watch::Receiver<bool>,
) -> Following<'f> {
    let (_, stop) = watch::channel(false);
    Following {
        client,
        served,
        namespace: Some("shop"),
        own_namespace: "system",
        patience: Duration::from_mins(1),
        jitter: Arc::new(|| 0),
        convertible,
        stop,
    }
}

/// Starts the caches on a server that serves no kinds.
async fn started_on(caches: &Caches, server: &Arc<Server>) -> (super::Watches, watch::Sender<bool>) {
    let (client, served) = (client(server), Served::default());
    let (stop, stopped) = watch::channel(false);
    let (_, convertible) = watch::channel(false);
    let following = Following {
        stop: stopped,
        ..following(&client, &served, convertible)
    };
    (caches.start(&following).await.unwrap(), stop)
}

async fn started(caches: &Caches) -> (super::Watches, Arc<Server>, watch::Sender<bool>) {
    let server = Arc::default();
    let (watches, stop) = started_on(caches, &server).await;
    (watches, server, stop)
}

#[tokio::test(start_paused = true)]
async fn a_cache_is_listed_once_for_all_requests_and_not_older_than_the_caches_of_its_owners() {
    let mut caches = Caches::default();
    let (pods, claims) = (caches.informer(&PODS), caches.informer(&CLAIMS));
    let again = caches.informer(&PODS);
    let (_watches, server, _stop) = started(&caches).await;
    let mut lists = server.lists();
    assert_eq!(lists.remove(0), "pods?limit=1", "the version before all lists");
    lists.sort();
    assert_eq!(
        lists,
        [
            "persistentvolumeclaims?&resourceVersion=8&resourceVersionMatch=Exact",
            "pods"
        ]
    );
    assert_eq!(claims.synced_version(), Some(Version::new(8)));
    assert!(pods.synced_version() > claims.synced_version());
    assert_eq!(pods.snapshot().len(), 1);
    assert_eq!(again.snapshot().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn owned_objects_are_brought_up_to_owners_that_cannot_be_listed_at_the_version_before() {
    for code in [400, 410, 504] {
        let mut caches = Caches::default();
        let (pods, claims) = (caches.informer(&PODS), caches.informer(&CLAIMS));
        let server = Arc::new(Server {
            refuses_exact: Some(code),
            ..Server::default()
        });
        let (_watches, _stop) = started_on(&caches, &server).await;
        let of_claims = server
            .lists()
            .iter()
            .filter(|list| list.starts_with("persistent"))
            .count();
        assert_eq!(of_claims, 2, "{code}: at the version, and once more");
        let of_pods = server.lists().iter().filter(|list| *list == "pods").count();
        assert_eq!(
            of_pods, 2,
            "{code}: with the claims, and again, as no watch shows newer ones"
        );
        assert!(claims.synced_version().is_some());
        assert!(pods.observed() >= claims.synced_version(), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn objects_that_a_webhook_may_convert_are_listed_once_it_is_served_and_all_others_before() {
    let mut caches = Caches::default();
    caches.informer(&PODS);
    let jobs = caches.informer(&JOBS);
    let server = Arc::<Server>::default();
    let client = client(&server);
    let served: Served = [(&kruise_api::imagepulljob::KIND, "v1beta1")]
        .into_iter()
        .collect();
    let (serve, convertible) = watch::channel(false);
    let (_keep, stop) = watch::channel(false);
    let following = Following {
        stop,
        ..following(&client, &served, convertible)
    };
    let mut starting = std::pin::pin!(caches.start(&following));
    let waited = tokio::time::timeout(Duration::from_secs(30), starting.as_mut()).await;
    assert!(waited.is_err(), "the caches are not complete");
    assert_eq!(server.lists(), ["pods"]);
    assert_eq!(jobs.synced_version(), None);
    serve.send_replace(true);
    starting.await.unwrap();
    assert_eq!(server.lists(), ["pods", "imagepulljobs"]);
    assert!(jobs.synced_version().is_some());
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
    let (_watches, server, _stop) = started(&caches).await;
    assert_eq!(server.lists(), ["pods"], "one cache");
    let derived = DERIVED.load(Ordering::Relaxed);
    for pods in [other, indexed] {
        assert_eq!(pods.snapshot().by_index(&BY_UID, "u").len(), 1);
    }
    assert_eq!(DERIVED.load(Ordering::Relaxed), derived, "no scan");
}

#[tokio::test(start_paused = true)]
async fn caches_that_name_each_other_in_a_chain_or_a_circle_are_listed_at_one_version() {
    const REVISIONS: CacheId<PodView> =
        CacheId::of("revisions", ResourceId::REVISIONS).before(&["claims", "nodes"]);
    const NODES: CacheId<PodView> = CacheId::of("nodes", ResourceId::NODES).before(&["revisions"]);
    let mut caches = Caches::default();
    caches.informer(&PODS);
    let claims = caches.informer(&CLAIMS);
    let (revisions, nodes) = (caches.informer(&REVISIONS), caches.informer(&NODES));
    let (_watches, _server, _stop) = started(&caches).await;
    for synced in [
        claims.synced_version(),
        revisions.synced_version(),
        nodes.synced_version(),
    ] {
        assert_eq!(synced, Some(Version::new(8)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_of_a_resource_that_is_not_served_stays_empty_without_a_watch() {
    let mut caches = Caches::default();
    let jobs = caches.informer(&JOBS);
    let (watches, server, _stop) = started(&caches).await;
    assert!(watches.tasks.is_empty() && server.lists().is_empty());
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
    let (_watches, _server, _stop) = started(&caches).await;
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
    let (_watches, _server, _stop) = started(&caches).await;
    let target = |resource, name: &str| Target {
        resource,
        namespace: "shop".into(),
        name: name.into(),
    };
    assert_eq!(view.observed(ResourceId::PODS), caches.informer(&PODS).observed());
    assert!(view.observed(ResourceId::PODS).is_some());
    assert_eq!(view.observed(ResourceId::CLAIMS), None);
    assert!(view.present(ResourceId::PODS, "u") && !view.present(ResourceId::PODS, "other"));
    let version = |name, uid| view.version(&target(ResourceId::PODS, name), uid);
    assert_eq!(version("web", "u"), Some(Version::new(7)));
    assert_eq!(version("web", "other"), None);
    assert_eq!(version("gone", "u"), None);
}

#[tokio::test(start_paused = true)]
async fn a_cache_of_metadata_asks_the_server_for_nothing_else() {
    let accepted = Arc::<Mutex<Vec<String>>>::default();
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
    let (_serve, convertible) = watch::channel(true);
    let (_keep, stop) = watch::channel(false);
    let served = Served::default();
    let following = Following {
        stop,
        ..following(&client, &served, convertible)
    };
    let _watches = caches.start(&following).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        *accepted.lock().unwrap(),
        ["PartialObjectMetadataList", "PartialObjectMetadata"]
    );
    assert_eq!(secrets.snapshot().len(), 1);
}
