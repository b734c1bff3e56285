use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use kube_client::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::service_fn;

use super::{Client, Form, PAGE_BYTES, Settings};
use crate::ApiError;

/// Requested duration of the watches.
const LASTING: Duration = Duration::from_mins(5);

fn settings() -> Settings {
    Settings::of_a_test(Duration::from_millis(200))
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
async fn repeats_after_429_are_limited() {
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
async fn a_request_without_a_response_times_out() {
    let service =
        service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, std::io::Error>>());
    let client = Client::new(kube_client::Client::new(service, "default"), settings());
    let error = client.get::<Value>("/version").await.unwrap_err();
    assert_eq!(error, ApiError::Timeout(Duration::from_millis(200)));
}

#[tokio::test]
async fn a_watch_returns_whole_lines_and_fails_if_cut_within_one() {
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
    let mut closed = client
        .watch("/api/v1/pods?watch=true", Form::Whole, LASTING)
        .await
        .unwrap();
    assert_eq!(closed.next().await.unwrap().unwrap(), "{\"a\":1}");
    assert_eq!(closed.next().await.unwrap().unwrap(), "{\"b\":2}");
    assert_eq!(closed.next().await, Ok(None));
    let mut cut = client
        .watch("/api/v1/pods?watch=true", Form::Whole, LASTING)
        .await
        .unwrap();
    assert!(cut.next().await.unwrap().is_some());
    assert!(matches!(cut.next().await, Err(ApiError::Transport(_))));
}

/// A client of a server whose answers of this code send `line`, and again after each pause, without end.
fn endless_client(code: u16, line: &'static str, pause: Duration) -> Client {
    let service = service_fn(move |_: Request<Body>| async move {
        let frames = stream::unfold(Duration::ZERO, move |wait| async move {
            tokio::time::sleep(wait).await;
            let frame = Full::new(Bytes::from_static(line.as_bytes())).frame().await?;
            Some((frame, pause))
        });
        let response = Response::builder().status(code);
        Ok::<_, std::io::Error>(response.body(StreamBody::new(frames)).unwrap())
    });
    Client::new(kube_client::Client::new(service, "default"), settings())
}

#[tokio::test]
async fn a_page_or_a_line_of_a_watch_that_is_too_large_is_an_error_before_it_is_read_to_its_end() {
    let piece: &str = Box::leak(" ".repeat(1 << 20).into_boxed_str());
    let client = endless_client(200, piece, Duration::ZERO);
    let too_large = Err(ApiError::TooLarge(PAGE_BYTES));
    let page = client.page("/api/v1/pods?limit=500", Form::Whole).await;
    assert_eq!(page.map(|_| ()), too_large);
    let mut watch = client
        .watch("/api/v1/pods?watch=true", Form::Whole, LASTING)
        .await
        .unwrap();
    assert_eq!(watch.next().await.map(|_| ()), too_large);
}

#[tokio::test]
async fn only_a_few_large_pages_are_in_memory_at_a_time_and_small_ones_do_not_wait() {
    let (client, _) = client_of(|_| answer(200, " "));
    let (large, _) = client_of(|_| Response::new(Body::from(vec![b' '; 2 << 20])));
    let large = Client {
        large_pages: client.large_pages.clone(),
        ..large
    };
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(large.page("/api/v1/pods", Form::Whole).await.unwrap());
    }
    let waiting = large
        .named("kruise-manager/test")
        .page("/api/v1/pods", Form::Whole)
        .await;
    assert_eq!(
        waiting.map(|_| ()),
        Err(ApiError::Timeout(Duration::from_millis(200)))
    );
    assert_eq!(client.page("/api/v1/pods", Form::Whole).await.unwrap().len(), 1);
    drop(held.pop());
    assert_eq!(
        large.page("/api/v1/pods", Form::Whole).await.unwrap().len(),
        2 << 20
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_events_times_out_once_bookmarks_are_overdue() {
    let client = endless_client(200, "{\"a\":1}\n{\"b\"", Duration::MAX);
    let mut watch = client
        .watch("/api/v1/pods?watch=true", Form::Whole, LASTING)
        .await
        .unwrap();
    assert!(watch.next().await.unwrap().is_some());
    let begun = Instant::now();
    let end = tokio::time::timeout(LASTING, watch.next()).await.unwrap();
    assert!(matches!(end, Err(ApiError::Timeout(_))), "{end:?}");
    assert!((120..=180).contains(&begun.elapsed().as_secs()), "{begun:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_times_out_shortly_after_its_requested_duration() {
    let client = endless_client(200, "{}\n", Duration::from_mins(1));
    let mut watch = client
        .watch("/api/v1/pods?watch=true", Form::Whole, LASTING)
        .await
        .unwrap();
    let begun = Instant::now();
    let end = loop {
        match watch.next().await {
            Ok(line) => assert!(line.is_some() && begun.elapsed() < LASTING * 2),
            Err(error) => break error,
        }
    };
    assert!(matches!(end, ApiError::Timeout(_)), "{end:?}");
    assert_eq!(begun.elapsed(), LASTING + Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_refusal_of_a_watch_times_out() {
    let client = endless_client(403, "{", Duration::MAX);
    let opening = client.watch("/api/v1/pods?watch=true", Form::Whole, LASTING);
    let error = tokio::time::timeout(LASTING, opening).await.unwrap().err();
    assert_eq!(error, Some(ApiError::Timeout(Duration::from_millis(200))));
}

#[tokio::test(start_paused = true)]
async fn a_named_client_does_not_wait_for_the_rate_of_another_and_its_clones_share_one() {
    let service = service_fn(|_: Request<Body>| async { Ok::<_, std::io::Error>(answer(200, "{}")) });
    let limited = Settings {
        rate: Some((1.0, 1)),
        ..settings()
    };
    let busy = Client::new(kube_client::Client::new(service, "default"), limited);
    let lease = busy.named("kruise-manager/leader-election");
    let begun = Instant::now();
    let crowd = futures::future::join_all((0..10).map(|_| {
        let busy = busy.clone();
        async move { busy.get::<Value>("/version").await }
    }));
    let lone = async {
        lease.get::<Value>("/version").await.unwrap();
        begun.elapsed()
    };
    let (_, waited) = futures::join!(crowd, lone);
    assert_eq!(waited, Duration::ZERO);
    assert_eq!(begun.elapsed().as_secs(), 9);
}

#[tokio::test]
async fn may_list_returns_false_on_403_and_an_error_on_server_failures() {
    for (code, expected) in [(200, Some(true)), (403, Some(false)), (401, None), (500, None)] {
        let service = service_fn(move |request: Request<Body>| async move {
            assert_eq!(request.uri(), "/api/v1/pods?limit=1");
            let body = if code == 200 { r#"{"items": []}"# } else { "{}" };
            Ok::<_, std::io::Error>(answer(code, body))
        });
        let client = Client::new(kube_client::Client::new(service, "default"), settings());
        let may = crate::discovery::may_list(&client, "/api/v1/pods").await;
        assert_eq!(may.ok(), expected, "{code}");
    }
}
