//! What the webhook server answers, and what it survives.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use kruise_server::{
    listen::Limits,
    review::{Response, Review},
    tls::{Pair, Tls},
    webhook::{Decision, Handler, WebhookServer, serve},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, timeout},
};

use crate::client::{Client, PAIR, Server, Version, connect, hello, pair, post, start};

/// Longer than anything takes here, shorter than anyone waits for a failing test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn review(uid: &str) -> Vec<u8> {
    let request = json!({"uid": uid, "object": {"metadata": {"name": "a"}}});
    let review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request});
    review.to_string().into_bytes()
}

/// Denies with the object's name, at once or later, panics likewise, or reverses a conversion's bytes.
pub(crate) fn server(limits: Limits) -> WebhookServer {
    let denial = |review: &Review| Response::Deny {
        code: 422,
        reason: None,
        message: format!("not {}", review.request["object"]["metadata"]["name"]),
    };
    let deny = Handler::Review(Arc::new(move |review| denial(&review).into()));
    let later = Handler::Review(Arc::new(move |review| {
        Decision::Later(Box::pin(async move {
            tokio::task::yield_now().await;
            denial(&review)
        }))
    }));
    let fail_later = Handler::Review(Arc::new(|_| {
        Decision::Later(Box::pin(async {
            tokio::task::yield_now().await;
            panic!("a bug in a handler that waits")
        }))
    }));
    let fail = Handler::Review(Arc::new(|_| panic!("a bug in a handler")));
    let convert = Handler::Convert(Arc::new(|body: Vec<u8>| match &*body {
        b"bad" => Err("cannot convert".to_owned()),
        b"bug" => panic!("a bug in a converter"),
        body => Ok(body
            .rchunks(1000)
            .map(|part| part.iter().rev().copied().collect())
            .collect()),
    }));
    let routes = [
        ("/deny", deny),
        ("/later", later),
        ("/panic", fail),
        ("/panic-later", fail_later),
        ("/convert", convert),
    ];
    WebhookServer {
        routes: routes.map(|(path, handler)| (path.to_owned(), handler)).into(),
        limits,
        ..WebhookServer::default()
    }
}

async fn default() -> Server {
    start(server(Limits::default())).await
}

/// Reads until the peer closes, however it does so.
async fn until_closed(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut read = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut read))
        .await
        .expect("the connection to be closed");
    read
}

#[tokio::test]
async fn a_good_review_is_answered_over_both_versions_of_http() {
    let server = default().await;
    for version in [Version::Http1, Version::Http2] {
        let mut client = Client::connect(server.address, version).await;
        for uid in ["a", "b"] {
            let (status, body) = client.post("/deny?timeout=10s", review(uid)).await;
            assert_eq!(status, StatusCode::OK);
            let answer: Value = serde_json::from_str(&body).unwrap();
            let expected =
                json!({"uid": uid, "allowed": false, "status": {"code": 422, "message": "not \"a\""}});
            assert_eq!(answer["response"], expected);
        }
    }
}

#[tokio::test]
async fn a_body_that_is_no_review_is_a_bad_request() {
    let server = default().await;
    let mut client = Client::connect(server.address, Version::Http1).await;
    for body in [
        "",
        "garbage",
        "{}",
        "[1]",
        r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}"#,
    ] {
        let (status, text) = client.post("/deny", body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert!(!text.is_empty());
    }
    let (status, _) = client.post("/deny", review("u")).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_announced_or_not() {
    let server = default().await;
    let mut announced = connect(server.address, &PAIR, Version::Http1).await.unwrap();
    let head =
        "POST /deny HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 8388609\r\n\r\n";
    announced.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    timeout(PATIENCE, announced.read_exact(&mut start))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&start, b"HTTP/1.1 413");

    let mut chunked = connect(server.address, &PAIR, Version::Http1).await.unwrap();
    let head = "POST /deny HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n800001\r\n";
    chunked.write_all(head.as_bytes()).await.unwrap();
    chunked.write_all(&vec![b' '; 0x80_0001]).await.unwrap();
    chunked.flush().await.unwrap();
    timeout(PATIENCE, chunked.read_exact(&mut start))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&start, b"HTTP/1.1 413");

    let mut client = Client::connect(server.address, Version::Http2).await;
    let mut body = review("u");
    body.resize(8 << 20, b' ');
    let (status, _) = client.post("/deny", body).await;
    assert_eq!(status, StatusCode::OK, "the limit itself is allowed");
}

#[tokio::test]
async fn a_body_that_would_take_too_much_memory_once_it_is_read_is_refused_before() {
    let server = start(server(Limits {
        trees: 1 << 20,
        ..Limits::default()
    }))
    .await;
    let mut client = Client::connect(server.address, Version::Http2).await;
    let list = |count: usize| vec![json!({"": 0}); count];
    let request =
        |count: usize| json!({"uid": "u", "object": {"metadata": {"name": "a"}, "list": list(count)}});
    let review = |count| {
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request(count)})
            .to_string()
    };
    let (status, text) = client.post("/deny", review(2000)).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{text}");
    assert_eq!(client.post("/deny", review(500)).await.0, StatusCode::OK);
    // Of a list to convert, one object counts.
    let lists = |count, of| json!({"request": {"objects": vec![list(of); count]}}).to_string();
    assert_eq!(
        client.post("/convert", lists(1, 2000)).await.0,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    assert_eq!(client.post("/convert", lists(4, 500)).await.0, StatusCode::OK);
    assert_eq!(server.handlers.trees.used(), 0);
}

#[tokio::test]
async fn bodies_that_do_not_fit_together_are_refused_after_a_while() {
    let server = start(server(Limits {
        reviews: 8 << 20,
        room: Duration::from_millis(300),
        ..Limits::default()
    }))
    .await;
    let mut slow = connect(server.address, &PAIR, Version::Http1).await.unwrap();
    let head = "POST /deny HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 8388608\r\n\r\n{";
    slow.write_all(head.as_bytes()).await.unwrap();
    let begun = async {
        while server.handlers.reviews.used() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, begun).await.unwrap();
    let mut client = Client::connect(server.address, Version::Http2).await;
    // No peer displaces its own.
    let (status, _) = client.post("/deny", vec![b' '; 8 << 20]).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let (status, _) = client.post("/convert", "abc").await;
    assert_eq!(status, StatusCode::OK, "conversions have room of their own");
    drop(slow);
    let freed = async { while client.post("/deny", review("u")).await.0 != StatusCode::OK {} };
    timeout(PATIENCE, freed)
        .await
        .expect("room once the body is given up");
    assert_eq!(server.handlers.reviews.used(), 0);
}

#[tokio::test]
async fn conversion_takes_large_bodies_and_reports_what_it_cannot_do() {
    let server = default().await;
    let mut client = Client::connect(server.address, Version::Http2).await;
    assert_eq!(
        client.post("/convert", "abc").await,
        (StatusCode::OK, "cba".into())
    );
    let expected = (StatusCode::BAD_REQUEST, "cannot convert".into());
    assert_eq!(client.post("/convert", "bad").await, expected);
    assert_eq!(
        client.post("/convert", "bug").await.0,
        StatusCode::INTERNAL_SERVER_ERROR
    );
    assert_eq!(server.handlers.metrics.panics(), 1);
    let (status, body) = client.post("/convert", vec![b' '; 9 << 20]).await;
    assert_eq!((status, body.len()), (StatusCode::OK, 9 << 20));
}

#[tokio::test]
async fn unknown_paths_methods_and_types_have_statuses_of_their_own() {
    let server = default().await;
    let mut client = Client::connect(server.address, Version::Http1).await;
    assert_eq!(client.post("/other", "{}").await.0, StatusCode::NOT_FOUND);
    assert_eq!(
        client.post("/healthz", "{}").await.0,
        StatusCode::METHOD_NOT_ALLOWED
    );
    let get = |path: &str| {
        let request = Request::get(path).header("host", "a");
        request.body(Full::new(Bytes::new())).unwrap()
    };
    assert_eq!(client.read(get("/deny")).await.0, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(client.read(get("/healthz")).await, (StatusCode::OK, "ok".into()));
    let with_type = |text: Option<&'static str>| {
        let mut request = post("/deny", review("u"));
        request.headers_mut().remove("content-type");
        if let Some(text) = text {
            request
                .headers_mut()
                .insert("content-type", text.parse().unwrap());
        }
        request
    };
    for wrong in [None, Some("text/plain"), Some("application/jsonp")] {
        assert_eq!(
            client.read(with_type(wrong)).await.0,
            StatusCode::UNSUPPORTED_MEDIA_TYPE
        );
    }
    let right = with_type(Some("Application/JSON; charset=utf-8"));
    assert_eq!(client.read(right).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_review_that_is_decided_later_has_the_same_answer() {
    let server = default().await;
    let mut client = Client::connect(server.address, Version::Http1).await;
    assert_eq!(
        client.post("/later", review("u")).await,
        client.post("/deny", review("u")).await
    );
}

#[tokio::test]
async fn a_handler_that_panics_while_it_waits_denies_its_request_too() {
    let server = default().await;
    let mut client = Client::connect(server.address, Version::Http1).await;
    let (status, body) = client.post("/panic-later", review("u")).await;
    assert_eq!(status, StatusCode::OK);
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["response"]["status"]["code"], 500);
    assert_eq!(server.handlers.metrics.panics(), 1);
    assert_eq!(client.post("/later", review("u")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_handler_that_panics_denies_its_request_and_the_connection_lives_on() {
    let server = default().await;
    let mut client = Client::connect(server.address, Version::Http1).await;
    let (status, body) = client.post("/panic", review("u")).await;
    assert_eq!(status, StatusCode::OK);
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["response"]["uid"], "u");
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(answer["response"]["status"]["code"], 500);
    assert_eq!(server.handlers.metrics.panics(), 1);
    assert_eq!(client.post("/deny", review("u")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_peer_that_stalls_or_sends_garbage_before_tls_is_cut_off() {
    let server = start(server(Limits {
        handshake: Duration::from_secs(2),
        ..Limits::default()
    }));
    let server = server.await;
    // The first is the head of a record that never ends; the second is no TLS at all.
    for bytes in [&[0x16, 3, 1, 2, 0, 1, 0, 1][..], b"GET / HTTP/1.1\r\n\r\n", b""] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        until_closed(&mut stream).await;
    }
    let mut client = Client::connect(server.address, Version::Http2).await;
    assert_eq!(client.post("/deny", review("u")).await.0, StatusCode::OK);
}

#[tokio::test]
async fn peers_that_stall_after_their_hello_do_not_delay_others() {
    let server = default().await;
    let all = async {
        let mut stalled = Vec::new();
        for _ in 0..16 {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            stream.write_all(&hello(&PAIR)).await.unwrap();
            // The server has begun its answer, so its part of the computation is over.
            stream.read_exact(&mut [0; 5]).await.unwrap();
            stalled.push(stream);
        }
        connect(server.address, &PAIR, Version::Http1).await.unwrap();
    };
    let patience = Limits::default().handshake / 5 * 4;
    timeout(patience, all)
        .await
        .expect("nobody waits for the stalled");
}

#[tokio::test]
async fn slow_headers_slow_bodies_and_silence_are_cut_off() {
    let short = Duration::from_millis(1200);
    let limits = Limits {
        header: short,
        body: short,
        idle: short,
        handshake: Duration::from_secs(10),
        ..Limits::default()
    };
    let server = start(server(limits)).await;
    let since = Instant::now();
    for version in [Version::Http1, Version::Http2] {
        let mut silent = connect(server.address, &PAIR, version).await.unwrap();
        until_closed(&mut silent).await;
    }
    let mut slow = connect(server.address, &PAIR, Version::Http1).await.unwrap();
    slow.write_all(b"POST /deny HTTP/1.1\r\nhost: a\r\n")
        .await
        .unwrap();
    until_closed(&mut slow).await;
    let mut slow = connect(server.address, &PAIR, Version::Http1).await.unwrap();
    let head =
        "POST /deny HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
    slow.write_all(head.as_bytes()).await.unwrap();
    let answer = String::from_utf8(until_closed(&mut slow).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(since.elapsed() >= 4 * short, "nothing is cut off at once");
}

#[tokio::test]
async fn at_the_limit_an_idle_connection_is_closed_for_a_new_peer() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let server = start(server(limits)).await;
    let mut crowd = Vec::new();
    for _ in 0..2 {
        let mut polite = connect(server.address, &PAIR, Version::Http1).await.unwrap();
        polite
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .unwrap();
        polite.read_exact(&mut [0; 12]).await.unwrap();
        crowd.push(polite);
    }
    let mut client = Client::connect(server.address, Version::Http2).await;
    assert_eq!(client.post("/deny", review("u")).await.0, StatusCode::OK);
    until_closed(&mut crowd[0]).await;
    let more = timeout(Duration::from_millis(50), async {
        let mut rest = Vec::new();
        crowd[1].read_to_end(&mut rest).await
    });
    assert!(more.await.is_err(), "one is enough");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_does_not_lose_its_own_busy_connections() {
    let (entered, mut has_entered) = tokio::sync::mpsc::unbounded_channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let slow = Handler::Convert(Arc::new(move |_: Vec<u8>| {
        entered.send(()).unwrap();
        released.lock().unwrap().recv().unwrap();
        Ok(vec![b"do".to_vec(), Vec::new(), b"ne".to_vec()])
    }));
    let server = start(WebhookServer {
        routes: BTreeMap::from([("/convert".to_owned(), slow)]),
        limits: Limits {
            connections: 1,
            ..Limits::default()
        },
        ..WebhookServer::default()
    })
    .await;
    let mut client = Client::connect(server.address, Version::Http2).await;
    let answer = tokio::spawn(async move { client.post("/convert", "{}").await });
    has_entered.recv().await.unwrap();
    assert!(connect(server.address, &PAIR, Version::Http1).await.is_err());
    release.send(()).unwrap();
    assert_eq!(answer.await.unwrap(), (StatusCode::OK, "done".into()));
    assert!(connect(server.address, &PAIR, Version::Http1).await.is_ok());
}

#[tokio::test]
async fn a_new_certificate_is_served_at_once_and_old_connections_stay() {
    let server = default().await;
    let mut old = Client::connect(server.address, Version::Http2).await;
    let new = pair();
    let mixed = Pair {
        key_pem: PAIR.key_pem.clone(),
        ..new.clone()
    };
    assert!(server.tls.swap(mixed).is_err());
    assert!(
        connect(server.address, &PAIR, Version::Http1).await.is_ok(),
        "a bad pair changes nothing"
    );
    server.tls.swap(new.clone()).unwrap();
    assert!(connect(server.address, &PAIR, Version::Http1).await.is_err());
    assert!(connect(server.address, &new, Version::Http1).await.is_ok());
    assert_eq!(old.post("/deny", review("u")).await.0, StatusCode::OK);
    assert_eq!(server.tls.pair(), Some(new));
}

#[tokio::test]
async fn without_a_certificate_handshakes_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let tls = Arc::new(Tls::default());
    let (_stop, stopped) = watch::channel(false);
    tokio::spawn(serve(listener, tls.clone(), Arc::default(), stopped));
    assert!(connect(address, &PAIR, Version::Http1).await.is_err());
    tls.swap(PAIR.clone()).unwrap();
    assert!(connect(address, &PAIR, Version::Http1).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_finishes_requests_in_flight_and_refuses_connections() {
    let (entered, mut has_entered) = tokio::sync::mpsc::unbounded_channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let slow = Handler::Convert(Arc::new(move |_: Vec<u8>| {
        entered.send(()).unwrap();
        released.lock().unwrap().recv().unwrap();
        Ok(vec![b"do".to_vec(), Vec::new(), b"ne".to_vec()])
    }));
    let server = start(WebhookServer {
        routes: BTreeMap::from([("/convert".to_owned(), slow)]),
        ..WebhookServer::default()
    });
    let Server {
        address, stop, task, ..
    } = server.await;
    let mut idle = connect(address, &PAIR, Version::Http1).await.unwrap();
    let mut client = Client::connect(address, Version::Http2).await;
    let answer = tokio::spawn(async move { client.post("/convert", "{}").await });
    has_entered.recv().await.unwrap();
    stop.send(true).unwrap();
    until_closed(&mut idle).await;
    // The connection and the listener learn of the stop independently of each other.
    let refused = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, refused).await.expect("the listener to close");
    assert!(!task.is_finished());
    release.send(()).unwrap();
    assert_eq!(answer.await.unwrap(), (StatusCode::OK, "done".into()));
    timeout(PATIENCE, task).await.expect("the server to end").unwrap();
}
