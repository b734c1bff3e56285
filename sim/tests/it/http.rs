//! What is wrong with a request before the API sees it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::socket;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Code and body of the answer.
fn send(address: SocketAddr, method: &str, body: &[u8]) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(2))).unwrap();
    let head = format!(
        "{method} {MAPS} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, serde_json::from_str(body).unwrap())
}

#[test]
fn a_body_beyond_the_limit_is_read_to_its_end_and_refused() {
    let (_runtime, address) = socket::serve();
    let (code, status) = send(address, "POST", &vec![b' '; (3 << 20) + 1]);
    assert_eq!(code, 413, "{status}");
    assert_eq!(status["reason"], "RequestEntityTooLarge");
    assert_eq!(status["message"], "Request entity is too large: limit is 3145728");
    let (code, _) = send(address, "POST", &vec![b' '; 3 << 20]);
    assert_eq!(code, 400, "as much as there may be, though it is no object");
}

#[test]
fn an_unknown_method_is_not_allowed() {
    let (_runtime, address) = socket::serve();
    for method in ["OPTIONS", "TRACE", "BREW"] {
        let (code, status) = send(address, method, b"");
        assert_eq!(code, 405, "{method}: {status}");
        assert_eq!(status["reason"], "MethodNotAllowed");
    }
}
