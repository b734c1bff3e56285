use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use kube_client::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::{Client, Settings};
use crate::ApiError;

fn settings() -> Settings {
    Settings {
        user_agent: "kruise-manager/test".into(),
        timeout: Duration::from_millis(200),
        rate: None,
        host: "here".into(),
        observer: None,
    }
}

/// A client of a server that gives its n-th answer with `answer(n)`, and the count of its requests.
fn client_of(answer: fn(usize) -> Response<Body>) -> (Client, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    let service = service_fn(move |request: Request<Body>| {
        assert_eq!(request.headers()["user-agent"], "kruise-manager/test");
        let n = seen.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, std::io::Error>(answer(n)) }
    });
    (
        Client::new(kube_client::Client::new(service, "default"), settings()),
        count,
    )
}

fn answer(code: u16, body: &'static str) -> Response<Body> {
    let response = Response::builder().status(code).header("retry-after", "0");
    response.body(Body::from(body.as_bytes().to_vec())).unwrap()
}

#[tokio::test]
async fn a_write_answered_429_is_repeated() {
    let (client, count) = client_of(|n| {
        if n < 2 {
            answer(429, "{}")
        } else {
            answer(201, "{}")
        }
    });
    assert_eq!(
        client.create::<Value>("/api/v1/pods", &json!({})).await,
        Ok(json!({}))
    );
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn patience_with_429_is_bounded() {
    let (client, count) = client_of(|_| answer(429, "{}"));
    let error = client.get::<Value>("/api/v1/pods").await.unwrap_err();
    assert!(error.too_many_requests().is_some());
    assert_eq!(count.load(Ordering::SeqCst), 6);
}

#[tokio::test]
async fn a_write_answered_with_a_server_error_is_sent_once() {
    let (client, count) = client_of(|_| answer(504, r#"{"reason":"Timeout","message":"late"}"#));
    let error = client
        .create::<Value>("/api/v1/pods", &json!({}))
        .await
        .unwrap_err();
    assert!(error.may_have_happened());
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_a_timeout() {
    let service =
        service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, std::io::Error>>());
    let client = Client::new(kube_client::Client::new(service, "default"), settings());
    let error = client.get::<Value>("/version").await.unwrap_err();
    assert_eq!(error, ApiError::Timeout(Duration::from_millis(200)));
}

#[tokio::test]
async fn a_watch_gives_whole_lines_and_tells_a_cut_from_a_close() {
    let (client, _) = client_of(|n| {
        answer(
            200,
            if n == 0 {
                "{\"a\":1}\n\n{\"b\":2}\n"
            } else {
                "{\"a\":1}\n{\"b\""
            },
        )
    });
    let mut closed = client.watch("/api/v1/pods?watch=true").await.unwrap();
    assert_eq!(closed.next().await.unwrap().unwrap(), "{\"a\":1}");
    assert_eq!(closed.next().await.unwrap().unwrap(), "{\"b\":2}");
    assert_eq!(closed.next().await, Ok(None));
    let mut cut = client.watch("/api/v1/pods?watch=true").await.unwrap();
    assert!(cut.next().await.unwrap().is_some());
    assert!(matches!(cut.next().await, Err(ApiError::Transport(_))));
}
