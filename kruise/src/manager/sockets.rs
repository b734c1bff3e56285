//! The sockets that a manager listens on.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};

use anyhow::Context;
use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;

use super::config::Config;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// The sockets to listen on.
#[derive(Debug)]
pub struct Sockets {
    /// Webhooks, at the port of [`WebhookConfig`](super::config::WebhookConfig).
    pub webhooks: TcpListener,
    /// Metrics, if they are served.
    pub metrics: Option<TcpListener>,
    /// Probes, if they are served.
    pub health: Option<TcpListener>,
}

impl Sockets {
    /// Binds the addresses of the configuration.
    pub fn bind(config: &Config) -> anyhow::Result<Self> {
        let optional = |address: Option<SocketAddr>, flag| address.map(|it| bind(it, flag)).transpose();
        Ok(Self {
            health: optional(config.health, "--health-probe-addr")?,
            metrics: optional(config.metrics, "--metrics-addr")?,
            webhooks: bind(every_address(config.webhook.port), "WEBHOOK_PORT")?,
        })
    }
}

/// The address that stands for all addresses of the machine, IPv6 and IPv4.
pub(super) fn every_address(port: u16) -> SocketAddr {
    (Ipv6Addr::UNSPECIFIED, port).into()
}

fn bind(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    bind_with(address, listen).with_context(|| format!("cannot listen on {address}; change {setting}"))
}

/// As `listen`; where there is no IPv6, all IPv4 addresses stand in for [`every_address`].
fn bind_with<T>(address: SocketAddr, listen: impl Fn(SocketAddr) -> io::Result<T>) -> io::Result<T> {
    let is_every = address.ip() == Ipv6Addr::UNSPECIFIED;
    match listen(address) {
        Err(error) if is_every && error.kind() != io::ErrorKind::AddrInUse => {
            listen((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        result => result,
    }
}

/// Listens on one address; on [`every_address`] for both protocols, whatever the system's default is.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.ip() == Ipv6Addr::UNSPECIFIED {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn ipv6_and_ipv4_clients_reach_the_same_socket() {
        let listener = bind(every_address(0), "none").unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        // Some machines have no IPv6.
        if std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).unwrap();
        }
        assert!(bind(every_address(port), "none").is_err(), "the port is taken");
    }

    #[test]
    fn where_there_is_no_ipv6_all_ipv4_addresses_are_bound() {
        let only_ipv4 = |address: SocketAddr| match address {
            SocketAddr::V4(address) => Ok(address.to_string()),
            SocketAddr::V6(_) => Err(io::Error::from(io::ErrorKind::Unsupported)),
        };
        assert_eq!(bind_with(every_address(7), only_ipv4).unwrap(), "0.0.0.0:7");
        let one = (Ipv6Addr::LOCALHOST, 7).into();
        assert!(
            bind_with(one, only_ipv4).is_err(),
            "a single address is not replaced"
        );
        let taken = |_| Err::<(), _>(io::Error::from(io::ErrorKind::AddrInUse));
        assert_eq!(
            bind_with(every_address(7), taken).unwrap_err().kind(),
            io::ErrorKind::AddrInUse
        );
    }
}
