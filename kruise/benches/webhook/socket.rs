//! Durations of reviews over TLS.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::SendRequest;
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

use crate::{
    client::{Server, request},
    process::review,
};

/// Reviews a second.
const RATE: u32 = 500;
const REVIEWS: usize = 10_000;

/// Median and 99th percentile of the durations of reviews.
pub async fn percentiles(server: &Server) -> [Duration; 2] {
    let client = server.target().client().await.unwrap();
    let bodies: Vec<Bytes> = (0..100).map(|number| review(number).into()).collect();
    let mut ticks = interval(Duration::from_secs(1) / RATE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut reviews = JoinSet::new();
    for number in 0..REVIEWS {
        // From when it was due, so that a stall counts for every review that it delays.
        let due = ticks.tick().await.into_std();
        reviews.spawn(post(client.clone(), bodies[number % bodies.len()].clone(), due));
    }
    let mut took = reviews.join_all().await;
    took.sort_unstable();
    [50, 99].map(|share| took[REVIEWS * share / 100])
}

async fn post(mut client: SendRequest<Full<Bytes>>, body: Bytes, due: Instant) -> Duration {
    let response = client.send_request(request(body)).await.unwrap();
    let answer = response.into_body().collect().await.unwrap().to_bytes();
    let took = due.elapsed();
    let text = std::str::from_utf8(&answer).unwrap();
    assert!(text.contains("\"patchType\":\"JSONPatch\""), "{text}");
    took
}
