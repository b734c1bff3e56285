//! Restarts of managers behind a balancer that follows their readiness, as a Service does.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::SendRequest;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{interval, sleep};

use crate::h2;
use crate::managers::{Cluster, Manager, is_ready};

const RESTARTS: usize = 20;
/// How long the managers serve after the signal.
const DELAY: Duration = Duration::from_millis(1500);
/// Time between two probes of the balancer: for so long it sends connections to a manager that is not ready any more.
const PROBES: Duration = Duration::from_millis(100);
/// A restart does not count if the machine kept a probe waiting for longer than this. A balancer that learns of the end
/// too late shows nothing about the manager.
const STALL: Duration = Duration::from_secs(1);
const SERVICE: &str = "kruise-webhook-service.kruise-system.svc";

/// A review of the dry-run creation of a pod that a SidecarSet matches.
fn review(number: u64) -> Bytes {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("web-{number}"), "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}});
    let request = json!({"uid": format!("uid-{number}"), "operation": "CREATE", "namespace": "default", "object": pod,
        "dryRun": true, "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"}});
    let review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request});
    review.to_string().into()
}

/// Forwards connections to the managers that were ready at the last probe. Connections that exist stay where they are.
struct Balancer {
    address: SocketAddr,
    /// Where webhooks and probes of a manager are, and the result of the last probe.
    backends: Vec<(SocketAddr, SocketAddr, AtomicBool)>,
    next: AtomicUsize,
    longest_pause: Mutex<Duration>,
}

impl Balancer {
    async fn start(managers: &[Manager]) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let balancer = Arc::new(Self {
            address: listener.local_addr().unwrap(),
            backends: managers
                .iter()
                .map(|manager| (manager.webhooks, manager.health, AtomicBool::new(false)))
                .collect(),
            next: AtomicUsize::new(0),
            longest_pause: Mutex::default(),
        });
        let probing = balancer.clone();
        tokio::spawn(async move {
            let mut ticks = interval(PROBES);
            let mut last = Instant::now();
            loop {
                ticks.tick().await;
                for (_, health, state) in &probing.backends {
                    let health = *health;
                    let probe = tokio::task::spawn_blocking(move || is_ready(health));
                    state.store(probe.await.unwrap(), Ordering::SeqCst);
                }
                let mut longest = probing.longest_pause.lock().unwrap();
                *longest = last.elapsed().max(*longest);
                last = Instant::now();
            }
        });
        let forwarding = balancer.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let forwarding = forwarding.clone();
                tokio::spawn(async move { forwarding.forward(client).await });
            }
        });
        balancer
    }

    async fn forward(&self, mut client: TcpStream) -> Option<()> {
        let ready = || {
            self.backends
                .iter()
                .filter(|(_, _, state)| state.load(Ordering::SeqCst))
        };
        let at = self.next.fetch_add(1, Ordering::SeqCst) % ready().count().max(1);
        let (address, ..) = ready().nth(at)?;
        let mut manager = TcpStream::connect((Ipv4Addr::LOCALHOST, address.port()))
            .await
            .ok()?;
        let _closed = tokio::io::copy_bidirectional(&mut client, &mut manager).await;
        Some(())
    }

    fn is_sent_to(&self, index: usize) -> bool {
        self.backends[index].2.load(Ordering::SeqCst)
    }
}

/// An API server: it keeps a connection until the manager closes it, and sends a review again if it is certain that the
/// manager has not read it.
struct Caller {
    balancer: SocketAddr,
    config: Arc<rustls::ClientConfig>,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Caller {
    /// Sends one review. The error says how it was refused.
    async fn send(&mut self, body: &Bytes) -> Result<(), String> {
        let text = |error: hyper::Error| format!("{error:?}");
        loop {
            let mut connection = if let Some(connection) = self.connection.take() {
                connection
            } else {
                let name = SERVICE.try_into().unwrap();
                let stream = h2::connect(self.balancer, name, self.config.clone()).await;
                let stream = stream.map_err(|error| error.to_string())?;
                h2::client(stream).await.map_err(text)?
            };
            if connection.ready().await.is_err() {
                // The manager has closed it between two reviews.
                continue;
            }
            let request = Request::post(format!("https://{SERVICE}/mutate-pod"))
                .header("content-type", "application/json")
                .body(Full::new(body.clone()))
                .unwrap();
            let response = match connection.send_request(request).await {
                Ok(response) => response,
                Err(error) if error.is_canceled() || is_unread(&error) => continue,
                Err(error) => return Err(text(error)),
            };
            let status = response.status();
            let body = response.into_body().collect().await.map_err(text)?.to_bytes();
            let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
            let patch = answer["response"]["patch"].as_str().unwrap_or_default();
            let patch = String::from_utf8(STANDARD.decode(patch).unwrap()).unwrap();
            if status != 200 || answer["response"]["allowed"] != true || !patch.contains("agent:1") {
                return Err(format!("{status}: {}", String::from_utf8_lossy(&body)));
            }
            self.connection = Some(connection);
            return Ok(());
        }
    }
}

/// Was the request sent after the last one that the manager reads on this connection, as it says in GOAWAY? A
/// server handles those before it to their end, and clients send those after it again (RFC 9113, 6.8).
fn is_unread(error: &hyper::Error) -> bool {
    format!("{error:?}").contains("GoAway(b\"\", NO_ERROR, Remote)")
}

/// Results of all callers.
#[derive(Default)]
struct Results {
    allowed: AtomicU64,
    refused: Mutex<Vec<String>>,
}

/// Sends reviews for ever. A `new` API server opens a connection for each.
async fn call(mut caller: Caller, new: bool, results: Arc<Results>) {
    for number in 0.. {
        if new {
            caller.connection = None;
        }
        match caller.send(&review(number)).await {
            Ok(()) => drop(results.allowed.fetch_add(1, Ordering::SeqCst)),
            Err(refused) => results.refused.lock().unwrap().push(refused),
        }
        sleep(Duration::from_millis(10)).await;
    }
}

#[test]
#[ignore = "a measurement: cargo test -p kruise --test it -- --ignored measurements::"]
fn twenty_restarts_of_two_managers_in_turn_refuse_no_review() {
    let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "agent", "image": "agent:1"}]}});
    let cluster = Cluster::with(&[("/apis/apps.kruise.io/v1beta1/sidecarsets", set)]);
    let delay = format!("--shutdown-delay-duration={}ms", DELAY.as_millis());
    let mut managers = [
        Manager::start(&cluster, &[&delay]),
        Manager::start(&cluster, &[&delay]),
    ];
    managers.iter_mut().for_each(Manager::wait_ready);

    let balancer = cluster.runtime.block_on(Balancer::start(&managers));
    let results = Arc::new(Results::default());
    let until_sent_to_all = || {
        cluster.until("the balancer sends to both", |_| {
            (0..2).all(|index| balancer.is_sent_to(index))
        });
    };
    until_sent_to_all();
    let config = h2::config(&cluster.authority());
    for new in [false, false, true] {
        let caller = Caller {
            balancer: balancer.address,
            config: config.clone(),
            connection: None,
        };
        cluster.runtime.spawn(call(caller, new, results.clone()));
    }
    let allowed = || results.allowed.load(Ordering::SeqCst);

    let mut counted = 0;
    for round in 0..5 * RESTARTS {
        let manager = &mut managers[round % 2];
        *balancer.longest_pause.lock().unwrap() = Duration::ZERO;
        manager.terminate();
        assert_eq!(manager.wait_end(), Some(0), "{}", manager.log());
        manager.start_again();
        until_sent_to_all();
        let before = allowed();
        cluster.until("reviews are answered", |_| allowed() > before + 5);
        let refused = std::mem::take(&mut *results.refused.lock().unwrap());
        if *balancer.longest_pause.lock().unwrap() < STALL {
            assert!(refused.is_empty(), "after {counted} restarts: {refused:#?}");
            counted += 1;
        }
        if counted == RESTARTS {
            println!("{} reviews in {} restarts", allowed(), round + 1);
            return;
        }
    }
    // Restarts in which the machine stalled say nothing about the managers.
    panic!("the machine stalls too often: only {counted} restarts of {RESTARTS} count");
}
