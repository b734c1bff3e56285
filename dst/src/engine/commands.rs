//! Commands that users run: the code of the executable, over the same faulty network as managers, by the virtual clock.
//!
//! A command is a process. It ends by itself, or it is interrupted at any moment: then it is off the network, and
//! its future is dropped.

use std::sync::Arc;

use kruise_runtime::{Client, Clock, client};

use super::{
    cluster::Cluster,
    network::link::{self, PATIENCE},
    process::{Process, ProcessId},
};

/// A command begins, under this user agent: its process, and its connection.
pub fn begin(cluster: &Arc<Cluster>, user_agent: &str) -> (ProcessId, Client) {
    let (id, now) = cluster.look(|state| {
        let commands = state.processes.keys().filter(|id| id.is_command());
        let id = ProcessId::command(commands.count() as u32);
        state.processes.insert(id, Process::sequential());
        (id, state.now())
    });
    let settings = client::Settings {
        user_agent: user_agent.into(),
        timeout: PATIENCE,
        rate: None,
        host: "sim".into(),
        observer: None,
        clock: Clock::starting_at(now),
    };
    (id, Client::new(link::client(cluster, id), settings))
}

/// Waits for the end of a command. None if it is interrupted.
pub async fn ended<T>(cluster: &Arc<Cluster>, id: ProcessId, command: impl Future<Output = T>) -> Option<T> {
    let mut death = cluster.look(|state| state.processes.get(&id).map(Process::death))?;
    let ended = tokio::select! {
        biased;
        _ = death.wait_for(|dead| *dead) => None,
        ended = command => Some(ended),
    };
    cluster.look(|state| state.kill(id));
    ended
}

/// Interrupts a command. False if it has ended.
pub fn interrupt(cluster: &Arc<Cluster>, id: ProcessId) -> bool {
    cluster.look(|state| {
        let is_alive = !state.is_dead(id);
        if is_alive {
            state.kill(id);
            state.counters.fired("command interrupted");
        }
        is_alive
    })
}
