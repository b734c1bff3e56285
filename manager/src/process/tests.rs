use std::{convert::Infallible, future::pending};

use bytes::Bytes;
use go_compat::flags::FlagSet;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use kruise_frame::gates::Gates;
use kruise_kinds::ALL;
use kruise_plan_kit::ResourceId;
use kruise_runtime::{Clock, client};
use kube_client::client::Body;
use prometheus_client::registry::Registry;

use super::*;
use crate::FLAGS;

fn client(server: kube_client::Client) -> Client {
    let settings = client::Settings {
        user_agent: "kruise-manager".into(),
        timeout: Duration::from_secs(30),
        rate: None,
        host: "here".into(),
        observer: None,
        clock: Clock::SYSTEM,
    };
    Client::new(server, settings)
}

/// A process whose API server never answers.
fn host(stop: watch::Receiver<bool>) -> Host {
    let silent = tower::service_fn(|_: Request<Body>| pending::<Result<Response<Body>, Infallible>>());
    Host {
        client: client(kube_client::Client::new(silent, "default")),
        served: Some([(&kruise_api::sidecarset::KIND, "v1beta1")].into_iter().collect()),
        metrics: Metrics::register(&mut Registry::default(), &super::super::metrics()),
        identity: "one".into(),
        jitter: Arc::new(|| 7),
        ready: None,
        dry_run: None,
        rehearsal: None,
        stop,
    }
}

/// Stops a process while its listeners `open`, or while it waits for the first lists, and answers a request after that.
async fn stopped_early(opens: bool) {
    let (stop, stopping) = watch::channel(false);
    let (opened, mut is_opened) = oneshot::channel();
    let (answer, answered) = oneshot::channel::<()>();
    let open = move |_, _, mut closing: watch::Receiver<bool>| async move {
        let mut tasks = JoinSet::new();
        let mut until_closing = closing.clone();
        tasks.spawn(async move {
            let _ = closing.wait_for(|closing| *closing).await;
            answered.await.expect("the request in flight is not dropped");
        });
        opened.send(()).unwrap();
        if !opens {
            let _ = until_closing.wait_for(|closing| *closing).await;
        }
        Ok(tasks)
    };
    let line = ["--enable-leader-election=false"];
    let config = Config::new(
        &FlagSet::new(&FLAGS).parse(line).unwrap(),
        kruise_kinds::limits(),
        kruise_kinds::kinds(),
        &|_| None,
    )
    .unwrap();
    let running = tokio::spawn(async move { process(&config, host(stopping), open).await });
    (&mut is_opened).await.unwrap();
    // All that can happen before the stop has happened when virtual time passes.
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.send(true).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!running.is_finished());
    answer.send(()).unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_first_lists_waits_for_requests_in_flight() {
    stopped_early(true).await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_listeners_open_waits_for_requests_in_flight() {
    stopped_early(false).await;
}

/// A process whose API server has nothing but empty lists, and whose watches stay open, with the paths of its requests.
fn host_with_lists(stop: watch::Receiver<bool>) -> (Host, Arc<std::sync::Mutex<Vec<String>>>) {
    let requested = Arc::<std::sync::Mutex<Vec<String>>>::default();
    let seen = requested.clone();
    let server = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default();
        let is_watch = query.contains("watch=true");
        seen.lock().unwrap().push(request.uri().path().to_owned());
        async move {
            if is_watch {
                pending::<()>().await;
            }
            let list = r#"{"metadata":{"resourceVersion":"5"},"items":[]}"#;
            let body: UnsyncBoxBody<Bytes, Infallible> = Full::from(list).boxed_unsync();
            Ok::<_, Infallible>(Response::new(body))
        }
    });
    let client = client(kube_client::Client::new(server, "default"));
    let host = Host { client, ..host(stop) };
    (host, requested)
}

#[tokio::test(start_paused = true)]
async fn kinds_are_listed_once_the_conversion_webhook_is_served_and_all_else_while_it_is_registered() {
    let (stop, stopping) = watch::channel(false);
    let (mut host, requested) = host_with_lists(stopping);
    let (ready, mut is_ready) = oneshot::channel();
    host.ready = Some(ready);
    let (register, registered) = oneshot::channel::<()>();
    let open = move |_, _, mut closing: watch::Receiver<bool>| async move {
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let _ = closing.wait_for(|closing| *closing).await;
        });
        registered.await.unwrap();
        Ok(tasks)
    };
    let line = ["--enable-leader-election=false"];
    let config = Config::new(
        &FlagSet::new(&FLAGS).parse(line).unwrap(),
        kruise_kinds::limits(),
        kruise_kinds::kinds(),
        &|_| None,
    )
    .unwrap();
    let running = tokio::spawn(async move { process(&config, host, open).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let has = |path: &str| requested.lock().unwrap().iter().any(|one| one == path);
    let (pods, sets) = ("/api/v1/pods", "/apis/apps.kruise.io/v1beta1/sidecarsets");
    assert!(has(pods) && !has(sets));
    assert!(is_ready.try_recv().is_err(), "reviews need the SidecarSets");
    register.send(()).unwrap();
    is_ready.await.unwrap();
    assert!(has(sets));
    stop.send(true).unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_first_list_that_fails_while_the_listeners_open_ends_the_process_in_order() {
    let (_stop, stopping) = watch::channel(false);
    let open = |_, _, mut closing: watch::Receiver<bool>| async move {
        let _ = closing.wait_for(|closing| *closing).await;
        Ok(JoinSet::new())
    };
    let line = ["--enable-leader-election=false"];
    let config = Config::new(
        &FlagSet::new(&FLAGS).parse(line).unwrap(),
        kruise_kinds::limits(),
        kruise_kinds::kinds(),
        &|_| None,
    )
    .unwrap();
    let ended = process(&config, host(stopping), open).await.unwrap_err();
    assert!(ended.to_string().contains("did not arrive within"), "{ended}");
}

#[tokio::test]
async fn a_resource_of_a_gate_is_asked_for_once_and_without_a_namespace_if_it_is_in_none() {
    let requested = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = requested.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        let code = if path.ends_with("/storageclasses") {
            403
        } else {
            200
        };
        seen.lock().unwrap().push(path);
        let body: UnsyncBoxBody<Bytes, Infallible> = Full::from("{}").boxed_unsync();
        async move { Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap()) }
    });
    let client = client(kube_client::Client::new(service, "default"));
    let gates = "StatefulSetAutoResizePVCGate=true,PreDownloadImageForInPlaceUpdate=true";
    let gates = Gates::parse(gates, "").unwrap();
    let served: Served = [(&kruise_api::imagepulljob::KIND, "v1beta1")]
        .into_iter()
        .collect();
    let facts = server_facts(&gates, ALL, &client, &served, Some("shop"))
        .await
        .unwrap();
    assert_eq!(facts.denied, [ResourceId::STORAGE_CLASSES].into());
    let mut requested = requested.lock().unwrap().clone();
    requested.sort();
    let expected = [
        "/api/v1/namespaces/shop/secrets",
        "/apis/apps.kruise.io/v1beta1/namespaces/shop/imagepulljobs",
        "/apis/storage.k8s.io/v1/storageclasses",
    ];
    assert_eq!(requested, expected);
}
