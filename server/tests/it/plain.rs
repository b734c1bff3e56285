//! Health and metrics over plain HTTP.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::FutureExt as _;
use kruise_server::{
    health::Check,
    listen::Limits,
    plain::{Access, PlainServer},
    tls::Tls,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};

use crate::{
    client::{pair, start},
    webhook::server,
};

async fn listen(server: PlainServer) -> (SocketAddr, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(server.serve(listener, stopped));
    (address, stop)
}

/// Status, headers and body of one request.
async fn ask(address: SocketAddr, method: &str, path: &str) -> (u16, String, String) {
    ask_with(address, method, path, "").await
}

/// As [`ask`], with more headers, each with the end of its line.
async fn ask_with(address: SocketAddr, method: &str, path: &str, more: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nhost: a\r\n{more}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let read = stream.read_to_string(&mut text);
    timeout(Duration::from_secs(20), read).await.unwrap().unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (
        head[9..12].parse().unwrap(),
        head.to_ascii_lowercase(),
        body.to_owned(),
    )
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let (status, _, body) = ask(address, "GET", path).await;
    (status, body)
}

#[tokio::test]
async fn checks_are_listed_together_and_one_by_one() {
    let good = Arc::new(AtomicBool::new(false));
    let read = good.clone();
    let check = Check::new("switch", move || {
        let good = read.load(Ordering::SeqCst);
        async move { if good { Ok(()) } else { Err("off".to_owned()) } }
    });
    let server = PlainServer::health(vec![Check::ping()], vec![Check::ping(), check]);
    let (address, _stop) = listen(server).await;
    let ok = || (200, "ok".to_owned());
    for path in [
        "/healthz",
        "/healthz/",
        "/healthz/ping",
        "/readyz/ping",
        "/readyz?exclude=switch",
    ] {
        assert_eq!(get(address, path).await, ok(), "{path}");
    }
    let failed = "[+]ping ok\n[-]switch failed: reason withheld\nreadyz check failed\n";
    assert_eq!(get(address, "/readyz").await, (500, failed.into()));
    assert_eq!(
        get(address, "/readyz/switch").await,
        (500, "internal server error: off\n".into())
    );
    let excluded = "[+]ping ok\n[+]switch excluded: ok\nreadyz check passed\n";
    assert_eq!(
        get(address, "/readyz?exclude=switch&verbose").await,
        (200, excluded.into())
    );
    good.store(true, Ordering::SeqCst);
    assert_eq!(get(address, "/readyz").await, ok());
    let verbose = "[+]ping ok\n[+]switch ok\n\
                   warn: some health checks cannot be excluded: no matches for \"other\"\nreadyz check passed\n";
    assert_eq!(
        get(address, "/readyz?verbose=1&exclude=other").await,
        (200, verbose.into())
    );
    for path in ["/", "/healthzz", "/healthz/switch", "/readyz/other", "/metrics"] {
        assert_eq!(get(address, path).await.0, 404, "{path}");
    }
    assert_eq!(ask(address, "POST", "/healthz").await.0, 405);
}

#[tokio::test]
async fn metrics_are_rendered_for_each_request() {
    let count = std::sync::atomic::AtomicU32::new(0);
    let render = move || format!("a {}\n# EOF\n", count.fetch_add(1, Ordering::SeqCst));
    let (address, _stop) = listen(PlainServer::metrics(Arc::new(render))).await;
    let (status, head, body) = ask(address, "GET", "/metrics").await;
    assert_eq!((status, body.as_str()), (200, "a 0\n# EOF\n"));
    let expected = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.contains(expected), "{head}");
    assert_eq!(get(address, "/metrics").await.1, "a 1\n# EOF\n");
    assert_eq!(get(address, "/metrics/a").await.0, 404);
}

#[tokio::test]
async fn guarded_metrics_are_for_tokens_that_may_read_them() {
    let guard = |token: String| {
        let access = match token.as_str() {
            "a" => Access::Granted,
            "b" => Access::Forbidden,
            "c" => Access::Undecided,
            _ => Access::Unknown,
        };
        async move { access }.boxed()
    };
    let mut server = PlainServer::metrics(Arc::new(|| "secret\n".to_owned()));
    server.guard = Some(Arc::new(guard));
    let (address, _stop) = listen(server).await;
    for (header, status) in [
        ("authorization: Bearer a\r\n", 200),
        ("authorization: bearer a\r\n", 200),
        ("authorization: Bearer b\r\n", 403),
        ("authorization: Bearer c\r\n", 503),
        ("authorization: Bearer d\r\n", 401),
        ("authorization: Bearer \r\n", 401),
        ("authorization: Basic a\r\n", 401),
        ("authorization: Bearer \u{e4}\r\n", 401),
        ("", 401),
    ] {
        let (found, head, body) = ask_with(address, "GET", "/metrics", header).await;
        assert_eq!(found, status, "{header}");
        assert_eq!(body.contains("secret"), status == 200, "{header}");
        assert_eq!(head.contains("www-authenticate: bearer"), status == 401, "{head}");
    }
}

#[tokio::test]
async fn the_webhook_is_ready_when_its_certificate_is_the_published_one() {
    let webhook = start(server(Limits::default())).await;
    let ready = |tls: &Arc<Tls>| vec![Check::webhook_ready(tls.clone(), webhook.address.port())];
    let (address, _stop) = listen(PlainServer::health(Vec::new(), ready(&webhook.tls))).await;
    assert_eq!(get(address, "/readyz").await, (200, "ok".into()));
    webhook.tls.swap(pair()).unwrap();
    assert_eq!(
        get(address, "/readyz").await,
        (200, "ok".into()),
        "after a change of the CA"
    );

    let none = Arc::new(Tls::default());
    let (address, _stop) = listen(PlainServer::health(Vec::new(), ready(&none))).await;
    let reason = get(address, "/readyz/webhook-ready").await.1;
    assert_eq!(reason, "internal server error: no serving certificate yet\n");
    none.swap(pair()).unwrap();
    assert_eq!(
        get(address, "/readyz").await.0,
        500,
        "another CA than the served one"
    );
    webhook.stop.send(true).unwrap();
    webhook.task.await.unwrap();
    none.swap(webhook.tls.pair().unwrap()).unwrap();
    assert_eq!(get(address, "/readyz").await.0, 500, "nobody listens");
}

/// The system accepts connections for a listener that nothing reads from.
#[tokio::test]
async fn a_server_that_does_not_answer_is_not_ready() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tls = Arc::new(Tls::new(crate::client::PAIR.clone()).unwrap());
    let (address, _stop) = listen(PlainServer::health(
        Vec::new(),
        vec![Check::webhook_ready(tls, port)],
    ))
    .await;
    let since = std::time::Instant::now();
    let answer = get(address, "/readyz/webhook-ready").await;
    assert_eq!(
        answer,
        (500, "internal server error: no answer within 2s\n".into())
    );
    assert!(since.elapsed() >= Duration::from_secs(2));
    drop(listener);
}
