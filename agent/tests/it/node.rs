//! A node: its runtime, its agent, and the API server that it belongs to.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cri::Endpoint;
use kruise_agent::{Error, Settings, run};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::api::{Api, NODE_IMAGES};
use crate::runtime::Runtime;

/// A folder of a test's own. It is removed with the value.
pub(crate) struct Folder(PathBuf);

static FOLDERS: AtomicU32 = AtomicU32::new(0);

impl Folder {
    fn new() -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("kruise-agent-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// A node called `n1`.
pub(crate) struct Node {
    pub(crate) folder: Folder,
    pub(crate) api: Api,
    pub(crate) runtime: Runtime,
    pub(crate) agent: Agent,
}

/// A running agent.
pub(crate) struct Agent {
    /// Of metrics and health.
    pub(crate) address: SocketAddr,
    stop: watch::Sender<bool>,
    ended: JoinHandle<Result<(), Error>>,
}

/// Settings for a node whose API server and socket are those of a test.
pub(crate) fn settings(folder: &Folder, api: &Api) -> Settings {
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", api.address)}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}]});
    std::fs::write(folder.file("kubeconfig"), kubeconfig.to_string()).unwrap();
    let folder = folder.path();
    Settings {
        node: "n1".into(),
        kubeconfig: Some(folder.join("kubeconfig")),
        addr: None,
        pace: (1000.0, 1000),
        sockets: vec![Endpoint::under(folder, "cri.sock")],
        plugin_config: folder.join("plugins.yaml"),
        plugin_folder: folder.to_owned(),
        home: Some(folder.to_owned()),
        max_pulls: None,
        // The disk of the machine decides nothing here.
        min_free_percent: 0,
        watches_pods: true,
        env_from_metadata: true,
        runs_probes: true,
    }
}

impl Agent {
    pub(crate) async fn start(settings: Settings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        Self {
            address,
            stop,
            ended: tokio::spawn(run(settings, Some(listener), stopped)),
        }
    }

    /// Ends as on a signal.
    pub(crate) async fn end(self) {
        self.stop.send_replace(true);
        let ended = tokio::time::timeout(Duration::from_secs(30), self.ended).await;
        ended.expect("the agent ends").unwrap().unwrap();
    }

    /// Code and body of a page.
    pub(crate) async fn page(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, body.to_owned())
    }

    /// Waits until `/healthz` says this.
    pub(crate) async fn says(&self, code: u16, body: &str) {
        let mut last = None;
        for _ in 0..PATIENCE {
            let page = self.page("/healthz").await;
            if page.0 == code && page.1 == body {
                return;
            }
            last = Some(page);
            sleep(STEP).await;
        }
        panic!("healthz does not say {code} {body:?}, but {last:?}");
    }
}

const STEP: Duration = Duration::from_millis(10);
/// Steps that a condition may take: a minute and more, for slow machines.
const PATIENCE: u32 = 6000;

/// Waits for something that is to come.
pub(crate) async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..PATIENCE {
        if let Some(found) = look() {
            return found;
        }
        sleep(STEP).await;
    }
    panic!("it did not come: {what}");
}

impl Node {
    /// A node whose agent runs.
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// As [`new`](Self::new), with other settings.
    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let folder = Folder::new();
        let mut api = Api::silent(&folder.file("audit")).await;
        api.define();
        api.answer();
        let runtime = Runtime::start(&folder.file("cri.sock"));
        let mut settings = settings(&folder, &api);
        change(&mut settings);
        let agent = Agent::start(settings).await;
        Self {
            folder,
            api,
            runtime,
            agent,
        }
    }

    /// An API server that does not answer yet, and a folder.
    pub(crate) async fn parts() -> (Folder, Api) {
        let folder = Folder::new();
        let api = Api::silent(&folder.file("audit")).await;
        (folder, api)
    }

    /// Creates the NodeImage with these images.
    pub(crate) fn want(&self, images: &Value) {
        want(&self.api, images);
    }

    /// Waits until the tag has this phase, and returns its status.
    pub(crate) async fn phase(&self, image: &str, tag: &str, phase: &str) -> Value {
        let mut last = None;
        for _ in 0..PATIENCE {
            last = tag_status(&self.api, image, tag);
            if let Some(status) = last.take_if(|status| status["phase"] == phase) {
                return status;
            }
            sleep(STEP).await;
        }
        panic!("{image}:{tag} is not {phase}, but {last:?}");
    }

    /// Waits for a number of pulls that have begun.
    pub(crate) async fn pulls(&self, count: usize) {
        until("pulls", || {
            (self.runtime.state().pulls.len() >= count).then_some(())
        })
        .await;
    }
}

pub(crate) fn want(api: &Api, images: &Value) {
    api.create(
        NODE_IMAGES,
        &json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": "n1"},
                "spec": {"images": images}}),
    );
}

/// The status of a tag, if it was reported.
pub(crate) fn tag_status(api: &Api, image: &str, tag: &str) -> Option<Value> {
    let object = api.get(&format!("{NODE_IMAGES}/n1"));
    let tags = object["status"]["imageStatuses"][image]["tags"].as_array()?;
    tags.iter().find(|one| one["tag"] == tag).cloned()
}
