//! Where the API server of a cluster listens.

use std::fmt;

/// An address of the API server, and the addresses that Services get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Range of the addresses of Services. The first of them is that of the API server's own Service.
    pub(crate) services: String,
}

impl Address {
    /// On loopback, where no container reaches it.
    pub(crate) fn loopback(port: u16) -> Self {
        Self {
            host: "127.0.0.1".into(),
            port,
            services: "10.0.0.0/16".into(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
