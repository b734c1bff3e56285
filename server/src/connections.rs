//! The connections of one listener.
//!
//! When all are taken, one of the peer that holds most gives way to the newcomer; see [`share`](crate::share).

use std::{collections::VecDeque, net::IpAddr, sync::Arc, time::Duration};

use tokio::{
    task::{AbortHandle, JoinSet},
    time::timeout,
};

use crate::{
    activity::Activity,
    share::{Claim, gives_way},
};

/// Connections told to leave that are given the time to do so.
const LEAVING: usize = 64;

/// Connections that are open, and those about to close.
pub(crate) struct Connections {
    limit: usize,
    open: Vec<Open>,
    leaving: VecDeque<AbortHandle>,
    tasks: JoinSet<()>,
}

struct Open {
    peer: IpAddr,
    activity: Arc<Activity>,
    task: AbortHandle,
}

impl Connections {
    /// At most `limit` of them, not counting those told to leave.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            open: Vec::new(),
            leaving: VecDeque::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Makes room for another connection of `peer`, if there is not; tells whether there is then.
    pub(crate) fn make_room(&mut self, peer: IpAddr) -> bool {
        self.open.retain(|open| !open.task.is_finished());
        if self.open.len() < self.limit {
            return true;
        }
        let claims: Vec<Claim> = self.open.iter().map(Open::claim).collect();
        let Some(at) = gives_way(&claims, peer, 1) else {
            return false;
        };
        let left = self.open.swap_remove(at);
        tracing::debug!(peer = %left.peer, "too many connections, closing one");
        left.activity.leave();
        self.leaving.push_back(left.task);
        if self.leaving.len() > LEAVING
            && let Some(first) = self.leaving.pop_front()
        {
            first.abort();
        }
        true
    }

    /// Serves a connection for which there is room.
    pub(crate) fn spawn(
        &mut self,
        peer: IpAddr,
        activity: Arc<Activity>,
        connection: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = self.tasks.spawn(connection);
        self.open.push(Open { peer, activity, task });
    }

    /// Resolves when a connection has ended; never if there is none.
    pub(crate) async fn ended(&mut self) {
        match self.tasks.join_next().await {
            Some(_) => {}
            None => std::future::pending().await,
        }
    }

    /// Waits until all have ended, and closes those that have not within `patience`.
    pub(crate) async fn drain(mut self, patience: Duration) {
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(patience, ended).await.is_err() {
            tracing::warn!(count = self.tasks.len(), "closing connections still in use");
        }
        self.tasks.shutdown().await;
    }
}

impl Open {
    fn claim(&self) -> Claim {
        let (state, since) = self.activity.state();
        Claim {
            peer: self.peer,
            amount: 1,
            state,
            since,
        }
    }
}
