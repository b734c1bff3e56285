//! A minimal API server: a response for each path, over plain HTTP, with a thread for each connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// The response of a path: code and body.
pub(crate) type Answers = fn(&str) -> Option<(u16, Value)>;

/// A server. It runs as long as the test binary.
pub(crate) struct ApiServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl ApiServer {
    /// Starts a server with these responses. All other paths are 404.
    pub(crate) fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let seen = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = seen.clone();
                std::thread::spawn(move || serve(stream, answers, &seen));
            }
        });
        Self { address, requests }
    }

    /// The address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Paths of all requests so far, without their queries.
    pub(crate) fn paths(&self) -> Vec<String> {
        let requests = self.requests();
        let path = |request: &String| request.split(' ').nth(1).map(str::to_owned);
        requests.iter().filter_map(path).collect()
    }

    /// All requests so far, such as `GET /api/v1/pods`, without their queries.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Responds until the client closes the connection.
fn serve(stream: TcpStream, answers: Answers, seen: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let (method, path) = request(&mut reader)?;
        seen.lock().unwrap().push(format!("{method} {path}"));
        let not_found = || {
            (
                404,
                json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": path}),
            )
        };
        let (code, body) = answers(&path).unwrap_or_else(not_found);
        let body = body.to_string();
        write!(
            stream,
            "HTTP/1.1 {code} Status\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .ok()?;
    }
}

/// Reads one request to its end and returns its method and path.
fn request(reader: &mut impl BufRead) -> Option<(String, String)> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|length| *length > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink()).ok()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    Some((method.to_owned(), path.split('?').next()?.to_owned()))
}

/// The resources of `apps.kruise.io` in one version.
pub(crate) fn clonesets() -> (u16, Value) {
    let resource = json!({"name": "clonesets", "namespaced": true, "kind": "CloneSet", "verbs": []});
    (200, json!({"kind": "APIResourceList", "resources": [resource]}))
}

/// The definition of CloneSets: served in these versions, converted like this.
pub(crate) fn definition(versions: &[&str], strategy: &str) -> (u16, Value) {
    let versions: Vec<_> = versions
        .iter()
        .map(|name| json!({"name": name, "served": true}))
        .collect();
    (
        200,
        json!({"spec": {"versions": versions, "conversion": {"strategy": strategy}}}),
    )
}
