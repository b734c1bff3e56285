//! A registry on loopback with two images, for a containerd.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

pub(crate) const USER: &str = "me";
pub(crate) const PASSWORD: &str = "secret";

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// A registry in which each repository holds the same image under the tag `1`. Those below `private/` want a
/// password. Those below `slow/` hold another image, whose layer never ends. Ends with the value.
pub(crate) struct Registry {
    _tasks: JoinSet<()>,
    pub(crate) address: SocketAddr,
    content: Arc<Content>,
}

struct Content {
    whole: Image,
    slow: Image,
    /// The layer that never ends was begun, or its reader left.
    begun: Notify,
    left: Notify,
}

struct Image {
    manifest: Vec<u8>,
    config: Vec<u8>,
    layer: Vec<u8>,
}

impl Image {
    fn new(layer: Vec<u8>) -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let (layer_digest, length) = (digest(&layer), layer.len());
        let config = format!(
            r#"{{"architecture":"{architecture}","os":"linux","config":{{"Env":["PATH=/bin"],"Cmd":["/bin/sleep","100000"]}},"rootfs":{{"type":"layers","diff_ids":["{layer_digest}"]}}}}"#
        );
        let (config_digest, config_length) = (digest(config.as_bytes()), config.len());
        let manifest = format!(
            r#"{{"schemaVersion":2,"mediaType":"{MANIFEST}","config":{{"mediaType":"{CONFIG}","size":{config_length},"digest":"{config_digest}"}},"layers":[{{"mediaType":"{LAYER}","size":{length},"digest":"{layer_digest}"}}]}}"#
        );
        Self {
            manifest: manifest.into(),
            config: config.into(),
            layer,
        }
    }

    /// Media type and bytes of what has this name.
    fn find(&self, name: &str) -> Option<(&'static str, &[u8])> {
        let parts = [
            (MANIFEST, &self.manifest),
            (CONFIG, &self.config),
            (LAYER, &self.layer),
        ];
        let mut found = parts
            .into_iter()
            .filter(|(kind, bytes)| digest(bytes) == name || (name == "1" && *kind == MANIFEST));
        found.next().map(|(kind, bytes)| (kind, bytes.as_slice()))
    }
}

impl Registry {
    pub(crate) async fn start(layer: Vec<u8>) -> Self {
        let content = Arc::new(Content {
            whole: Image::new(layer),
            slow: Image::new(b"slow".to_vec()),
            begun: Notify::new(),
            left: Notify::new(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&content)));
        Self {
            _tasks: tasks,
            address,
            content,
        }
    }

    pub(crate) fn manifest_digest(&self) -> String {
        digest(&self.content.whole.manifest)
    }

    /// Somebody waits for the layer that never ends.
    pub(crate) async fn layer_begun(&self) {
        self.content.begun.notified().await;
    }

    /// Nobody waits any more.
    pub(crate) async fn reader_left(&self) {
        self.content.left.notified().await;
    }
}

async fn accept(listener: TcpListener, content: Arc<Content>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let content = Arc::clone(&content);
        let service = service_fn(move |request| {
            let response = serve(&request, &content);
            async { Ok::<_, Infallible>(response) }
        });
        connections.spawn(async move {
            let server = hyper::server::conn::http1::Builder::new();
            // Ends with an error when the runtime breaks it off.
            let _ended = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

fn serve(request: &Request<Incoming>, content: &Arc<Content>) -> Response<Body> {
    let path = request.uri().path();
    let is_private = path.starts_with("/v2/private/");
    let expected = format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")));
    let authorization = request.headers().get("authorization");
    if is_private && authorization.is_none_or(|found| found.as_bytes() != expected.as_bytes()) {
        return Response::builder()
            .status(StatusCode::UNAUTHORIZED)
            .header("www-authenticate", "Basic realm=\"test\"")
            .body(full(b""))
            .unwrap();
    }
    let is_slow = path.starts_with("/v2/slow/");
    let image = if is_slow { &content.slow } else { &content.whole };
    let name = path.rsplit('/').next().unwrap_or_default();
    let Some((kind, bytes)) = image.find(name) else {
        let status = if path == "/v2/" {
            StatusCode::OK
        } else {
            StatusCode::NOT_FOUND
        };
        return Response::builder().status(status).body(full(b"")).unwrap();
    };
    let body = if request.method() == http::Method::HEAD {
        full(b"")
    } else if is_slow && kind == LAYER {
        endless(content)
    } else {
        full(bytes)
    };
    Response::builder()
        .header("content-type", kind)
        .header("content-length", bytes.len())
        .header("docker-content-digest", digest(bytes))
        .body(body)
        .unwrap()
}

fn full(bytes: &[u8]) -> Body {
    Full::new(Bytes::copy_from_slice(bytes)).boxed_unsync()
}

/// A body of which only the first byte comes.
fn endless(content: &Arc<Content>) -> Body {
    struct Reader(Arc<Content>);
    impl Drop for Reader {
        fn drop(&mut self) {
            self.0.left.notify_one();
        }
    }
    content.begun.notify_one();
    let first = content.slow.layer.get(..1).map(Bytes::copy_from_slice);
    let frames = stream::unfold((first, Reader(Arc::clone(content))), |(first, reader)| async {
        match first {
            Some(first) => Some((Ok(Frame::data(first)), (None, reader))),
            None => std::future::pending().await,
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    let mut text = String::from("sha256:");
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}
