//! The end of a server, as its clients see it.

use http::StatusCode;
use kruise_server::{health::Check, listen::Limits, plain::PlainServer};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};

use crate::{
    client::{Client, PAIR, Server, Version, connect, secure, start, start_on},
    frames::{DATA, END_STREAM, GOAWAY, PREFACE, frame, post_head, setting, until_closed},
    plain::get,
    webhook::{PATIENCE, review, server},
};

#[tokio::test]
async fn http2_connections_are_closed_by_goaway() {
    let Server {
        address, stop, task, ..
    } = start(server(Limits::default())).await;
    let mut idle = connect(address, &PAIR, Version::Http2).await.unwrap();
    idle.write_all(&[PREFACE, &setting(3, 100)].concat())
        .await
        .unwrap();
    // The server has accepted the connection when it answers on another one.
    let mut client = Client::connect(address, Version::Http2).await;
    assert_eq!(client.post("/deny", review("u")).await.0, StatusCode::OK);
    stop.send(true).unwrap();
    let kinds = timeout(PATIENCE, until_closed(&mut idle)).await.unwrap();
    assert!(kinds.contains(&GOAWAY), "{kinds:?}");
    timeout(PATIENCE, task).await.expect("the server to end").unwrap();
}

#[tokio::test]
async fn a_connection_that_was_opened_before_the_listener_closes_is_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // The kernel completes it, and no server has accepted it yet.
    let waiting = TcpStream::connect(address).await.unwrap();
    let server = start_on(listener, server(Limits::default()));
    server.stop.send(true).unwrap();
    let mut stream = secure(waiting, &PAIR, Version::Http2).await.unwrap();
    let body = review("u");
    let request = [
        PREFACE,
        &setting(3, 100),
        &post_head(1, "/deny", body.len()),
        &frame(DATA, END_STREAM, 1, &body),
    ];
    stream.write_all(&request.concat()).await.unwrap();
    let kinds = timeout(PATIENCE, until_closed(&mut stream)).await.unwrap();
    assert!(kinds.contains(&DATA), "{kinds:?}");
    timeout(PATIENCE, server.task)
        .await
        .expect("the server to end")
        .unwrap();
}

#[tokio::test]
async fn readiness_fails_while_requests_are_still_served() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopping) = watch::channel(false);
    let (_close, closed) = watch::channel(false);
    let health = PlainServer::health(vec![Check::ping()], vec![Check::shutdown(stopping)]);
    tokio::spawn(health.serve(listener, closed));
    assert_eq!(get(address, "/readyz").await, (200, "ok".to_owned()));
    stop.send(true).unwrap();
    let (status, text) = get(address, "/readyz").await;
    assert_eq!(status, 500);
    assert!(text.contains("[-]shutdown failed"), "{text}");
    assert_eq!(get(address, "/healthz").await.0, 200, "it must not be restarted");
    drop(stop);
    assert_eq!(get(address, "/readyz").await.0, 500);
}
