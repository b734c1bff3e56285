//! Clients that do not read their answers, and clients that leave.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::Incoming,
    client::conn::http2::{Builder, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kruise_server::{
    listen::Limits,
    webhook::{Decision, Handler, WebhookServer},
};
use serde_json::json;
use tokio::{net::TcpStream, sync::mpsc, time::timeout};
use tokio_rustls::client::TlsStream;

use crate::{
    client::{Client, PAIR, Version, connect, connect_from, post, start},
    webhook::{PATIENCE, review, server},
};

const ROOM: usize = 1 << 20;

/// A review of an object with a name of this length, which is in the answer of `/deny`, too.
fn sized(length: usize) -> Vec<u8> {
    let request = json!({"uid": "u", "object": {"metadata": {"name": "n".repeat(length)}}});
    let review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request});
    review.to_string().into_bytes()
}

/// A client that lets the server send no byte of a body.
async fn never_reads(stream: TlsStream<TcpStream>) -> SendRequest<Full<Bytes>> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(0);
    let (client, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Sends reviews until one is refused. Returns the answers, of which nothing but the head is read.
async fn fill(client: &mut SendRequest<Full<Bytes>>) -> Vec<Response<Incoming>> {
    let mut answers = Vec::new();
    loop {
        let answer = timeout(PATIENCE, client.send_request(post("/deny", sized(100_000)))).await;
        let answer = answer.unwrap().unwrap();
        if answer.status() != StatusCode::OK {
            assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
            return answers;
        }
        answers.push(answer);
    }
}

#[tokio::test]
async fn unread_answers_count_and_give_way_to_a_client_that_reads() {
    let server = start(server(Limits {
        reviews: ROOM,
        room: Duration::from_millis(300),
        ..Limits::default()
    }))
    .await;
    let mut greedy = never_reads(connect(server.address, &PAIR, Version::Http2).await.unwrap()).await;
    let answers = fill(&mut greedy).await;
    let used = server.handlers.reviews.used();
    assert!((8..=10).contains(&answers.len()), "{}", answers.len());
    assert!((ROOM - 200_000..=ROOM).contains(&used), "{used}");

    let stream = connect_from([127, 0, 0, 2], server.address).await;
    let mut good = Client::on(stream, Version::Http2).await;
    assert_eq!(good.post("/deny", sized(100_000)).await.0, StatusCode::OK);
    for answer in answers {
        let body = timeout(PATIENCE, answer.into_body().collect()).await.unwrap();
        assert!(body.is_err(), "its connection is cut off");
    }
    let freed = async {
        while server.handlers.reviews.used() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, freed)
        .await
        .expect("all memory to be free again");
}

#[tokio::test]
async fn a_client_that_does_not_take_its_answer_in_time_is_cut_off() {
    let server = start(server(Limits {
        reviews: ROOM,
        answer: Duration::from_millis(500),
        ..Limits::default()
    }))
    .await;
    let mut silent = never_reads(connect(server.address, &PAIR, Version::Http2).await.unwrap()).await;
    let answer = silent.send_request(post("/deny", sized(100_000))).await.unwrap();
    let body = timeout(PATIENCE, answer.into_body().collect()).await.unwrap();
    assert!(body.is_err());
    // One that reads may stay.
    let mut client = Client::connect(server.address, Version::Http2).await;
    for _ in 0..3 {
        assert_eq!(client.post("/deny", sized(100_000)).await.0, StatusCode::OK);
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    assert_eq!(server.handlers.reviews.used(), 0);
}

/// Reports when it is dropped.
struct Dropped(mpsc::UnboundedSender<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

#[tokio::test]
async fn a_review_whose_client_is_gone_is_cancelled() {
    let (sender, mut events) = mpsc::unbounded_channel();
    let endless = Handler::Review(Arc::new(move |_| {
        let (sender, dropped) = (sender.clone(), Dropped(sender.clone()));
        Decision::Later(Box::pin(async move {
            let _dropped = dropped;
            let _ = sender.send("begun");
            std::future::pending().await
        }))
    }));
    let server = start(WebhookServer {
        routes: [("/endless".to_owned(), endless)].into(),
        ..WebhookServer::default()
    })
    .await;
    let mut next = async || timeout(PATIENCE, events.recv()).await.unwrap().unwrap();

    // A stream that is reset.
    let mut client = Client::connect(server.address, Version::Http2).await;
    {
        let mut waiting = std::pin::pin!(client.send(post("/endless", review("u"))));
        tokio::select! {
            _ = &mut waiting => panic!("there is no answer"),
            event = next() => assert_eq!(event, "begun"),
        }
    }
    assert_eq!(next().await, "dropped");

    // Connections that are closed.
    for version in [Version::Http1, Version::Http2] {
        let address = server.address;
        let leaving = tokio::spawn(async move {
            let mut stream = connect(address, &PAIR, version).await.unwrap();
            send_raw(&mut stream, version).await;
            std::future::pending::<()>().await;
        });
        assert_eq!(next().await, "begun");
        leaving.abort();
        assert_eq!(next().await, "dropped", "{version:?}");
    }
    let freed = async {
        while server.handlers.reviews.used() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, freed)
        .await
        .expect("all memory to be free again");
}

/// Sends a review, and reads nothing.
async fn send_raw(stream: &mut TlsStream<TcpStream>, version: Version) {
    use tokio::io::AsyncWriteExt as _;

    use crate::frames::{DATA, END_STREAM, PREFACE, frame, post_head, setting};

    let body = review("u");
    let request = match version {
        Version::Http1 => {
            let head = format!(
                "POST /endless HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            [head.as_bytes(), &body].concat()
        }
        Version::Http2 => [
            PREFACE,
            &setting(3, 100),
            &post_head(1, "/endless", body.len()),
            &frame(DATA, END_STREAM, 1, &body),
        ]
        .concat(),
    };
    stream.write_all(&request).await.unwrap();
}
