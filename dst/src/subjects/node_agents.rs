//! What happens to the agents of nodes, and to their container runtimes.

use kruise_sim::runtime::Fault;

use crate::engine::agents;
use crate::rules::prelude::*;
use crate::subjects::nodes::node_name;

/// What happens to the agent of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum AgentEdit {
    /// It is away, or is back.
    Silent(bool),
    /// It dies, and another one starts.
    Dies,
    /// Something goes wrong with its container runtime, or is put right again.
    Runtime(RuntimeFault),
}

/// What goes wrong with a container runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum RuntimeFault {
    /// It ends.
    Away,
    /// It is there again.
    Back,
    /// Each call takes so many milliseconds longer.
    Slow(u64),
}

impl AgentEdit {
    /// What puts an agent right, whatever is wrong.
    pub const RELEASES: [Self; 3] = [
        Self::Silent(false),
        Self::Runtime(RuntimeFault::Slow(0)),
        Self::Runtime(RuntimeFault::Back),
    ];

    /// Does it put something right?
    pub fn is_release(self) -> bool {
        Self::RELEASES.contains(&self)
    }
}

/// Nodes with agents.
pub const NODES: u64 = 3;

/// What puts all agents right, by the number of their nodes.
pub fn releases() -> impl Iterator<Item = (u8, AgentEdit)> {
    (1..=NODES as u8).flat_map(|node| AgentEdit::RELEASES.map(|release| (node, release)))
}

/// How many numbers [`drawn`] tells apart.
pub const NUMBERS: u64 = 24;

/// The one that a number below [`NUMBERS`] stands for.
pub fn drawn(number: u64, random: &mut Random) -> AgentEdit {
    match number {
        0..10 => AgentEdit::Silent(random.percent(60)),
        10..15 => AgentEdit::Dies,
        15..19 => {
            let slow = random.between(0, 3) * random.between(50, 700);
            AgentEdit::Runtime(RuntimeFault::Slow(slow))
        }
        19..22 => AgentEdit::Runtime(RuntimeFault::Away),
        _ => AgentEdit::Runtime(RuntimeFault::Back),
    }
}

/// Does that to the agent of the node with this number. False if it means nothing now.
pub fn perform(cluster: &Arc<Cluster>, number: u8, edit: AgentEdit) -> bool {
    let node = node_name(number);
    let fault = match edit {
        AgentEdit::Silent(is_away) => {
            agents::set_away(cluster, &node, is_away);
            return true;
        }
        AgentEdit::Dies => return agents::die(cluster, &node),
        AgentEdit::Runtime(RuntimeFault::Away) => Fault::Away,
        AgentEdit::Runtime(RuntimeFault::Back) => Fault::Back,
        AgentEdit::Runtime(RuntimeFault::Slow(more)) => Fault::Slow(Duration::from_millis(more)),
    };
    agents::break_runtime(cluster, &node, fault)
}
