//! Managers as processes, on an API server in the process of the test. They are registered by their Service, as in a
//! cluster; reviews are sent by the tests themselves.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kruise_sim::{
    Method, Options, Request, World,
    http::{Live, serve},
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::command::{Folder, free_address};
use crate::process::{LIMIT, send, wait_for_exit};

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
pub(crate) const SECRET: &str = "/api/v1/namespaces/kruise-system/secrets/kruise-webhook-certs";
const SYSTEM: &str = "kruise-system";
const MERGE: &str = "application/merge-patch+json";

/// An API server.
pub(crate) struct Cluster {
    pub(crate) runtime: Runtime,
    api: Arc<Live>,
    address: SocketAddr,
}

impl Cluster {
    /// With all that `kruise manifests` installs, but these definitions.
    pub(crate) fn without(absent: &[&str]) -> Self {
        Self::start(absent, &[])
    }

    /// With all that `kruise manifests` installs, and before its webhooks these objects, each at its path.
    pub(crate) fn with(objects: &[(&str, Value)]) -> Self {
        Self::start(&[], objects)
    }

    fn start(absent: &[&str], objects: &[(&str, Value)]) -> Self {
        let runtime = Runtime::new().unwrap();
        let config = kruise_sim::Config {
            seed: 1,
            ..kruise_sim::Config::default()
        };
        let world = World::new(&config, &Options::default(), Timestamp::now()).unwrap();
        let api = Live::new(world);
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(serve(listener, api.clone()));
        let cluster = Self {
            runtime,
            api,
            address,
        };
        cluster.create(
            "/api/v1/namespaces",
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}),
        );
        for definition in kruise_kinds::definitions(SYSTEM) {
            if !absent.contains(&definition["metadata"]["name"].as_str().unwrap()) {
                cluster.create(DEFINITIONS, &definition);
            }
        }
        cluster.api.with_world(|world| world.advance(Timestamp::now()));
        for (path, object) in objects {
            cluster.create(path, object);
        }
        for configuration in
            kruise_admission::manifests::configurations(kruise_kinds::webhooks(), SYSTEM, false)
        {
            let plural = configuration["kind"].as_str().unwrap().to_lowercase();
            let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}s");
            cluster.create(&path, &configuration);
        }
        cluster
    }

    pub(crate) fn create(&self, path: &str, object: &Value) {
        self.request(&Request::new(Method::Post, path, Some(object)));
    }

    pub(crate) fn patch(&self, path: &str, patch: &Value) {
        self.request(&Request::new(Method::Patch, path, Some(patch)).content_type(MERGE));
    }

    pub(crate) fn delete(&self, path: &str) {
        self.request(&Request::new(Method::Delete, path, None));
    }

    /// The object; null if there is none.
    pub(crate) fn get(&self, path: &str) -> Value {
        let request = Request::new(Method::Get, path, None);
        let response = self
            .api
            .with_world(|world| world.handle(&request))
            .response()
            .unwrap();
        if response.code == 404 {
            Value::Null
        } else {
            response.value()
        }
    }

    /// The authority that the certificates of the managers' Secret are from, PEM.
    pub(crate) fn authority(&self) -> Vec<u8> {
        let secret = self.get(SECRET);
        STANDARD
            .decode(secret["data"]["ca-cert.pem"].as_str().unwrap())
            .unwrap()
    }

    /// Polls until it holds.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < LIMIT, "not in time: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn request(&self, request: &Request) {
        let response = self
            .api
            .with_world(|world| world.handle(request))
            .response()
            .unwrap();
        assert!(response.code < 300, "{}", response.value());
        // Such as for a rule of a definition that the embedded API does not evaluate.
        assert_eq!(response.warnings, [""; 0]);
    }
}

/// A manager that is started again at the same ports. It is killed when it is dropped.
pub(crate) struct Manager {
    folder: Folder,
    flags: Vec<String>,
    host: Option<String>,
    pub(crate) webhooks: SocketAddr,
    pub(crate) health: SocketAddr,
    child: Child,
}

impl Manager {
    /// Starts a manager with further flags; does not wait until it is ready.
    pub(crate) fn start(cluster: &Cluster, flags: &[&str]) -> Self {
        let flags = [&["--metrics-addr=0"], flags].concat();
        Self::at(cluster.address, None, &flags)
    }

    /// Starts a manager of this API server. With a host, which may name a port, the server calls its webhooks
    /// there, and not at the Service. Managers of one host share their certificates.
    pub(crate) fn at(api: SocketAddr, host: Option<String>, flags: &[&str]) -> Self {
        let folder = Folder::new();
        let (webhooks, health) = (free_address(), free_address());
        let mut all = vec![folder.kubeconfig(api), format!("--health-probe-addr={health}")];
        all.extend(flags.iter().map(ToString::to_string));
        let child = spawn(&folder, &all, (host.as_deref(), webhooks));
        Self {
            folder,
            flags: all,
            host,
            webhooks,
            health,
            child,
        }
    }

    /// Starts it again after it has ended.
    pub(crate) fn start_again(&mut self) {
        self.child = spawn(&self.folder, &self.flags, (self.host.as_deref(), self.webhooks));
    }

    pub(crate) fn wait_ready(&mut self) {
        let start = Instant::now();
        while !is_ready(self.health) {
            assert_eq!(self.child.try_wait().unwrap(), None, "{}", self.log());
            assert!(start.elapsed() < LIMIT, "not ready: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        send(self.child.id(), "TERM");
    }

    /// Waits for the end; returns the exit code.
    pub(crate) fn wait_end(&mut self) -> Option<i32> {
        wait_for_exit(&mut self.child)
    }

    /// Largest resident memory since the start, in bytes.
    pub(crate) fn peak_memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
    }

    /// All that it and its predecessors have logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(log(&self.folder)).unwrap_or_default()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn log(folder: &Folder) -> PathBuf {
    folder.path().join("log")
}

fn spawn(folder: &Folder, flags: &[String], (host, webhooks): (Option<&str>, SocketAddr)) -> Child {
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(log(folder))
        .unwrap();
    Command::new(env!("CARGO_BIN_EXE_kruise"))
        .arg("manager")
        .args(flags)
        .env_clear()
        .env("HOME", folder.path())
        .env("POD_NAMESPACE", SYSTEM)
        // Whatever the machine has.
        .env("GOMEMLIMIT", "512MiB")
        .envs(host.map(|host| ("WEBHOOK_HOST", host)))
        .env("WEBHOOK_CERT_WRITER", "secret")
        .env("WEBHOOK_PORT", webhooks.port().to_string())
        .env("WEBHOOK_CERT_DIR", folder.certificates())
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// The readiness probe of a kubelet.
pub(crate) fn is_ready(health: SocketAddr) -> bool {
    let probe = || {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, health.port())).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        stream
            .write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .ok()?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).ok()?;
        Some(head.ends_with(b" 200"))
    };
    probe().unwrap_or(false)
}
