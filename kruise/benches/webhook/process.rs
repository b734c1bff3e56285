//! A manager's process on a simulated API server with many SidecarSets. Its webhook handlers are called without
//! listeners.

use std::{sync::Arc, time::Duration};

use go_compat::flags::FlagSet;
use jiff::Timestamp;
use kruise_frame::config::Config;
use kruise_manager::{FLAGS, Host, Routes, process};
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

/// A running process: its watches are established and its caches are synced.
pub struct Process {
    api: Arc<Live>,
    /// All its webhooks.
    pub routes: Routes,
    _stop: watch::Sender<bool>,
}

/// One of the SidecarSets. It has a namespace selector, too.
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
    /// Starts API server and manager.
    pub async fn start() -> Self {
        // A short watch window, so that memory of the API server does not grow.
        let config = kruise_sim::Config {
            window: 100,
            ..kruise_sim::Config::default()
        };
        let world = World::new(&config, &Options::default(), Timestamp::now()).unwrap();
        let api = Live::new(world);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for definition in kruise_kinds::definitions("kruise-system") {
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
                &kruise_manager::metrics(),
            ),
            identity: "one".into(),
            jitter: Arc::new(|| 7),
            ready: Some(ready),
            dry_run: None,
            rehearsal: None,
            stop: stopped,
        };
        tokio::spawn(async move {
            // There is no other manager, and a busy machine renews its lease too late.
            let line = ["--enable-leader-election=false"];
            let values = FlagSet::new(&FLAGS).parse(line).unwrap();
            let config =
                Config::new(&values, kruise_kinds::limits(), kruise_kinds::kinds(), &|_| None).unwrap();
            let open = |routes, _, mut closing: watch::Receiver<bool>| {
                assert!(opened.send(routes).is_ok(), "the receiver is alive");
                let mut tasks = JoinSet::new();
                tasks.spawn(async move {
                    let _ = closing.wait_for(|closing| *closing).await;
                });
                std::future::ready(Ok(tasks))
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

    /// True if every SidecarSet was reconciled and its status written.
    fn is_settled(&self) -> bool {
        let list = Request::new(Method::Get, "/apis/apps.kruise.io/v1beta1/sidecarsets", None);
        let sets = send(&self.api, &list);
        let sets = sets["items"].as_array().unwrap();
        sets.iter()
            .all(|set| set["status"]["observedGeneration"] == set["metadata"]["generation"])
    }

    /// The reviewer of the pod webhook.
    pub fn reviewer(&self) -> Arc<Reviewer> {
        match self.routes.get(PATH) {
            Some(Handler::Review(reviewer)) => reviewer.clone(),
            _ => panic!("pods are not reviewed"),
        }
    }

    /// Changes one SidecarSet and one namespace, so that the caches receive events.
    pub fn change_objects(&self, number: usize) {
        let name = format!("s{:03}", number % SETS);
        let path = format!("/apis/apps.kruise.io/v1beta1/sidecarsets/{name}");
        let patch = json!({"metadata": {"annotations": {"changed": number.to_string()}}});
        send(
            &self.api,
            &Request::new(Method::Patch, &path, Some(&patch)).content_type("application/merge-patch+json"),
        );
        let path = "/api/v1/namespaces/kruise-system";
        let patch = json!({"metadata": {"labels": {"changed": number.to_string()}}});
        send(
            &self.api,
            &Request::new(Method::Patch, path, Some(&patch)).content_type("application/merge-patch+json"),
        );
    }
}

/// The response to a request body, as the server sends it.
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
