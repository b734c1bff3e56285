//! ContainerRecreateRequests for pods on nodes with the agents that are shipped. Agents are away, or die between a
//! stop and its report; container runtimes are slow, or away.

mod bugs;
mod generate;
mod oracles;
pub mod start;
mod user;

use crate::rules::prelude::*;
use crate::subjects::node_agents::{AgentEdit, RuntimeFault};
pub use oracles::{Stops, has_ended, is_open};
use start::{Edit, NAME, Recreate, Start};
pub use start::{POD_UID, REQUESTS};

/// ContainerRecreateRequests.
pub static SUBJECT: Subject = Subject {
    bugs: bugs::BUGS,
    name: NAME,
    component: Some("containerrecreaterequest-controller"),
    definitions: &[&kruise_api::containerrecreaterequest::KIND],
    resources: &[REQUESTS, PODS, NODES],
    // A manager waits for agents, which die and come back at times of their own.
    is_paced_by_users: true,
    scenario: Some(generate::generate),
    clean: || vec![("ContainerRecreateRequest", clean())],
    is_release: |change| {
        says(
            change,
            |edit: &Edit| matches!(edit, Edit::Agent(_, edit) if edit.is_release()),
        )
    },
    owns: |pod, _| pod.label("app") == "cart",
    least: &[(REQUESTS, 12)],
    begin: |scenario| {
        let oracles = oracles::ContainerRecreateRequestOracles::default();
        begun(scenario.start::<Start>(NAME)?, oracles)
    },
    ..Subject::PLAIN
};

/// Requests one beside the other and one after the other, with grace periods and an agent that is away, while
/// nothing fails.
fn clean() -> Scenario {
    let start = Start {
        pods: 6,
        ungated: 1,
        dying: 20,
    };
    let request = |pod, unready, ttl| {
        let recreate = Recreate {
            all: true,
            ordered: false,
            force: false,
            grace: None,
            started: 0,
            unready,
            deadline: None,
            ttl,
        };
        Edit::Request(pod, recreate)
    };
    let slow = |by| Edit::Agent(2, AgentEdit::Runtime(RuntimeFault::Slow(by)));
    let mut edits = vec![
        (130_000, slow(300)),
        (160_000, slow(0)),
        (170_000, Edit::Agent(1, AgentEdit::Silent(true))),
        (172_000, request(0, Some(2), Some(5))),
        (174_000, Edit::Pod(1)),
        (240_000, Edit::Agent(1, AgentEdit::Silent(false))),
    ];
    for round in 0..4 {
        let at = 12_000 + u64::from(round) * 40_000;
        let mut add = |after, edit| edits.push((at + after, edit));
        for pod in 0..4 {
            let unready = (pod % 2 == 0).then_some(3);
            add(u64::from(pod) * 1_000, request(pod, unready, Some(5)));
        }
        add(4_500, request(0, Some(2), Some(5)));
        add(5_000, request(1, Some(2), None));
        add(6_000, Edit::Delete(round));
    }
    edits.sort_by_key(|(at, _)| *at);
    Scenario::of_edits(NAME, &start, edits)
}
