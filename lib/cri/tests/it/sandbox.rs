//! The calls of a kubelet, which the client does not have: they make and remove a pod with one container.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    uid: String,
    #[prost(string, tag = "3")]
    namespace: String,
}

#[derive(Clone, PartialEq, Message)]
struct Namespaces {
    #[prost(int32, tag = "1")]
    network: i32,
    #[prost(int32, tag = "2")]
    pid: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Security {
    #[prost(message, optional, tag = "1")]
    namespaces: Option<Namespaces>,
}

#[derive(Clone, PartialEq, Message)]
struct Linux {
    #[prost(string, tag = "1")]
    cgroup_parent: String,
    #[prost(message, optional, tag = "2")]
    security: Option<Security>,
}

#[derive(Clone, PartialEq, Message)]
struct Pod {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
    #[prost(string, tag = "3")]
    log_directory: String,
    #[prost(message, optional, tag = "8")]
    linux: Option<Linux>,
}

#[derive(Clone, PartialEq, Message)]
struct RunPod {
    #[prost(message, optional, tag = "1")]
    config: Option<Pod>,
}

#[derive(Clone, PartialEq, Message)]
struct Id {
    #[prost(string, tag = "1")]
    id: String,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerMetadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint32, tag = "2")]
    attempt: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Image {
    #[prost(string, tag = "1")]
    image: String,
}

#[derive(Clone, PartialEq, Message)]
struct LinuxContainer {
    #[prost(message, optional, tag = "2")]
    security: Option<ContainerSecurity>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerSecurity {
    #[prost(message, optional, tag = "3")]
    namespaces: Option<Namespaces>,
}

#[derive(Clone, PartialEq, Message)]
struct Container {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "2")]
    image: Option<Image>,
    #[prost(btree_map = "string, string", tag = "9")]
    labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "10")]
    annotations: BTreeMap<String, String>,
    #[prost(message, optional, tag = "15")]
    linux: Option<LinuxContainer>,
}

#[derive(Clone, PartialEq, Message)]
struct CreateContainer {
    #[prost(string, tag = "1")]
    pod: String,
    #[prost(message, optional, tag = "2")]
    config: Option<Container>,
    #[prost(message, optional, tag = "3")]
    pod_config: Option<Pod>,
}

/// The network of the node.
const NODE: i32 = 2;
/// Processes of its own.
const CONTAINER: i32 = 1;

/// A control group for pods. It is removed with the value, if it is empty.
pub(crate) struct Cgroup(String);

impl Cgroup {
    /// The name of this process's own. The runtime makes it.
    pub(crate) fn new() -> Self {
        Self(format!("cri-test-{}", std::process::id()))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let root = Path::new("/sys/fs/cgroup");
        let hierarchies = std::fs::read_dir(root).into_iter().flatten().flatten();
        let hierarchies = hierarchies.map(|entry| entry.path());
        for hierarchy in hierarchies.chain([root.to_owned()]) {
            // It is in some of them.
            let _absent = std::fs::remove_dir(hierarchy.join(&self.0));
        }
    }
}

/// A pod in a runtime. It is removed by its [`remove`](Self::remove) only.
pub(crate) struct Sandbox<'a> {
    socket: &'a Path,
    id: String,
}

impl<'a> Sandbox<'a> {
    /// Runs a pod with one container, `main`, and returns the container's id.
    pub(crate) async fn run(
        socket: &'a Path,
        cgroup: &Cgroup,
        uid: &str,
        image: &str,
        labels: &[(&str, &str)],
        annotations: &[(&str, &str)],
    ) -> (Self, String) {
        let namespaces = Some(Namespaces {
            network: NODE,
            pid: CONTAINER,
        });
        let pod = Pod {
            metadata: Some(Metadata {
                name: "pod".into(),
                uid: uid.into(),
                namespace: "default".into(),
            }),
            log_directory: String::new(),
            linux: Some(Linux {
                cgroup_parent: format!("/{}", cgroup.0),
                security: Some(Security {
                    namespaces: namespaces.clone(),
                }),
            }),
        };
        let run = RunPod {
            config: Some(pod.clone()),
        };
        let id: Id = call(socket, "RunPodSandbox", &run).await;
        let sandbox = Self { socket, id: id.id };
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            pairs.collect::<BTreeMap<_, _>>()
        };
        let create = CreateContainer {
            pod: sandbox.id.clone(),
            config: Some(Container {
                metadata: Some(ContainerMetadata {
                    name: "main".into(),
                    attempt: 2,
                }),
                image: Some(Image { image: image.into() }),
                labels: map(labels),
                annotations: map(annotations),
                linux: Some(LinuxContainer {
                    security: Some(ContainerSecurity { namespaces }),
                }),
            }),
            pod_config: Some(pod),
        };
        let container: Id = call(socket, "CreateContainer", &create).await;
        let _started: Id = call(socket, "StartContainer", &container).await;
        (sandbox, container.id)
    }

    pub(crate) async fn remove(self) {
        let id = Id { id: self.id };
        let _stopped: Id = call(self.socket, "StopPodSandbox", &id).await;
        let _removed: Id = call(self.socket, "RemovePodSandbox", &id).await;
    }
}

async fn call<T: Message + Default>(socket: &Path, method: &str, message: &impl Message) -> T {
    let stream = tokio::net::UnixStream::connect(socket).await.unwrap();
    let io = TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(message.encoded_len() as u32);
    bytes.put(message.encode_to_vec().as_slice());
    let request = http::Request::post(format!("http://localhost/runtime.v1.RuntimeService/{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Bytes::from(bytes)))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    let headers = response.headers().clone();
    let body = response.into_body().collect().await.unwrap();
    let trailers = body.trailers().cloned().unwrap_or(headers);
    assert_eq!(trailers["grpc-status"], "0", "{method}: {trailers:?}");
    drop(sender);
    connection.await.unwrap().unwrap();
    T::decode(&body.to_bytes()[5..]).unwrap()
}
