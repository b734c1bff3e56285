//! The client against a containerd.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cri::{Auth, Client, Error, Exec, Limits, Pull, State};

use super::registry::{PASSWORD, Registry, USER};
use super::sandbox::{Cgroup, Sandbox};
use super::server::Folder;

/// Long enough for any machine; nothing waits for its end.
const PATIENCE: Duration = Duration::from_mins(5);

/// A containerd with namespaces of its own for processes and mounts, so that they all end with it.
struct Containerd(Child);

impl Containerd {
    fn start(folder: &Folder) -> Self {
        let start = format!(
            "mount -t tmpfs tmpfs /run && exec containerd --config {}/containerd.toml",
            folder.path().display()
        );
        let log = || {
            let path = folder.path().join("containerd.log");
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            Stdio::from(file.unwrap())
        };
        let child = Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child=KILL"])
            .args(["sh", "-c", &start])
            .stdin(Stdio::null())
            .stdout(log())
            .stderr(log())
            .spawn()
            .expect("util-linux is needed");
        Self(child)
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn configure(folder: &Folder, registry: &Registry) {
    let dir = folder.path().display();
    let config = format!(
        r#"version = 2
root = "{dir}/root"
state = "{dir}/state"

[grpc]
  address = "{dir}/cri.sock"

[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "test.example/open/pause:1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{dir}/registries"
"#
    );
    std::fs::write(folder.path().join("containerd.toml"), config).unwrap();
    let hosts = folder.path().join("registries/test.example");
    std::fs::create_dir_all(&hosts).unwrap();
    let address = registry.address;
    let server = format!("server = \"http://{address}\"\n[host.\"http://{address}\"]\n");
    std::fs::write(hosts.join("hosts.toml"), server).unwrap();
}

/// The file system of the image: a busybox.
fn layer() -> Vec<u8> {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].map(PathBuf::from);
    let busybox = busybox
        .iter()
        .find(|path| path.exists())
        .expect("busybox-static is needed");
    let mut tar = tar::Builder::new(Vec::new());
    let header = |kind, mode, size| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(size);
        header
    };
    for folder in ["bin", "dev", "etc", "proc", "sys", "tmp"] {
        let mut header = header(tar::EntryType::Directory, 0o755, 0);
        tar.append_data(&mut header, folder, &[][..]).unwrap();
    }
    let program = std::fs::read(busybox).unwrap();
    let mut file = header(tar::EntryType::Regular, 0o755, program.len() as u64);
    tar.append_data(&mut file, "bin/busybox", program.as_slice())
        .unwrap();
    for command in ["sh", "sleep", "seq"] {
        let mut link = header(tar::EntryType::Symlink, 0o777, 0);
        tar.append_link(&mut link, format!("bin/{command}"), "/bin/busybox")
            .unwrap();
    }
    tar.into_inner().unwrap()
}

fn client(folder: &Folder) -> Client {
    folder.limited(Limits {
        containers: PATIENCE,
        images: PATIENCE,
        ..Limits::default()
    })
}

async fn wait_until_ready(client: &Client) {
    while let Err(error) = client.filesystems().await {
        let is_starting = matches!(
            error,
            Error::Unavailable(_) | Error::Unimplemented(_) | Error::Other { .. }
        );
        assert!(is_starting, "{error:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
#[ignore = "needs root, containerd, runc, busybox-static: cargo test -p cri --test it -- --ignored containerd::"]
async fn everything_works_with_a_containerd() {
    let folder = Folder::new();
    let registry = Registry::start(layer()).await;
    configure(&folder, &registry);
    let containerd = Containerd::start(&folder);
    let client = client(&folder);
    let ready = tokio::time::timeout(PATIENCE, wait_until_ready(&client)).await;
    assert!(ready.is_ok(), "containerd does not start: {}", log(&folder));

    let version = client.version().await.unwrap();
    assert_eq!(
        (version.name.as_str(), version.api_version.as_str()),
        ("containerd", "v1")
    );
    pulls(&client, &registry).await;
    cancelled_pulls(&client, &registry).await;
    containers(&client, &folder.socket()).await;

    // It ends, and comes back with what it had.
    drop(containerd);
    let gone = client.version().await.unwrap_err();
    assert!(matches!(gone, Error::Unavailable(_)), "{gone:?}");
    let _containerd = Containerd::start(&folder);
    wait_until_ready(&client).await;
    assert!(client.image("test.example/open/tool:1").await.unwrap().is_some());
}

fn log(folder: &Folder) -> String {
    std::fs::read_to_string(folder.path().join("containerd.log")).unwrap_or_default()
}

fn pull<'a>(image: &'a str, auth: Option<Auth<'a>>) -> Pull<'a> {
    Pull {
        image,
        auth,
        ..Pull::default()
    }
}

async fn pulls(client: &Client, registry: &Registry) {
    assert_eq!(client.images().await, Ok(Vec::new()));
    let filesystems = client.filesystems().await.unwrap();
    assert_eq!(filesystems.images.len(), 1);
    assert!(filesystems.containers.len() <= 1, "{filesystems:?}");

    let tag = "test.example/open/tool:1";
    assert_eq!(client.image(tag).await, Ok(None));
    let id = client.pull(&pull(tag, None), PATIENCE).await.unwrap();
    let image = client.image(tag).await.unwrap().unwrap();
    assert_eq!(image.id, id);
    assert_eq!(image.tags, [tag]);
    let digest = format!("test.example/open/tool@{}", registry.manifest_digest());
    assert_eq!(image.digests, [digest]);
    assert!(image.bytes > 0);

    let other = format!("test.example/open/other@{}", registry.manifest_digest());
    assert_eq!(client.pull(&pull(&other, None), PATIENCE).await.unwrap(), id);
    let listed = client.images().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert!(listed[0].digests.contains(&other), "{listed:?}");

    let private = "test.example/private/tool:1";
    let login = |username, password| Some(Auth::Basic { username, password });
    for auth in [None, login(USER, "wrong")] {
        let error = client.pull(&pull(private, auth), PATIENCE).await.unwrap_err();
        assert!(matches!(error, Error::CredentialsRefused(_)), "{error:?}");
    }
    client
        .pull(&pull(private, login(USER, PASSWORD)), PATIENCE)
        .await
        .unwrap();

    let absent = client
        .pull(&pull("test.example/open/tool:2", None), PATIENCE)
        .await;
    assert!(matches!(absent, Err(Error::NotFound(_))), "{absent:?}");
}

async fn cancelled_pulls(client: &Client, registry: &Registry) {
    let slow = "test.example/slow/tool:1";
    let running = tokio::spawn({
        let client = client.clone();
        async move { client.pull(&pull(slow, None), PATIENCE).await }
    });
    registry.layer_begun().await;
    running.abort();
    registry.reader_left().await;

    let timed_out = client.pull(&pull(slow, None), Duration::from_secs(1)).await;
    assert!(matches!(timed_out, Err(Error::TimedOut(_))), "{timed_out:?}");
}

async fn containers(client: &Client, socket: &Path) {
    client
        .pull(&pull("test.example/open/pause:1", None), PATIENCE)
        .await
        .unwrap();
    let labels = [
        (cri::labels::POD_UID, "u1"),
        (cri::labels::CONTAINER_NAME, "main"),
    ];
    let annotations = [
        ("io.kubernetes.container.restartCount", "2"),
        ("io.kubernetes.container.hash", "c0ffee"),
        (
            "io.kubernetes.container.preStopHandler",
            r#"{"exec":{"command":["true"]}}"#,
        ),
    ];
    let image = "test.example/open/tool:1";
    let cgroup = Cgroup::new();
    let (sandbox, id) = Sandbox::run(socket, &cgroup, "u1", image, &labels, &annotations).await;

    assert_eq!(client.containers_of_pod("u2").await, Ok(Vec::new()));
    let listed = client.containers_of_pod("u1").await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].id.as_str(), listed[0].name.as_str()),
        (id.as_str(), "main")
    );
    let status = client.container(&id).await.unwrap();
    let container = &status.container;
    assert_eq!((container.state, container.attempt), (State::Running, 2));
    let written = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(container.annotations, std::collections::BTreeMap::from(written));
    assert!(status.started >= Some(container.created) && status.finished.is_none());

    let run = async |script: &str, timeout| {
        let command = ["sh", "-c", script].map(str::to_owned);
        let exec = Exec {
            container: &id,
            command: &command,
            timeout,
            output_bytes: 10,
        };
        client.exec(&exec).await
    };
    let output = run("seq 1000; echo no >&2; exit 3", PATIENCE).await.unwrap();
    assert_eq!(output.exit_code, 3);
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_slice()),
        (&b"1\n2\n3\n4\n5\n"[..], &b"no\n"[..])
    );
    let timed_out = run("sleep 100000", Duration::from_secs(1)).await;
    assert!(matches!(timed_out, Err(Error::TimedOut(_))), "{timed_out:?}");

    client.stop(&id, Duration::from_secs(1)).await.unwrap();
    let stopped = client.container(&id).await.unwrap();
    assert_eq!((stopped.container.state, stopped.exit_code), (State::Exited, 137));
    assert!(stopped.finished.is_some());
    client.stop(&id, Duration::from_secs(1)).await.unwrap();
    sandbox.remove().await;
    let gone = client.container(&id).await;
    assert!(matches!(gone, Err(Error::NotFound(_))), "{gone:?}");
}
