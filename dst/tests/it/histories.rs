//! Random histories, as many as the time allows.

use std::time::Duration;

use kruise_dst::{campaign, enumerate, history::Policy};

fn seconds() -> u64 {
    let given = std::env::var("KRUISE_DST_SECONDS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(60)
}

#[test]
fn random_histories_keep_every_promise_and_end_where_they_should() {
    let limits = campaign::Limits {
        time: Duration::from_secs(seconds()),
        histories: u64::MAX,
        failures: 1,
    };
    let tally = campaign::run(1, 2, limits).unwrap();
    println!("{tally}");
    assert!(tally.failures.is_empty() && tally.silent().is_empty(), "{tally}");
    // A run too short to show anything must not pass for one that did.
    assert!(tally.rich > 0 || seconds() < 30, "{tally}");
}

/// Every seventeenth: `kruise-dst enumerate` takes all of them.
#[test]
fn a_crash_after_a_write_here_and_there_is_survived() {
    for policy in [Policy::InPlaceIfPossible, Policy::ReCreate] {
        let enumerated = enumerate::run(policy, 17, 2).unwrap();
        assert!(enumerated.writes > 80, "{}", enumerated.writes);
        assert!(enumerated.failures.is_empty(), "{:?}", enumerated.failures);
    }
}
