//! Webhooks over TLS, called by the server on a socket.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kruise_sim::{Config, Method, Options, Request, Timings, World, http};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// A server on a socket, and a webhook that labels whatever comes.
struct Setup {
    api: SocketAddr,
    webhook: SocketAddr,
    /// The webhook's certificate, as `caBundle` has it.
    bundle: String,
    calls: Arc<AtomicUsize>,
    live: Arc<http::Live>,
}

fn certificate(names: &[&str]) -> (String, Arc<ServerConfig>) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (STANDARD.encode(made.cert.pem()), Arc::new(config))
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

impl Setup {
    async fn start() -> Self {
        let (bundle, config) = certificate(&["localhost", "hook.shop.svc"]);
        let (listener, webhook) = listen().await;
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = calls.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = TlsAcceptor::from(config.clone());
                tokio::spawn(answer_review(acceptor, stream, counter.clone()));
            }
        });
        let options = Options {
            timings: Timings::fast(),
            ..Options::default()
        };
        let world = World::new(&Config::default(), &options, Timestamp::now()).unwrap();
        let live = http::Live::new(world);
        let (listener, api) = listen().await;
        tokio::spawn(http::serve(listener, live.clone()));
        Self {
            api,
            webhook,
            bundle,
            calls,
            live,
        }
    }

    fn client(&self, path: &str) -> Value {
        json!({"url": format!("https://localhost:{}{path}", self.webhook.port()), "caBundle": self.bundle})
    }

    async fn register(&self, resource: &str, client: Value, extra: Value) {
        let mut webhook = json!({"name": "hook.example.com", "clientConfig": client, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "rules": [{"operations": ["CREATE"], "apiGroups": [""],
                "apiVersions": ["v1"], "resources": [resource]}]});
        let members = webhook.as_object_mut().unwrap();
        members.extend(extra.as_object().unwrap().clone());
        let body = json!({"metadata": {"name": "hook"}, "webhooks": [webhook]});
        self.send("DELETE", &format!("{MUTATING}/hook"), None).await;
        let (code, answer) = self.send("POST", MUTATING, Some(&body)).await;
        assert_eq!(code, 201, "{answer}");
    }

    async fn create(&self, name: &str) -> (u16, Value) {
        let map = json!({"metadata": {"name": name, "labels": {"own": "1"}}});
        self.send("POST", MAPS, Some(&map)).await
    }

    async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(self.api).await.unwrap();
        stream.write_all((head + &body).as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, serde_json::from_str(body).unwrap())
    }
}

/// One exchange of HTTP: the review in the body is allowed and its object labelled, or its objects get the version that
/// is wanted. `/slow` never answers.
async fn answer_review(acceptor: TlsAcceptor, stream: TcpStream, calls: Arc<AtomicUsize>) {
    let Ok(mut stream) = acceptor.accept(stream).await else {
        return;
    };
    let mut seen = Vec::new();
    let review: Value = loop {
        if stream.read_buf(&mut seen).await.unwrap_or(0) == 0 {
            return;
        }
        let text = String::from_utf8_lossy(&seen);
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body);
        if let Some(review) = body.and_then(|body| serde_json::from_str(body).ok()) {
            break review;
        }
    };
    calls.fetch_add(1, Ordering::SeqCst);
    if seen.starts_with(b"POST /slow?timeout=3s ") {
        std::future::pending::<()>().await;
    }
    let request = &review["request"];
    let response = if review["kind"] == "ConversionReview" {
        let mut objects = request["objects"].clone();
        for object in objects.as_array_mut().unwrap() {
            object["apiVersion"] = request["desiredAPIVersion"].clone();
        }
        json!({"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects})
    } else {
        let patch = STANDARD.encode(r#"[{"op":"add","path":"/metadata/labels/seen","value":"1"}]"#);
        json!({"uid": request["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch})
    };
    let body = json!({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response});
    let body = body.to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
}

fn message(answer: &(u16, Value)) -> &str {
    answer.1["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_webhook_is_called_by_its_url_if_its_bundle_is_trusted() {
    let setup = Setup::start().await;
    setup.register("configmaps", setup.client("/x"), json!({})).await;
    let created = setup.create("a").await;
    assert_eq!(
        (created.0, &created.1["metadata"]["labels"]["seen"]),
        (201, &json!("1"))
    );
    assert_eq!(setup.calls.load(Ordering::SeqCst), 1);

    let (other, _) = certificate(&["localhost"]);
    for bundle in [json!(other), Value::Null] {
        let mut client = setup.client("/x");
        client["caBundle"] = bundle;
        setup.register("configmaps", client, json!({})).await;
        let refused = setup.create("b").await;
        assert_eq!(refused.0, 500);
        let port = setup.webhook.port();
        assert_eq!(
            message(&refused),
            format!(
                "Internal error occurred: failed calling webhook \"hook.example.com\": failed to call webhook: Post \
                 \"https://localhost:{port}/x?timeout=10s\": tls: failed to verify certificate: x509: certificate \
                 signed by unknown authority"
            )
        );
    }
    assert_eq!(
        setup.calls.load(Ordering::SeqCst),
        1,
        "no untrusted webhook was called"
    );
}

#[tokio::test]
async fn a_slow_webhook_is_given_up_and_its_policy_decides() {
    let setup = Setup::start().await;
    let started = Instant::now();
    for (policy, code) in [("Fail", 500), ("Ignore", 201)] {
        let extra = json!({"timeoutSeconds": 3, "failurePolicy": policy});
        setup.register("configmaps", setup.client("/slow"), extra).await;
        let answer = setup.create("a").await;
        assert_eq!(answer.0, code, "{policy}: {}", answer.1);
        if policy == "Fail" {
            assert!(
                message(&answer).ends_with("context deadline exceeded"),
                "{}",
                answer.1
            );
        }
    }
    assert!(started.elapsed() >= Duration::from_secs(6), "both waited");
    assert_eq!(setup.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_service_is_called_at_its_endpoints() {
    let setup = Setup::start().await;
    let client =
        json!({"service": {"namespace": "shop", "name": "hook", "path": "/x"}, "caBundle": setup.bundle});
    setup.register("configmaps", client, json!({})).await;
    let refused = setup.create("a").await;
    let post = "failed to call webhook: Post \"https://hook.shop.svc:443/x?timeout=10s\": ";
    assert!(
        message(&refused).ends_with(&format!("{post}service \"hook\" not found")),
        "{}",
        refused.1
    );
    setup
        .send(
            "POST",
            "/api/v1/namespaces",
            Some(&json!({"metadata": {"name": "shop"}})),
        )
        .await;
    let service = json!({"metadata": {"name": "hook"}, "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 1}]}});
    let path = "/api/v1/namespaces/shop/services";
    assert_eq!(setup.send("POST", path, Some(&service)).await.0, 201);
    let refused = setup.create("a").await;
    assert!(
        message(&refused).ends_with(&format!("{post}no endpoints available for service \"hook\"")),
        "{}",
        refused.1
    );
    let slice = json!({"metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4", "ports": [{"name": "https", "port": setup.webhook.port()}],
        "endpoints": [{"addresses": ["127.0.0.9"], "conditions": {"ready": false}}, {"addresses": ["127.0.0.1"]}]});
    let path = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";
    let (code, answer) = setup.send("POST", path, Some(&slice)).await;
    assert_eq!(code, 201, "{answer}");
    let created = setup.create("a").await;
    assert_eq!(created.0, 201, "{}", created.1);
}

#[tokio::test]
async fn webhooks_of_the_clusters_own_writes_are_called_too() {
    let setup = Setup::start().await;
    setup.register("pods", setup.client("/x"), json!({})).await;
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let set = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
        "template": template}});
    let path = "/apis/apps/v1/namespaces/default/replicasets";
    assert_eq!(setup.send("POST", path, Some(&set)).await.0, 201);
    let deadline = Instant::now() + Duration::from_secs(20);
    let labelled = "/api/v1/namespaces/default/pods?labelSelector=seen=1";
    while setup.send("GET", labelled, None).await.1["items"]
        .as_array()
        .unwrap()
        .len()
        < 2
    {
        assert!(Instant::now() < deadline, "no pods");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let count = setup.live.with_world(|world| {
        let request = Request::new(Method::Get, "/api/v1/pods", None);
        let list = world.handle(&request).response().unwrap().value();
        list["items"].as_array().unwrap().len()
    });
    assert_eq!(count, 2, "none was created twice");
}

#[tokio::test]
async fn a_watch_shows_what_a_webhook_converts() {
    let setup = Setup::start().await;
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let definition = json!({"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com",
        "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
            "clientConfig": setup.client("/convert")}},
        "versions": [version("v1", false), version("v2", true)]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, answer) = setup.send("POST", path, Some(&definition)).await;
    assert_eq!(code, 201, "{answer}");
    let things = |version: &str| format!("/apis/example.com/{version}/namespaces/default/things");
    let thing = |name: &str| json!({"metadata": {"name": name}});
    setup.send("POST", &things("v2"), Some(&thing("a"))).await;
    let mut watch = TcpStream::connect(setup.api).await.unwrap();
    let head = format!(
        "GET {}?watch=true HTTP/1.1\r\nhost: localhost\r\n\r\n",
        things("v1")
    );
    watch.write_all(head.as_bytes()).await.unwrap();
    for name in ["b", "c"] {
        let (code, answer) = setup.send("POST", &things("v1"), Some(&thing(name))).await;
        assert_eq!(code, 201, "{answer}");
    }
    let mut seen = Vec::new();
    let read = async {
        while String::from_utf8_lossy(&seen)
            .matches("\"type\":\"ADDED\"")
            .count()
            < 3
        {
            watch.read_buf(&mut seen).await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(20), read).await.unwrap();
    let text = String::from_utf8_lossy(&seen);
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let events: Vec<Value> = lines.filter(Value::is_object).collect();
    let names: Vec<&Value> = events
        .iter()
        .map(|event| &event["object"]["metadata"]["name"])
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(
        events
            .iter()
            .all(|event| event["object"]["apiVersion"] == "example.com/v1")
    );
}
