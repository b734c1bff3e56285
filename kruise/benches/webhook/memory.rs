//! The memory that a million reviews leave allocated.

use std::time::Duration;

use tikv_jemalloc_ctl::{epoch, stats};
use tokio::runtime::Runtime;

use crate::process::{Process, answer, review};

/// Changes of the caches meanwhile.
const CHANGES: usize = 100;

/// Number of different pods.
const PODS: usize = 1000;

/// Memory in bytes.
#[derive(Clone, Copy)]
struct MemoryUse {
    /// Allocated.
    allocated: usize,
    /// Resident pages, with those that the allocator keeps for later.
    resident: usize,
}

impl MemoryUse {
    /// The minimum of several samples: short allocations, such as those for a watch event, do not count.
    fn settled() -> Self {
        let samples = (0..20).map(|_| {
            std::thread::sleep(Duration::from_millis(100));
            epoch::advance().unwrap();
            Self {
                allocated: stats::allocated::read().unwrap(),
                resident: stats::resident::read().unwrap(),
            }
        });
        samples.min_by_key(|sample| sample.allocated).unwrap()
    }

    fn print(self, reviews: usize) {
        let [allocated, resident] =
            [self.allocated, self.resident].map(|bytes| bytes as f64 / f64::from(1 << 20));
        println!("after {reviews} reviews {allocated:.2} MiB are allocated, {resident:.1} MiB resident");
    }
}

/// Reviews so many pods while SidecarSets and namespaces change. Returns how many more bytes are allocated after
/// the last review than after a tenth of them.
pub fn growth(runtime: &Runtime, process: &Process, reviews: usize) -> usize {
    let reviewer = process.reviewer();
    let bodies: Vec<Vec<u8>> = (0..PODS).map(review).collect();
    let mut tenth = None;
    for number in 0..reviews {
        if number % (reviews / CHANGES) == 0 {
            process.change_objects(number);
        }
        if number == reviews / 10 {
            tenth = Some(MemoryUse::settled());
        }
        answer(runtime, &*reviewer, &bodies[number % PODS]);
    }
    let (tenth, last) = (tenth.unwrap(), MemoryUse::settled());
    tenth.print(reviews / 10);
    last.print(reviews);
    last.allocated.saturating_sub(tenth.allocated)
}
