use std::{convert::Infallible, future::pending};

use go_compat::flags::FlagSet;
use http::{Request, Response};
use kruise_plan_kit::ResourceId;
use kruise_runtime::{Clock, client};
use kube_client::client::Body;
use prometheus_client::registry::Registry;

use super::*;
use crate::manager::FLAGS;

/// A process whose API server never answers.
fn host(stop: watch::Receiver<bool>) -> Host {
    let silent = tower::service_fn(|_: Request<Body>| pending::<Result<Response<Body>, Infallible>>());
    let settings = client::Settings {
        user_agent: "kruise-manager".into(),
        timeout: Duration::from_secs(30),
        rate: None,
        host: "here".into(),
        observer: None,
        clock: Clock::SYSTEM,
    };
    Host {
        client: Client::new(kube_client::Client::new(silent, "default"), settings),
        served: Some([(ResourceId::SIDECARSETS, "v1beta1")].into_iter().collect()),
        metrics: Metrics::register(&mut Registry::default(), &controllers::metrics()),
        identity: "one".into(),
        jitter: Arc::new(|| 7),
        ready: None,
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
    let config = Config::new(&FlagSet::new(&FLAGS).parse(line).unwrap(), &|_| None).unwrap();
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
