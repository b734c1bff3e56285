//! Where runtimes listen.

use std::fmt;
use std::path::{Path, PathBuf};

const SCHEME: &str = "unix://";

/// Sockets below the node's `/run`, in the order in which they are tried. Early ones are those of most distributions.
const SOCKETS: [&str; 8] = [
    "containerd.sock",
    "containerd/containerd.sock",
    "crio.sock",
    "crio/crio.sock",
    "cri-dockerd.sock",
    "cri-dockerd/cri-dockerd.sock",
    // K3s and RKE2.
    "k3s/containerd/containerd.sock",
    "k0s/containerd.sock",
];
/// MicroK8s keeps its own below no `/run`.
const MICROK8S: &str = "/var/snap/microk8s/common/run/containerd.sock";

/// The socket of a runtime.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint(PathBuf);

/// Text that names no unix socket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no endpoint of a container runtime: {why}")]
pub struct EndpointError {
    text: String,
    why: &'static str,
}

impl Endpoint {
    /// The socket that a flag names: `unix:///absolute/path`, or a path below `root`, with or without a slash
    /// before it.
    ///
    /// # Errors
    /// An empty path, a relative one after `unix://`, or another scheme.
    pub fn parse(text: &str, root: &Path) -> Result<Self, EndpointError> {
        let wrong = |why| EndpointError {
            text: text.to_owned(),
            why,
        };
        if let Some(path) = text.strip_prefix(SCHEME) {
            return match Path::new(path) {
                path if path.is_absolute() && path != Path::new("/") => Ok(Self(path.to_owned())),
                _ => Err(wrong(
                    "unix:// needs an absolute path, as in unix:///run/crio/crio.sock",
                )),
            };
        }
        if text.contains("://") {
            return Err(wrong("only unix:// is supported"));
        }
        match text.trim_start_matches('/') {
            "" => Err(wrong("the path is empty")),
            path => Ok(Self::under(root, path)),
        }
    }

    /// The socket of this name below `root`.
    pub fn under(root: &Path, name: &str) -> Self {
        Self(root.join(name))
    }

    /// The socket's file.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// As Kubernetes writes it: `unix:///run/containerd/containerd.sock`.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.0.display())
    }
}

/// All places where a runtime may listen, in the order in which to try them; `run` is the node's `/run` or `/var/run`.
///
/// A socket that exists proves nothing: Docker's containerd, for one, offers no runtime interface.
/// [`Client::version`](crate::Client::version) tells.
pub fn candidates(run: &Path) -> Vec<Endpoint> {
    let below = SOCKETS.iter().map(|name| Endpoint::under(run, name));
    below.chain([Endpoint(MICROK8S.into())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_names_a_socket_below_the_root_or_an_absolute_one() {
        let root = Path::new("/hostvarrun");
        for (text, socket) in [
            (
                "containerd/containerd.sock",
                "/hostvarrun/containerd/containerd.sock",
            ),
            ("/crio.sock", "/hostvarrun/crio.sock"),
            ("unix:///run/k3s/containerd.sock", "/run/k3s/containerd.sock"),
        ] {
            let endpoint = Endpoint::parse(text, root).unwrap();
            assert_eq!(endpoint.path(), Path::new(socket));
            assert_eq!(endpoint.to_string(), format!("unix://{socket}"));
        }
        for text in [
            "",
            "/",
            "unix://",
            "unix:///",
            "unix://run/a.sock",
            "npipe://./pipe/a",
            "tcp://a:1",
        ] {
            let error = Endpoint::parse(text, root).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{text:?} is no endpoint")), "{error}");
        }
    }

    #[test]
    fn sockets_of_runtimes_come_before_those_of_single_distributions() {
        let all = candidates(Path::new("/r"));
        let paths: Vec<_> = all
            .iter()
            .map(|endpoint| endpoint.path().to_str().unwrap())
            .collect();
        assert_eq!(
            paths,
            [
                "/r/containerd.sock",
                "/r/containerd/containerd.sock",
                "/r/crio.sock",
                "/r/crio/crio.sock",
                "/r/cri-dockerd.sock",
                "/r/cri-dockerd/cri-dockerd.sock",
                "/r/k3s/containerd/containerd.sock",
                "/r/k0s/containerd.sock",
                "/var/snap/microk8s/common/run/containerd.sock",
            ]
        );
    }
}
