//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // A charge takes nothing from what a budget allows.
    bug(
        "ChargeUnpaid",
        1,
        &[
            "charges are paid from what is allowed",
            "as many pods stay available as the budget demands",
        ],
    ),
    // A dry run is charged.
    bug("DryRunCharged", 1, &["dry runs charge nothing"]),
    // A request passes although its charge lost a race.
    bug("LostRaceCharged", 1, &["disruptions are charged first"]),
    // A request passes before its charge is stored.
    bug("ChargeAfterRequest", 1, &["disruptions are charged first"]),
    // A plan takes pods out of service without asking their budgets.
    bug("BudgetUnasked", 1, &["disruptions are charged first"]),
];
