//! ContainerRecreateRequests for pods on nodes with the agents that are shipped. Agents are away, or die between a stop and its
//! report; container runtimes are slow, or away.

mod bugs;
mod generate;
mod oracles;
pub mod request;
pub mod start;
mod user;

use crate::rules::prelude::*;
use crate::subjects::node_agents::{AgentEdit, RuntimeFault};
pub use oracles::Stops;
pub use start::REQUESTS;
use start::{CONTROLLER, Edit, NAME, Recreate, Start};

/// ContainerRecreateRequests.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some(CONTROLLER),
    definitions: &[&kruise_api::containerrecreaterequest::KIND],
    resources: &[REQUESTS, PODS, NODES],
    // A manager waits for agents, which die and come back at times of their own.
    is_paced_by_users: true,
    scenario: Some(generate::generate),
    clean: || vec![("ContainerRecreateRequest", clean())],
    is_release: |change| says(change, Edit::is_release),
    begin: |scenario| {
        let start: Start = scenario.start(NAME)?;
        let user = user::ContainerRecreateRequestUser { start };
        let oracles = oracles::ContainerRecreateRequestOracles::default();
        begun(user, oracles)
    },
    ..Subject::PLAIN
};

/// Requests one beside the other and one after the other, with grace periods and an agent that is away, while nothing fails.
fn clean() -> Scenario {
    let request = |pod, unready, ttl| {
        Edit::Request(
            pod,
            Recreate {
                unready,
                ttl,
                ..Recreate::default()
            },
        )
    };
    let mut steps = Vec::new();
    let mut add = |at, edit: &Edit| steps.push((at, Action::edit(NAME, edit)));
    for round in 0..4 {
        let at = 12_000 + round * 40_000;
        for pod in 0..4 {
            add(
                at + u64::from(pod) * 1_000,
                &request(pod, (pod % 2 == 0).then_some(3), Some(5)),
            );
        }
        add(at + 4_500, &request(0, Some(2), Some(5)));
        add(at + 5_000, &request(1, Some(2), None));
        add(at + 6_000, &Edit::Delete(round as u8));
    }
    add(
        130_000,
        &Edit::Agent(2, AgentEdit::Runtime(RuntimeFault::Slow(300))),
    );
    add(
        160_000,
        &Edit::Agent(2, AgentEdit::Runtime(RuntimeFault::Slow(0))),
    );
    add(170_000, &Edit::Agent(1, AgentEdit::Silent(true)));
    add(172_000, &request(0, Some(2), Some(5)));
    add(174_000, &Edit::Pod(1));
    add(240_000, &Edit::Agent(1, AgentEdit::Silent(false)));
    steps.sort_by_key(|(at, _)| *at);
    let start = serde_json::to_value(Start::default()).unwrap_or_default();
    Scenario::clean([(NAME, start)], steps)
}
