//! What events and effects name alike.

use std::fmt;

use kruise_views::Labels;

/// One attempt to pull an image. Unique in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttemptId(pub u64);

/// A secret of the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretRef {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What the sandbox configuration of a pull says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Labels.
    pub labels: Labels,
    /// Annotations.
    pub annotations: Labels,
}

/// A container of a runtime, written as in the status of pods: `containerd://0123…`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerId {
    /// Name of the runtime.
    pub runtime: Box<str>,
    /// Its id there.
    pub id: Box<str>,
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.runtime, self.id)
    }
}

/// What a preStop hook or a probe does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handler {
    /// Run a command in the container.
    Exec(Box<[Box<str>]>),
    /// Send a GET request.
    Http {
        /// `http` or `https`; a certificate is not checked.
        scheme: Box<str>,
        /// Host; an IPv6 address without brackets.
        host: Box<str>,
        /// Port.
        port: u16,
        /// Path, and query if there is one.
        path: Box<str>,
        /// Headers, in order.
        headers: Box<[(Box<str>, Box<str>)]>,
    },
    /// Open a connection, and close it.
    Tcp {
        /// Host; an IPv6 address without brackets.
        host: Box<str>,
        /// Port.
        port: u16,
    },
}

/// One run of a probe. Unique in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId(pub u64);
