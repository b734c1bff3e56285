//! Durations of reviews without a socket.

use std::{
    fs,
    time::{Duration, Instant},
};

use tokio::runtime::Runtime;

use crate::process::{Process, answer, review};

const REVIEWS: usize = 20_000;

/// How often this thread was preempted.
fn interrupted() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

/// Median and 99th percentile of the durations of reviews that were not preempted.
pub fn percentiles(runtime: &Runtime, process: &Process) -> [Duration; 2] {
    let reviewer = process.reviewer();
    let bodies: Vec<Vec<u8>> = (0..100).map(review).collect();
    let mut took = Vec::with_capacity(REVIEWS);
    for number in 0..REVIEWS {
        let before = interrupted();
        let start = Instant::now();
        answer(runtime, &*reviewer, &bodies[number % bodies.len()]);
        let time = start.elapsed();
        if interrupted() == before {
            took.push(time);
        }
    }
    assert!(
        took.len() > REVIEWS / 2,
        "the machine is too busy: {}",
        took.len()
    );
    took.sort_unstable();
    [50, 99].map(|share| took[took.len() * share / 100])
}
