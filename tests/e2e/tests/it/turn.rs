//! How a scenario shares its cluster with others.
//!
//! `cargo xtask e2e` runs each test as a process and never runs tests of different turns on one cluster at a time.
//! It knows the turn of a test from `xtask/assets/turns.txt`, and a test that would take another one fails.

/// What else may run on the cluster meanwhile, and with which flags the manager runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Other scenarios; the manager has its default flags.
    Shared,
    /// Other scenarios that need feature gates; the manager has all of them on.
    Gated,
    /// Nothing: the scenario crashes the manager, changes definitions or counts requests of the whole cluster.
    Alone,
}

impl Turn {
    /// Panics unless the test was given this turn.
    pub(crate) fn check(self) {
        let needed = match self {
            Self::Shared => "shared",
            Self::Gated => "gated",
            Self::Alone => "alone",
        };
        let given = crate::cluster::variable("KRUISE_E2E_TURN");
        assert_eq!(
            given, needed,
            "xtask/assets/turns.txt gives this test another turn than it takes"
        );
    }
}
