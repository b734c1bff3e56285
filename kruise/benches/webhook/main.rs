//! The pod webhook of a manager's process with 200 SidecarSets: `cargo bench -p kruise --features bench --bench
//! webhook`.
//!
//! - `handler`: from the bytes of a request to those of its response. The 99th percentile of reviews that were not
//!   preempted is 1 ms at most.
//! - `socket`: over TLS, 500 reviews a second. The 99th percentile, from when a review was due, is 15 ms at most.
//! - `garbage`: the same within 20 ms, while 32 connections are misused and 50 a second are opened to send garbage.
//! - `memory`: a million reviews while SidecarSets and namespaces change. After the last one, 2 MiB more are
//!   allocated at most than after a tenth of them. Resident memory is printed, too; it has no bar, because the
//!   allocator keeps pages.
//!
//! A word selects: `cargo bench -p kruise --features bench --bench webhook -- memory`. Other load on the machine
//! affects all but the last; a round above the bar is repeated.

#![allow(clippy::disallowed_methods, reason = "a bench measures real time")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a bench that cannot go on ends"
)]

#[path = "../../../admission/benches/among/mod.rs"]
mod among;
mod client;
mod garbage;
mod handler;
mod memory;
mod process;
mod socket;

use std::{process::ExitCode, time::Duration};

use process::Process;
use tokio::runtime::{Builder, Runtime};

/// The allocator of the executable.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const HANDLED: Duration = Duration::from_millis(1);
const ANSWERED: Duration = Duration::from_millis(15);
const ANSWERED_AMONG_GARBAGE: Duration = Duration::from_millis(20);
/// Attempts, because other load on the machine may spoil some.
const ROUNDS: usize = 5;
const REVIEWS: usize = 1_000_000;
const MOST: usize = 2 << 20;

/// A runtime of its own, so that clients share only processors with the server, as other processes do.
fn threads(count: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(count).enable_all().build().unwrap()
}

/// Repeats rounds until the 99th percentile of one is within the bar.
fn holds(what: &str, bar: Duration, mut round: impl FnMut() -> [Duration; 2]) -> bool {
    (0..ROUNDS).any(|_| {
        let [half, most] = round();
        println!("{what}: half within {half:?}, 99 % within {most:?}, bar {bar:?}");
        most <= bar
    })
}

fn main() -> ExitCode {
    // cargo passes `--bench`; what else is given selects.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let (served, good, bad) = (threads(2), threads(1), threads(1));
    let process = served.block_on(Process::start());
    let mut within = true;
    if is_wanted("handler") {
        within &= holds("handler", HANDLED, || handler::percentiles(&served, &process));
    }
    if is_wanted("socket") || is_wanted("garbage") {
        let server = served.block_on(client::Server::start(&process));
        let mut round = || good.block_on(socket::percentiles(&server));
        if is_wanted("socket") {
            within &= holds("over TLS, 500 a second", ANSWERED, &mut round);
        }
        if is_wanted("garbage") {
            let _garbage = garbage::start(&bad, &server);
            within &= holds("the same among garbage", ANSWERED_AMONG_GARBAGE, &mut round);
        }
    }
    if is_wanted("memory") {
        let grown = memory::growth(&served, &process, REVIEWS);
        println!("{grown} bytes more, bar {MOST}");
        within &= grown <= MOST;
    }
    if within {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
