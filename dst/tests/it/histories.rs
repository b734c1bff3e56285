//! Random histories, as many as the time allows.

use std::time::Duration;

use kruise_dst::{campaign, enumerate, history::Policy};

/// Without other wishes: seeds that are played before each change, whatever the speed of a machine.
const HISTORIES: u64 = 300;

/// `KRUISE_DST_SECONDS` plays as many as so long allows.
fn limits() -> campaign::Limits {
    let given = std::env::var("KRUISE_DST_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    campaign::Limits {
        of: campaign::Of::All,
        time: Duration::from_secs(given.unwrap_or(60)),
        histories: given.map_or(HISTORIES, |_| u64::MAX),
        failures: 1,
    }
}

#[test]
fn random_histories_keep_every_promise_and_end_where_they_should() {
    let tally = campaign::run(1, 2, limits()).unwrap();
    println!("{tally}");
    assert!(tally.failures.is_empty() && tally.silent().is_empty(), "{tally}");
    // A run too short to show anything must not pass for one that did.
    assert!(tally.rich > 0 || tally.histories < 10, "{tally}");
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
