//! Addresses to listen on.

use std::{
    io,
    net::{AddrParseError, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Reads an address as Go's programs take it: `:8080` stands for every address of the machine, `localhost` for its
/// own one, `0` and nothing for no address.
///
/// # Errors
/// Text that is no address with a port.
pub fn parse(text: &str) -> Result<Option<SocketAddr>, AddrParseError> {
    if text == "0" || text.is_empty() {
        return Ok(None);
    }
    let full = match text.strip_prefix(':') {
        Some(port) => format!("[::]:{port}"),
        None => text.replacen("localhost:", "127.0.0.1:", 1),
    };
    full.parse().map(Some)
}

/// The address that stands for all addresses of the machine, IPv6 and IPv4.
pub fn every(port: u16) -> SocketAddr {
    (Ipv6Addr::UNSPECIFIED, port).into()
}

/// Listens on one address. Where there is no IPv6, all IPv4 addresses stand in for [`every`]. Must be called within
/// a tokio runtime.
///
/// # Errors
/// The address is in use, or not one of this machine.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    bind_with(address, listen)
}

fn bind_with<T>(address: SocketAddr, listen: impl Fn(SocketAddr) -> io::Result<T>) -> io::Result<T> {
    let is_every = address.ip() == Ipv6Addr::UNSPECIFIED;
    match listen(address) {
        Err(error) if is_every && error.kind() != io::ErrorKind::AddrInUse => {
            listen((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        result => result,
    }
}

/// Listens on one address; on [`every`] for both protocols, whatever the system's default is.
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

    #[test]
    fn addresses_are_read_as_go_reads_them() {
        let read = |text| parse(text).map(|found| found.map(|address| address.to_string()));
        for (text, address) in [
            (":8080", Some("[::]:8080")),
            ("localhost:1", Some("127.0.0.1:1")),
            ("10.0.0.7:80", Some("10.0.0.7:80")),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(read(text), Ok(address.map(str::to_owned)), "{text}");
        }
        for text in ["nonsense", "8080", "a:b"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn ipv6_and_ipv4_clients_reach_the_same_socket() {
        let listener = bind(every(0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        // Some machines have no IPv6.
        if std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).unwrap();
        }
        assert!(bind(every(port)).is_err(), "the port is taken");
    }

    #[test]
    fn where_there_is_no_ipv6_all_ipv4_addresses_are_bound() {
        let only_ipv4 = |address: SocketAddr| match address {
            SocketAddr::V4(address) => Ok(address.to_string()),
            SocketAddr::V6(_) => Err(io::Error::from(io::ErrorKind::Unsupported)),
        };
        assert_eq!(bind_with(every(7), only_ipv4).unwrap(), "0.0.0.0:7");
        let one = (Ipv6Addr::LOCALHOST, 7).into();
        assert!(
            bind_with(one, only_ipv4).is_err(),
            "a single address is not replaced"
        );
        let taken = |_| Err::<(), _>(io::Error::from(io::ErrorKind::AddrInUse));
        assert_eq!(
            bind_with(every(7), taken).unwrap_err().kind(),
            io::ErrorKind::AddrInUse
        );
    }
}
