//! The agents of nodes, as the cluster knows them: which process each node has, and which calls of container
//! runtimes wait for an answer.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_sim::runtime::{Answer, Call, CallId, Error};
use tokio::sync::{oneshot, watch};

use super::process::ProcessId;

/// A call of a container runtime that an agent makes, as oracles see it.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeCall<'a> {
    /// Who makes it.
    pub process: ProcessId,
    /// The node.
    pub node: &'a str,
    /// The call.
    pub call: &'a Call,
    /// When.
    pub now: Timestamp,
}

/// What resolves with the answer to a call.
pub type Waiting = oneshot::Receiver<Result<Answer, Error>>;

/// The agents of all nodes.
#[derive(Debug, Default)]
pub struct Agents {
    nodes: BTreeMap<String, Agent>,
    /// Agents that were started.
    started: u32,
    waiting: BTreeMap<CallId, oneshot::Sender<Result<Answer, Error>>>,
    /// An agent dies at this share of the stops of containers, in percent.
    pub dying: u8,
}

/// The agent of a node.
#[derive(Debug, Default)]
struct Agent {
    process: Option<ProcessId>,
    is_away: watch::Sender<bool>,
    /// How often the connection to the runtime has ended.
    ends: watch::Sender<u64>,
}

impl Agents {
    fn of(&mut self, node: &str) -> &mut Agent {
        self.nodes.entry(node.to_owned()).or_default()
    }

    /// A process starts on a node.
    pub fn start(&mut self, node: &str) -> ProcessId {
        let id = ProcessId::agent(self.started);
        self.started += 1;
        self.of(node).process = Some(id);
        id
    }

    /// The process of a node, dead or alive.
    pub fn process(&mut self, node: &str) -> Option<ProcessId> {
        self.of(node).process
    }

    /// Whether the agent of a node is away: while it is, none is started.
    pub fn set_away(&mut self, node: &str, is_away: bool) {
        self.of(node).is_away.send_replace(is_away);
    }

    /// Whether the agent of a node is away.
    pub fn is_away(&mut self, node: &str) -> watch::Receiver<bool> {
        self.of(node).is_away.subscribe()
    }

    /// The runtime of a node has ended, and with it the connection.
    pub fn disconnect(&mut self, node: &str) {
        self.of(node).ends.send_modify(|ends| *ends += 1);
    }

    /// Counts the ends of the connection to the runtime of a node.
    pub fn connection(&mut self, node: &str) -> watch::Receiver<u64> {
        self.of(node).ends.subscribe()
    }

    /// Receives the answer to a call.
    pub fn wait(&mut self, id: CallId) -> Waiting {
        let (sender, receiver) = oneshot::channel();
        self.waiting.insert(id, sender);
        receiver
    }

    /// A call is answered.
    pub fn answered(&mut self, id: CallId, answer: Result<Answer, Error>) {
        if let Some(waiting) = self.waiting.remove(&id) {
            // Who made it may not wait any more.
            let _nobody = waiting.send(answer);
        }
    }

    /// Forgets who waits for the answer to a call. False if nobody did.
    pub fn give_up(&mut self, id: CallId) -> bool {
        self.waiting.remove(&id).is_some()
    }
}
