//! An API server on loopback, in which nobody but the agent and the test acts.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::definition::Kind;
use kruise_api::{containerrecreaterequest, nodeimage, nodepodprobe};
use kruise_sim::http::{AuditLog, Live, serve};
use kruise_sim::{Config, Method, Options, Outcome, Request, World};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(crate) const NODE_IMAGES: &str = "/apis/apps.kruise.io/v1beta1/nodeimages";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const REQUESTS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/shop/containerrecreaterequests";
pub(crate) const OLD_REQUESTS: &str =
    "/apis/apps.kruise.io/v1alpha1/namespaces/shop/containerrecreaterequests";
pub(crate) const NODE_POD_PROBES: &str = "/apis/apps.kruise.io/v1alpha1/nodepodprobes";
pub(crate) const PODS: &str = "/api/v1/namespaces/shop/pods";
pub(crate) const SECRETS: &str = "/api/v1/namespaces/kruise-daemon-config/secrets";

/// A server; ends with the value.
pub(crate) struct Api {
    pub(crate) address: SocketAddr,
    live: Arc<Live>,
    listener: Option<TcpListener>,
    tasks: JoinSet<()>,
}

impl Api {
    /// A server that accepts connections and does not answer yet. Its audit log is `audit`.
    pub(crate) async fn silent(audit: &Path) -> Self {
        let world = World::new(&Config::default(), &Options::default(), Timestamp::now()).unwrap();
        let log = std::fs::File::create(audit).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = Self {
            address: listener.local_addr().unwrap(),
            live: Live::audited(world, Some(AuditLog::new(log))),
            listener: Some(listener),
            tasks: JoinSet::new(),
        };
        for namespace in ["shop", "kruise-daemon-config"] {
            api.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}}));
        }
        api
    }

    /// Answers from now on.
    pub(crate) fn answer(&mut self) {
        let (listener, live) = (self.listener.take().unwrap(), Arc::clone(&self.live));
        self.tasks
            .spawn(async move { match serve(listener, live).await {} });
    }

    /// Stops the server: open connections break, and new ones are refused.
    pub(crate) async fn go_away(&mut self) {
        self.tasks.shutdown().await;
    }

    /// Answers again, with what it has.
    pub(crate) async fn come_back(&mut self) {
        self.listener = Some(TcpListener::bind(self.address).await.unwrap());
        self.answer();
    }

    /// Serves versions of the definition of NodeImages, or not.
    pub(crate) fn serve_versions(&self, served: &[(&str, bool)]) {
        let path = format!("{DEFINITIONS}/{}", nodeimage::KIND.name());
        let mut definition = nodeimage::KIND.manifest("kruise-system");
        for version in definition["spec"]["versions"].as_array_mut().unwrap() {
            let named = served.iter().find(|(name, _)| version["name"] == *name);
            version["served"] = named.unwrap().1.into();
        }
        // No conversion webhook runs in this test.
        let conversion = json!({"strategy": "None", "webhook": null});
        let spec = json!({"versions": definition["spec"]["versions"], "conversion": conversion});
        self.merge(&path, &json!({"spec": spec}));
    }

    /// Installs the definitions of NodeImages, NodePodProbes and ContainerRecreateRequests, these with their newest
    /// version only: there is no webhook that converts.
    pub(crate) fn define(&self) {
        self.create(DEFINITIONS, &nodeimage::KIND.manifest("kruise-system"));
        self.define_one(&containerrecreaterequest::KIND, "v1beta1");
        self.define_one(&nodepodprobe::KIND, "v1alpha1");
    }

    /// Installs them with their oldest versions only.
    pub(crate) fn define_oldest(&self) {
        for kind in [&nodeimage::KIND, &containerrecreaterequest::KIND] {
            self.define_one(kind, "v1alpha1");
        }
    }

    fn define_one(&self, kind: &Kind, wanted: &str) {
        let mut definition = kind.manifest("kruise-system");
        definition["spec"]["conversion"] = json!({"strategy": "None"});
        let versions = definition["spec"]["versions"].as_array_mut().unwrap();
        versions.retain(|version| version["name"] == wanted);
        versions[0]["storage"] = true.into();
        self.create(DEFINITIONS, &definition);
    }

    fn send(&self, request: &Request) -> (u16, Value) {
        let outcome = self.live.with_world(|world| {
            world.advance(Timestamp::now());
            let outcome = world.handle(request);
            world.advance(Timestamp::now());
            outcome
        });
        match outcome {
            Outcome::Respond(response) => (response.code, response.value()),
            _ => panic!("{} has no answer", request.path),
        }
    }

    fn accepted(&self, request: &Request) -> Value {
        let (code, value) = self.send(request);
        assert!(code < 300, "{}: {:.400}", request.path, value.to_string());
        value
    }

    pub(crate) fn create(&self, collection: &str, object: &Value) -> Value {
        self.accepted(&Request::new(Method::Post, collection, Some(object)))
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.accepted(&Request::new(Method::Get, path, None))
    }

    pub(crate) fn merge(&self, path: &str, patch: &Value) -> Value {
        let request = Request::new(Method::Patch, path, Some(patch));
        self.accepted(&request.content_type("application/merge-patch+json"))
    }

    /// The events with this reason.
    pub(crate) fn events(&self, reason: &str) -> Vec<Value> {
        let list = self.get("/api/v1/events");
        let events = list["items"].as_array().unwrap().iter();
        events
            .filter(|event| event["reason"] == reason)
            .cloned()
            .collect()
    }
}
