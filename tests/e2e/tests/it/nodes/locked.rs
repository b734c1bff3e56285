//! A registry that wants a password, before the data of the lab's.
//!
//! It is reached through a relay, which can break off after so many bytes: so it can go while an image is being pulled.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use kruise_e2e::manager::free_port;
use kruise_e2e::{process, wait};
use serde_json::{Value, json};

use super::OnNodes;
use crate::cluster::{LIMIT, variable};

/// Its name in the names of images.
pub(super) const HOST: &str = "locked.test";
/// Who may pull.
const USER: &str = "ann";
pub(super) const PASSWORD: &str = "right";
/// bcrypt of the password, in the form of `htpasswd -B`.
const PASSWORD_FILE: &str = "ann:$2y$05$abcdefghijklmnopqrstuu8xaCxxL82bnl.UY74PMksDxIJShppPC\n";
const NO_LIMIT: u64 = u64::MAX;

/// The registry, which ends when dropped.
pub(super) struct Locked {
    folder: PathBuf,
    port: u16,
    server: Option<Child>,
    relay: Relay,
    hosts: Vec<PathBuf>,
}

impl Locked {
    /// Starts it, and lets these nodes find it under its name.
    pub(super) fn start(on: &OnNodes, nodes: &[String]) -> Self {
        let folder = PathBuf::from(variable("KRUISE_E2E_DIR")).join("locked-registry");
        std::fs::create_dir_all(&folder).unwrap();
        let port = free_port().unwrap();
        let relay = Relay::start(port);
        let hosts = nodes
            .iter()
            .map(|node| on.runtime.folder.join(node).join("data/registries").join(HOST))
            .collect();
        let mut locked = Self {
            folder,
            port,
            server: None,
            relay,
            hosts,
        };
        locked.configure(&on.runtime.folder.join("registry/data"));
        locked.come_back();
        locked
    }

    fn configure(&self, data: &Path) {
        let password = self.folder.join("htpasswd");
        std::fs::write(&password, PASSWORD_FILE).unwrap();
        let config = json!({
            "version": "0.1",
            "storage": {"filesystem": {"rootdirectory": data}, "maintenance": {"readonly": {"enabled": true}}},
            "http": {"addr": format!("127.0.0.1:{}", self.port)},
            "auth": {"htpasswd": {"realm": "lab", "path": password}},
        });
        // JSON is YAML.
        std::fs::write(self.config(), config.to_string()).unwrap();
        let url = format!("http://127.0.0.1:{}", self.relay.port);
        let hosts =
            format!("server = \"{url}\"\n\n[host.\"{url}\"]\n  capabilities = [\"pull\", \"resolve\"]\n");
        for folder in &self.hosts {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join("hosts.toml"), &hosts).unwrap();
        }
    }

    fn config(&self) -> PathBuf {
        self.folder.join("registry.yaml")
    }

    /// Starts it, and sends whole answers.
    pub(super) fn come_back(&mut self) {
        let log = File::create(self.folder.join("registry.log")).unwrap();
        let server = Command::new("docker-registry")
            .arg("serve")
            .arg(self.config())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.server = Some(server);
        wait::until_true("the registry answers", LIMIT, || {
            Ok(TcpStream::connect(("127.0.0.1", self.port)).is_ok())
        })
        .unwrap();
        self.relay.left.store(NO_LIMIT, Ordering::SeqCst);
    }

    /// Lets this many bytes more through, waits until they are, and kills it.
    pub(super) fn go_after(&mut self, bytes: u64, begin: impl FnOnce()) {
        self.relay.left.store(bytes, Ordering::SeqCst);
        begin();
        wait::until_true("so much of an image was pulled", LIMIT, || {
            Ok(self.relay.left.load(Ordering::SeqCst) == 0)
        })
        .unwrap();
        self.kill();
    }

    /// Waits until somebody asks for it while it is away.
    pub(super) fn is_missed(&self) {
        wait::until_true("the registry is missed", LIMIT, || {
            Ok(self.relay.refused.load(Ordering::SeqCst) > 0)
        })
        .unwrap();
    }

    fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            // It may have ended.
            let _gone = process::signal(server.id(), process::Signal::Kill);
            server.wait().unwrap();
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.kill();
        for folder in &self.hosts {
            // Other images of this name are looked for where all others are.
            let _gone = std::fs::remove_dir_all(folder);
        }
    }
}

/// A secret with this password for the registry.
pub(super) fn secret(name: &str, password: &str) -> Value {
    let config = json!({"auths": {HOST: {"username": USER, "password": password}}});
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": config.to_string()},
    })
}

/// Passes bytes between clients and a server on loopback.
struct Relay {
    port: u16,
    /// Bytes of the server that are still passed on.
    left: Arc<AtomicU64>,
    /// Connections that came while the server was away.
    refused: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    accepts: Option<JoinHandle<()>>,
}

impl Relay {
    fn start(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let left = Arc::new(AtomicU64::new(NO_LIMIT));
        let refused = Arc::new(AtomicU64::new(0));
        let ends = Arc::new(AtomicBool::new(false));
        let (counts, refuses, ending) = (left.clone(), refused.clone(), ends.clone());
        let accepts = std::thread::spawn(move || {
            for client in listener.incoming() {
                if ending.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(client) = client else { continue };
                match TcpStream::connect(("127.0.0.1", server)) {
                    // Whoever cannot be served sees the connection end.
                    Ok(server) => drop(pass(&client, &server, &counts)),
                    Err(_) => drop(refuses.fetch_add(1, Ordering::SeqCst)),
                }
            }
        });
        Self {
            port,
            left,
            refused,
            ends,
            accepts: Some(accepts),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        // Wakes the thread.
        let _woken = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(accepts) = self.accepts.take() {
            let _panicked = accepts.join();
        }
    }
}

/// Both directions of a connection, each in a thread that ends with it.
fn pass(client: &TcpStream, server: &TcpStream, left: &Arc<AtomicU64>) -> std::io::Result<()> {
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || {
        let _end = std::io::copy(&mut from, &mut to);
        let _ended = to.shutdown(Shutdown::Both);
    });
    let (mut from, mut to, left) = (server.try_clone()?, client.try_clone()?, left.clone());
    std::thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let take = |left: u64| {
                Some(if left == NO_LIMIT {
                    left
                } else {
                    left.saturating_sub(read as u64)
                })
            };
            let before = left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
                .unwrap_or_default();
            if before < read as u64 || to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        for end in [&from, &to] {
            let _ended = end.shutdown(Shutdown::Both);
        }
    });
    Ok(())
}
