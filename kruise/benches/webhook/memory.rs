//! What stays of reviews: nothing.

use std::time::Duration;

use tikv_jemalloc_ctl::{epoch, stats};
use tokio::runtime::Runtime;

use crate::process::{Process, answer, review};

/// How often caches change meanwhile.
const STIRRED: usize = 100;

/// Pods that are reviewed again and again.
const PODS: usize = 1000;

/// Bytes.
#[derive(Clone, Copy)]
struct Taken {
    /// Of all that is allocated.
    allocated: usize,
    /// Of the pages that this takes, those that are kept for later among them.
    resident: usize,
}

impl Taken {
    /// What is asked for in passing, by a watch that tells of a change for one, is gone in a moment; what leaks is not.
    fn settled() -> Self {
        let looks = (0..20).map(|_| {
            std::thread::sleep(Duration::from_millis(100));
            epoch::advance().unwrap();
            Self {
                allocated: stats::allocated::read().unwrap(),
                resident: stats::resident::read().unwrap(),
            }
        });
        looks.min_by_key(|look| look.allocated).unwrap()
    }

    fn tell(self, reviews: usize) {
        let [allocated, resident] =
            [self.allocated, self.resident].map(|bytes| bytes as f64 / f64::from(1 << 20));
        println!("after {reviews} reviews {allocated:.2} MiB are allocated, {resident:.1} MiB resident");
    }
}

/// Reviews so many pods, while sets and namespaces change, and returns by how many bytes more are allocated after the
/// last than after a tenth of them.
pub fn growth(runtime: &Runtime, process: &Process, reviews: usize) -> usize {
    let reviewer = process.reviewer();
    let bodies: Vec<Vec<u8>> = (0..PODS).map(review).collect();
    let mut tenth = None;
    for number in 0..reviews {
        if number % (reviews / STIRRED) == 0 {
            process.stir(number);
        }
        if number == reviews / 10 {
            tenth = Some(Taken::settled());
        }
        answer(runtime, &*reviewer, &bodies[number % PODS]);
    }
    let (tenth, last) = (tenth.unwrap(), Taken::settled());
    tenth.tell(reviews / 10);
    last.tell(reviews);
    last.allocated.saturating_sub(tenth.allocated)
}
