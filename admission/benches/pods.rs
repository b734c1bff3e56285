//! What the webhook costs a pod among 200 SidecarSets, two of which are for it: `cargo bench -p kruise-admission`.
//!
//! Holds that 99 of 100 pods take at most 1 ms, from the decoded request to the answer.

#![allow(clippy::disallowed_methods, reason = "a bench measures real time")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a bench that cannot go on ends")]

mod among;

use kruise_admission::pod::sidecars::Set;
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use std::time::{Duration, Instant};

use among::{SETS, pod_spec, set};
use kruise_admission::{
    Options, Outcome, Request, Response,
    lookup::{Lookup, LookupResult, Lookups},
    pod::{review, sidecars::Sets},
};
use serde_json::json;

const PODS: usize = 20_000;
const BAR: Duration = Duration::from_millis(1);

/// A pod of three containers with ten variables each.
fn request() -> Request {
    let pod = json!({
        "metadata": {"generateName": "web-", "namespace": "shop", "labels": {"app": "web"}},
        "spec": pod_spec("some value"),
    });
    let review = json!({"uid": "u", "operation": "CREATE", "namespace": "shop", "object": pod,
        "kind": {"group": "", "version": "v1", "kind": "Pod"}});
    Request::from_review(review).unwrap()
}

fn main() {
    let sets = LookupResult::all::<Set>(Sets::of((0..SETS).map(set)).into());
    let lookups = Lookups::from_iter([
        (Lookup::all::<Set>(""), sets),
        (
            Lookup::all::<PodUnavailableBudget>("shop"),
            LookupResult::all::<PodUnavailableBudget>(Vec::new()),
        ),
    ]);
    let request = request();
    let mut times: Vec<Duration> = (0..PODS)
        .map(|_| {
            let start = Instant::now();
            let outcome = review(&request, Options::default(), &lookups);
            let time = start.elapsed();
            let Outcome::Response(Response::Allow { patch: Some(_), .. }) = outcome else {
                panic!("not injected: {outcome:?}")
            };
            time
        })
        .collect();
    times.sort_unstable();
    let at = |share: usize| times.get(PODS * share / 100).copied().unwrap_or_default();
    let (middle, most) = (at(50), at(99));
    println!(
        "{SETS} sets, {PODS} pods with two of them each: half within {middle:?}, 99 % within {most:?}, bar {BAR:?}"
    );
    assert!(most <= BAR, "too slow");
}
