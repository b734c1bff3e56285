//! The connections of one listener.
//!
//! At the limit, a connection of the peer that holds most is closed for the new one; see [`share`](crate::share).

use std::{collections::VecDeque, net::IpAddr, sync::Arc, time::Duration};

use tokio::{
    task::{AbortHandle, JoinSet},
    time::timeout,
};

use crate::{
    activity::Activity,
    share::{Claim, to_drop},
};

/// Most connections that may be closing at a time; beyond that they are cut off.
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
    /// At most `limit` of them, not counting those that are closing.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            open: Vec::new(),
            leaving: VecDeque::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Makes room for another connection of `peer`. False if there is none.
    pub(crate) fn make_room(&mut self, peer: IpAddr) -> bool {
        self.open.retain(|open| !open.task.is_finished());
        if self.open.len() < self.limit {
            return true;
        }
        let claims: Vec<Claim> = self.open.iter().map(Open::claim).collect();
        let Some(at) = to_drop(&claims, peer, 1) else {
            return false;
        };
        let left = self.open.swap_remove(at);
        tracing::debug!(peer = %left.peer, "too many connections, closing one");
        left.activity.close();
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
