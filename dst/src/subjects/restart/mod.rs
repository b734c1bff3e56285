//! `kruise restart` on a CloneSet whose pods are on nodes with the agents that are shipped. Users run the command, interrupt it and
//! run it again, scale, and delete pods. Its requests meet the same faults as those of managers.
//!
//! Its scenarios have the subjects of the CloneSet and of ContainerRecreateRequests, too, so that their oracles judge what managers
//! and agents make of the requests.

mod generate;
mod oracles;
mod runs;
mod start;
mod user;

use serde_json::Value;
use start::{Edit, NAME, Order, Start};

use super::{
    cloneset::{
        draft::{CLONESETS, NAME as CLONESET},
        edit::Edit as SetEdit,
        start::{Policy, Start as Set},
    },
    containerrecreaterequest::{
        REQUESTS,
        start::{NAME as REQUEST, Start as Agents},
    },
};
use crate::engine::{
    oracles::Oracles,
    resource::{PODS, Resource},
    scenario::{Action, Scenario},
    subject::{Subject, User},
};

/// The command that restarts containers of a workload.
pub struct Restart;

impl Subject for Restart {
    fn name(&self) -> &'static str {
        NAME
    }

    /// It is no controller.
    fn component(&self) -> Option<&'static str> {
        None
    }

    fn definitions(&self) -> Vec<Value> {
        Vec::new()
    }

    fn resources(&self) -> &'static [Resource] {
        &[CLONESETS, REQUESTS, PODS]
    }

    /// Nothing is restarted between two looks of a run, nor between two runs.
    fn is_paced_by_users(&self) -> bool {
        true
    }

    fn scenario(&self, seed: u64) -> Option<Scenario> {
        Some(generate::generate(seed))
    }

    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        vec![("restart", clean())]
    }

    /// Runs end by themselves.
    fn is_release(&self, _: &Value) -> bool {
        false
    }

    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)> {
        let start: Start = scenario.start(NAME)?;
        let runs = runs::Runs::default();
        let oracles = oracles::RestartOracles::new(runs.clone());
        Ok((Box::new(user::RestartUser { start, runs }), Box::new(oracles)))
    }
}

/// A run, one that is interrupted half-way while the CloneSet grows, and one after it, while nothing fails.
fn clean() -> Scenario {
    let set = Set {
        batches: true,
        ..Set::plain(5, Policy::InPlaceIfPossible)
    };
    let order = Order {
        both: true,
        unready: Some(2),
        ..Order::default()
    };
    let of_set = |edit: SetEdit| Action::edit(CLONESET, &edit);
    let runs = |edit: Edit| Action::edit(NAME, &edit);
    let steps = [
        (12_000, runs(Edit::Run(order.clone()))),
        (90_000, of_set(SetEdit::MaxUnavailable("1".into()))),
        (91_000, runs(Edit::Run(Order::default()))),
        (96_000, of_set(SetEdit::Scale(6))),
        (99_500, runs(Edit::Again(order))),
    ];
    let value = |start: serde_json::Result<Value>| start.unwrap_or_default();
    let agents = Agents {
        pods: 0,
        ungated: 0,
        dying: 0,
    };
    Scenario::clean(
        [
            (CLONESET, value(serde_json::to_value(set))),
            (REQUEST, value(serde_json::to_value(agents))),
            (NAME, value(serde_json::to_value(Start::default()))),
        ],
        steps,
    )
}
