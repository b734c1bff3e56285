use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kruise_views::NodeView;
use kube_client::client::Body;
use tokio::time::timeout;

use super::*;
use crate::client::Settings;

/// A body without any data that never ends.
fn endless() -> UnsyncBoxBody<Bytes, Infallible> {
    let frames = stream::unfold((), |()| async {
        std::future::pending::<()>().await;
        Some((Full::new(Bytes::new()).frame().await?, ()))
    });
    StreamBody::new(frames).boxed_unsync()
}

const PAGE: &str = r#"{"metadata":{"resourceVersion":"7"},"items":[]}"#;

#[tokio::test(start_paused = true)]
async fn a_watch_without_events_is_reopened_without_a_list() {
    let (lists, watches) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let counts = std::sync::Arc::new((lists, watches));
    let seen = counts.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        let body = if is_watch {
            seen.1.fetch_add(1, Ordering::SeqCst);
            endless()
        } else {
            seen.0.fetch_add(1, Ordering::SeqCst);
            Full::new(Bytes::from_static(PAGE.as_bytes())).boxed_unsync()
        };
        async { Ok::<_, std::io::Error>(Response::new(body)) }
    });
    let settings = Settings::of_a_test(Duration::from_secs(30));
    let client = Client::new(kube_client::Client::new(service, "default"), settings);
    let scope = Scope::new("/api/v1/nodes", None);
    let informer = SharedInformer::<NodeView>::new([]);
    let (_keep, stop) = tokio::sync::watch::channel(false);
    let refresh = Notify::new();
    let following = follow(&client, &scope, &informer, &refresh, drop, || 0, stop);
    assert!(timeout(Duration::from_secs(200), following).await.is_err());
    let counts = (counts.0.load(Ordering::SeqCst), counts.1.load(Ordering::SeqCst));
    assert_eq!(counts, (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_collection_that_is_not_served_is_left_by_those_who_say_so_and_retried_by_others() {
    let requests = std::sync::Arc::new(AtomicUsize::new(0));
    let seen = requests.clone();
    let service = tower::service_fn(move |_: Request<Body>| {
        // A server that fails at first.
        let code = match seen.fetch_add(1, Ordering::SeqCst) {
            0 => 503,
            _ => 404,
        };
        let body = Full::new(Bytes::from_static(b"404 page not found")).boxed_unsync();
        async move { Response::builder().status(code).body(body) }
    });
    let settings = Settings::of_a_test(Duration::from_secs(30));
    let client = Client::new(kube_client::Client::new(service, "default"), settings);
    let scope = Scope::new("/apis/apps.kruise.io/v1beta1/nodeimages", None);
    let informer = SharedInformer::<NodeView>::new([]);
    let (_keep, stop) = tokio::sync::watch::channel(false);
    let following = follow_while_served(&client, &scope, &informer, drop, || 0, stop.clone());
    assert_eq!(
        timeout(Duration::from_secs(200), following).await,
        Ok(End::NotServed)
    );
    assert_eq!(
        requests.load(Ordering::SeqCst),
        2,
        "a failure is retried, 404 is not"
    );
    let refresh = Notify::new();
    let following = follow(&client, &scope, &informer, &refresh, drop, || 0, stop);
    assert!(timeout(Duration::from_secs(200), following).await.is_err());
    assert!(requests.load(Ordering::SeqCst) > 5);
}

/// Follows nodes of these sizes in bytes. Returns the limits of all list requests within a minute, and how many
/// nodes are cached then.
async fn paged(sizes: &'static [usize]) -> (Vec<usize>, usize) {
    let limits = std::sync::Arc::<std::sync::Mutex<Vec<usize>>>::default();
    let seen = limits.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let of = |name: &str| {
            let value = query.split('&').find_map(|pair| pair.strip_prefix(name));
            value.map_or(0, |value| value.parse::<usize>().unwrap())
        };
        let body = if query.contains("watch=true") {
            endless()
        } else {
            let (start, limit) = (of("continue="), of("limit="));
            seen.lock().unwrap().push(limit);
            let end = sizes.len().min(start + limit);
            let node = |at: usize| {
                let notes = "n".repeat(sizes[at]);
                serde_json::json!({"metadata": {"name": format!("n{at}"), "uid": format!("u{at}"),
                    "resourceVersion": "5", "annotations": {"notes": notes}}})
            };
            let next = if end < sizes.len() {
                end.to_string()
            } else {
                String::new()
            };
            let page = serde_json::json!({"metadata": {"resourceVersion": "7", "continue": next},
                "items": (start..end).map(node).collect::<Vec<_>>()});
            Full::new(Bytes::from(page.to_string())).boxed_unsync()
        };
        async move { Ok::<_, std::io::Error>(Response::new(body)) }
    });
    let settings = Settings::of_a_test(Duration::from_secs(30));
    let client = Client::new(kube_client::Client::new(service, "default"), settings);
    let scope = Scope::new("/api/v1/nodes", None);
    let informer = SharedInformer::<NodeView>::new([]);
    let (_keep, stop) = tokio::sync::watch::channel(false);
    let refresh = Notify::new();
    let following = follow(&client, &scope, &informer, &refresh, drop, || 0, stop);
    assert!(timeout(Duration::from_mins(1), following).await.is_err());
    let limits = limits.lock().unwrap().clone();
    (limits, informer.snapshot().len())
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_large_is_requested_again_with_fewer_objects() {
    let (limits, cached) = paged(&[2_000_000; 9]).await;
    // Three of them are three quarters of what fits.
    assert_eq!(limits, [500, 125, 31, 7, 1, 2, 3, 3]);
    assert_eq!(cached, 9);
    let (limits, cached) = paged(&[10, 9 << 20]).await;
    assert_eq!(
        (limits[..7].to_vec(), cached),
        (vec![500, 125, 31, 7, 1, 2, 1], 0)
    );
    assert!(limits.len() > 8, "it is tried again: {limits:?}");
}

/// Follows nodes whose first list is streamed, on a server that answers such a watch with this code and these lines,
/// and then is silent. Returns the names of the nodes after a minute, their version, and the queries of all requests.
async fn streamed(
    code: u16,
    lines: &'static str,
    closes: bool,
) -> (Vec<String>, Option<Version>, Vec<String>) {
    let queries = std::sync::Arc::<std::sync::Mutex<Vec<String>>>::default();
    let seen = queries.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let (code, body) = if query.contains("sendInitialEvents=true") {
            let frames = stream::unfold(Some(lines), move |lines| async move {
                let Some(lines) = lines else {
                    if !closes {
                        std::future::pending::<()>().await;
                    }
                    return None;
                };
                Some((
                    Full::new(Bytes::from_static(lines.as_bytes())).frame().await?,
                    None,
                ))
            });
            (code, StreamBody::new(frames).boxed_unsync())
        } else if query.contains("watch=true") {
            (200, endless())
        } else {
            let page = r#"{"metadata":{"resourceVersion":"12"},"items":[{"metadata":{"name":"paged","uid":"p","resourceVersion":"2"}}]}"#;
            (200, Full::new(Bytes::from_static(page.as_bytes())).boxed_unsync())
        };
        seen.lock().unwrap().push(query);
        async move { Ok::<_, std::io::Error>(Response::builder().status(code).body(body).unwrap()) }
    });
    let settings = Settings::of_a_test(Duration::from_secs(30));
    let client = Client::new(kube_client::Client::new(service, "default"), settings);
    let scope = Scope {
        first: FirstList::Streamed,
        ..Scope::new("/api/v1/nodes", None)
    };
    let informer = SharedInformer::<NodeView>::new([]);
    let (_keep, stop) = tokio::sync::watch::channel(false);
    let refresh = Notify::new();
    let following = follow(&client, &scope, &informer, &refresh, drop, || 0, stop);
    assert!(timeout(Duration::from_mins(1), following).await.is_err());
    let names = informer
        .snapshot()
        .iter()
        .map(|node| node.name.to_string())
        .collect();
    let queries = queries.lock().unwrap().clone();
    (names, informer.synced_version(), queries)
}

const ADDED: &str = concat!(
    r#"{"type":"ADDED","object":{"metadata":{"name":"a","uid":"a","resourceVersion":"5"}}}"#,
    "\n",
    r#"{"type":"ADDED","object":{"metadata":{"name":"b","uid":"b","resourceVersion":"3"}}}"#,
    "\n",
);

#[tokio::test(start_paused = true)]
async fn a_streamed_list_is_complete_with_its_bookmark_and_the_watch_goes_on_from_there() {
    const LINES: &str = concat!(
        r#"{"type":"ADDED","object":{"metadata":{"name":"a","uid":"a","resourceVersion":"5"}}}"#,
        "\n",
        r#"{"type":"ADDED","object":{"metadata":{"name":"b","uid":"b","resourceVersion":"3"}}}"#,
        "\n",
        r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"6"}}}"#,
        "\n",
        r#"{"type":"MODIFIED","object":{"metadata":{"name":"a","uid":"a","resourceVersion":"8"}}}"#,
        "\n",
        r#"{"type":"DELETED","object":{"metadata":{"name":"b","uid":"b","resourceVersion":"9"}}}"#,
        "\n",
        r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"10","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
        "\n",
    );
    let (names, version, queries) = streamed(200, LINES, false).await;
    assert_eq!(names, ["a"]);
    assert_eq!(version, Some(Version::new(10)));
    let [first, then] = queries.as_slice() else {
        panic!("{queries:?}");
    };
    assert!(first.contains("sendInitialEvents=true&resourceVersionMatch=NotOlderThan"));
    assert!(!first.contains("resourceVersion="), "a quorum read: {first}");
    assert!(then.contains("watch=true&resourceVersion=10"), "{then}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_the_server_does_not_stream_to_its_end_is_read_in_pages() {
    const EXPIRED: &str =
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}\n";
    for (code, lines, closes) in [
        (422, r#"{"kind":"Status","code":422}"#, true),
        (200, ADDED, true),
        (200, ADDED, false),
        (200, EXPIRED, false),
        (200, "no json\n", false),
    ] {
        let (names, version, queries) = streamed(code, lines, closes).await;
        assert_eq!(names, ["paged"], "{lines}");
        assert_eq!(version, Some(Version::new(12)));
        let [_, list, then] = queries.as_slice() else {
            panic!("{queries:?}");
        };
        assert!(list.contains("limit=500") && !list.contains("watch"), "{list}");
        assert!(then.contains("watch=true&resourceVersion=12"), "{then}");
    }
}
