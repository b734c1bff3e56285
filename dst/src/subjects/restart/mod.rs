//! `kruise restart` on a CloneSet whose pods are on nodes with the agents that are shipped. Users run the command,
//! interrupt it and run it again, scale, and delete pods. Its requests meet the same faults as those of managers.
//!
//! Its scenarios have the subjects of the CloneSet and of ContainerRecreateRequests, too, so that their oracles
//! judge what managers and agents make of the requests.

mod bugs;
mod generate;
mod oracles;
mod runs;
mod start;
mod user;

use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::{CLONESETS, NAME as CLONESET};
use crate::subjects::cloneset::edit::Edit as SetEdit;
use crate::subjects::cloneset::start::{Policy, Start as Set};
use crate::subjects::containerrecreaterequest::REQUESTS;
use crate::subjects::containerrecreaterequest::start::{NAME as REQUEST, Start as Agents};
use oracles::RestartOracles;
use start::{Edit, NAME, Order, Start};

/// The command that restarts containers of a workload.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    resources: &[CLONESETS, REQUESTS, PODS],
    // Nothing is restarted between two looks of a run, nor between two runs.
    is_paced_by_users: true,
    scenario: Some(generate::generate),
    clean: || vec![("restart", clean())],
    begin: |scenario| {
        let start: Start = scenario.start(NAME)?;
        let oracles = RestartOracles::default();
        let runs = oracles.runs.clone();
        begun(user::RestartUser { start, runs }, oracles)
    },
    ..Subject::PLAIN
};

/// A run, one that is interrupted half-way while the CloneSet grows, and one after it, while nothing fails.
fn clean() -> Scenario {
    let set = Set {
        batches: true,
        ..Set::plain(5, Policy::InPlaceIfPossible)
    };
    let order = |both, unready| Order {
        both,
        ordered: false,
        unready,
        timeout: 120,
        keep: 60,
    };
    let (plain, slow) = (order(false, None), order(true, Some(2)));
    let of_set = |edit: SetEdit| Action::edit(CLONESET, &edit);
    let runs = |edit: Edit| Action::edit(NAME, &edit);
    let steps = [
        (12_000, runs(Edit::Run(slow.clone()))),
        (90_000, of_set(SetEdit::MaxUnavailable("1".into()))),
        (91_000, runs(Edit::Run(plain.clone()))),
        (96_000, of_set(SetEdit::Scale(6))),
        (99_500, runs(Edit::Again(slow))),
    ];
    let agents = Agents {
        pods: 0,
        ungated: 0,
        dying: 0,
    };
    Scenario::clean(
        [
            (CLONESET, stored(&set)),
            (REQUEST, stored(&agents)),
            (NAME, stored(&Start { last: plain })),
        ],
        steps,
    )
}
