//! A manager's process on an embedded API, among many SidecarSets: what its doors would answer, without doors.

use std::{sync::Arc, time::Duration};

use go_compat::flags::FlagSet;
use jiff::Timestamp;
use kruise::manager::{Config, FLAGS, Host, Routes, process};
use kruise_runtime::{Client, Clock, client, metrics::Metrics};
use kruise_server::{
    review::{Response, Review},
    webhook::{Decision, Handler, Reviewer},
};
use kruise_sim::{
    Method, Options, Request, World,
    http::{Live, serve},
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    runtime::Runtime,
    sync::{oneshot, watch},
    task::JoinSet,
};

use crate::among::{self, SETS};

/// Where the webhook for pods is.
pub const PATH: &str = "/mutate-pod";

/// A process that is up: its watches are established and its caches are full.
pub struct Process {
    api: Arc<Live>,
    /// All its webhooks.
    pub routes: Routes,
    _stop: watch::Sender<bool>,
}

/// One of the sets; it looks at labels of namespaces, too.
fn set(index: usize) -> Value {
    let mut set = among::set(index);
    set["spec"]["namespaceSelector"] = json!({"matchLabels": {"team": "shop"}});
    set
}

/// The body of a review of a new pod with three containers of ten variables each. Each number is another pod.
pub fn review(number: usize) -> Vec<u8> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("web-{number}"), "namespace": "shop", "labels": {"app": "web"}},
        "spec": among::pod_spec(&format!("value of {number}")),
    });
    let request = json!({"uid": format!("uid-{number}"), "operation": "CREATE", "namespace": "shop", "object": pod,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"}});
    let review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request});
    review.to_string().into_bytes()
}

impl Process {
    /// Starts API and manager.
    pub async fn start() -> Self {
        // Few changes are kept, so that what grows is not the API's memory.
        let config = kruise_sim::Config { seed: 1, window: 100 };
        let world = World::new(&config, &Options::default(), Timestamp::now()).unwrap();
        let api = Live::new(world);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for definition in kruise_api::kinds::definitions("kruise-system") {
            post(&api, definitions, &definition);
        }
        for name in ["kruise-system", "shop"] {
            let labels = json!({"team": name});
            post(
                &api,
                "/api/v1/namespaces",
                &json!({"metadata": {"name": name, "labels": labels}}),
            );
        }
        api.with_world(|world| world.advance(Timestamp::now()));
        for index in 0..SETS {
            post(&api, "/apis/apps.kruise.io/v1beta1/sidecarsets", &set(index));
        }
        tokio::spawn(serve(listener, api.clone()));

        let url = format!("http://{address}").parse().unwrap();
        let client = kube_client::Client::try_from(kube_client::Config::new(url)).unwrap();
        let (stop, stopped) = watch::channel(false);
        let (ready, is_ready) = oneshot::channel();
        let (opened, routes) = oneshot::channel();
        let host = Host {
            client: Client::new(client, settings()),
            served: None,
            metrics: Metrics::register(
                &mut prometheus_client::registry::Registry::default(),
                &kruise::controllers::metrics(),
            ),
            identity: "one".into(),
            jitter: Arc::new(|| 7),
            ready: Some(ready),
            stop: stopped,
        };
        tokio::spawn(async move {
            // Nobody else leads, and a busy machine renews late.
            let line = ["--enable-leader-election=false"];
            let values = FlagSet::new(&FLAGS).parse(line).unwrap();
            let config = Config::new(&values, &|_| None).unwrap();
            let open = |routes, _, mut closing: watch::Receiver<bool>| {
                assert!(opened.send(routes).is_ok(), "somebody waits for them");
                let mut doors = JoinSet::new();
                doors.spawn(async move {
                    let _ = closing.wait_for(|closing| *closing).await;
                });
                std::future::ready(Ok(doors))
            };
            process(&config, host, open).await.unwrap();
        });
        let routes = routes.await.unwrap();
        is_ready.await.unwrap();
        let process = Self {
            api,
            routes,
            _stop: stop,
        };
        while !process.is_settled() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        process
    }

    /// Has every set been looked at, and what came of it been written?
    fn is_settled(&self) -> bool {
        let list = Request::new(Method::Get, "/apis/apps.kruise.io/v1beta1/sidecarsets", None);
        let sets = send(&self.api, &list);
        let sets = sets["items"].as_array().unwrap();
        sets.iter()
            .all(|set| set["status"]["observedGeneration"] == set["metadata"]["generation"])
    }

    /// Answers the webhook of pods.
    pub fn reviewer(&self) -> Arc<Reviewer> {
        match self.routes.get(PATH) {
            Some(Handler::Review(reviewer)) => reviewer.clone(),
            _ => panic!("pods are not reviewed"),
        }
    }

    /// Changes one of the sets and a namespace: caches follow.
    pub fn stir(&self, number: usize) {
        let name = format!("s{:03}", number % SETS);
        let path = format!("/apis/apps.kruise.io/v1beta1/sidecarsets/{name}");
        let stirred = json!({"metadata": {"annotations": {"stirred": number.to_string()}}});
        send(
            &self.api,
            &Request::new(Method::Patch, &path, Some(&stirred)).content_type("application/merge-patch+json"),
        );
        let path = "/api/v1/namespaces/kruise-system";
        let stirred = json!({"metadata": {"labels": {"stirred": number.to_string()}}});
        send(
            &self.api,
            &Request::new(Method::Patch, path, Some(&stirred)).content_type("application/merge-patch+json"),
        );
    }
}

/// The answer to a body, as the socket sends it.
pub fn answer(runtime: &Runtime, reviewer: &Reviewer, body: &[u8]) -> String {
    let review = Review::decode(body).unwrap();
    let reply = review.reply.clone();
    let response = match reviewer(review) {
        Decision::Now(response) => response,
        Decision::Later(response) => runtime.block_on(response),
    };
    assert!(
        matches!(&response, Response::Allow { patch: Some(_), .. }),
        "not injected: {response:?}"
    );
    reply.answer(&response).to_string()
}

fn settings() -> client::Settings {
    client::Settings {
        user_agent: "kruise-manager".into(),
        timeout: Duration::from_secs(30),
        rate: None,
        host: "here".into(),
        observer: None,
        clock: Clock::SYSTEM,
    }
}

fn post(api: &Live, path: &str, body: &Value) {
    send(api, &Request::new(Method::Post, path, Some(body)));
}

fn send(api: &Live, request: &Request) -> Value {
    let response = api.with_world(|world| world.handle(request)).response().unwrap();
    assert!(response.code < 300, "{}", response.value());
    response.value()
}
