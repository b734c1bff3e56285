//! A limit on the memory of all request bodies together.
//!
//! A body counts with its announced length, and with the most it may have if it announces none, from before it is
//! read until it is answered: two that do not fit together follow each other instead of stopping each other halfway.
//! When there is no room, unfinished bodies of peers that hold more are dropped (see [`share`](crate::share)): a peer
//! gains nothing by announcing a large body and sending it slowly.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use crate::share::{Claim, State, to_drop};

/// The bodies in flight of one kind of request.
#[derive(Clone, Debug, Default)]
pub struct Bodies(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<InFlight>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct InFlight {
    used: usize,
    /// Those still being read, which can be dropped.
    unfinished: Vec<(Claim, Arc<Notify>)>,
}

/// Room for one body, until this is dropped.
pub(crate) struct Room {
    bodies: Bodies,
    amount: usize,
    phase: Phase,
    gone: Arc<Notify>,
}

enum Phase {
    Reading,
    Complete,
}

impl Bodies {
    /// Bytes taken at present.
    pub fn used(&self) -> usize {
        self.with(|state| state.used)
    }

    /// Takes `amount` of `limit` bytes, waiting for them for at most `patience`.
    pub(crate) async fn room(
        &self,
        limit: usize,
        peer: IpAddr,
        amount: usize,
        patience: Duration,
    ) -> Option<Room> {
        let wait = async {
            loop {
                // Before the check, so that memory freed in between is noticed.
                let freed = self.0.freed.notified();
                if let Some(room) = self.take(limit, peer, amount) {
                    return room;
                }
                freed.await;
            }
        };
        timeout(patience, wait).await.ok()
    }

    fn take(&self, limit: usize, peer: IpAddr, amount: usize) -> Option<Room> {
        let claim = Claim {
            peer,
            amount,
            state: State::Busy,
            since: Instant::now(),
        };
        self.with(|state| {
            while state.used + amount > limit {
                let claims: Vec<Claim> = state.unfinished.iter().map(|(claim, _)| *claim).collect();
                let at = to_drop(&claims, peer, amount)?;
                let (claim, gone) = state.unfinished.swap_remove(at);
                // Handed over here; the reader frees the memory as soon as it runs.
                state.used = state.used.saturating_sub(claim.amount);
                gone.notify_one();
            }
            state.used += amount;
            let gone = Arc::new(Notify::new());
            state.unfinished.push((claim, gone.clone()));
            Some(Room {
                bodies: self.clone(),
                amount,
                phase: Phase::Reading,
                gone,
            })
        })
    }

    fn with<T>(&self, change: impl FnOnce(&mut InFlight) -> T) -> T {
        change(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Room {
    /// Resolves when the body is dropped for another one.
    pub(crate) async fn gone(&self) {
        self.gone.notified().await;
    }

    /// The body is complete and stays. `None`: it was dropped for another one.
    pub(crate) fn complete(mut self) -> Option<Self> {
        if !self.forget() {
            return None;
        }
        self.phase = Phase::Complete;
        Some(self)
    }

    /// The body can be dropped no more. False if it was dropped already.
    fn forget(&self) -> bool {
        self.bodies.with(|state| {
            let at = state
                .unfinished
                .iter()
                .position(|(_, gone)| Arc::ptr_eq(gone, &self.gone));
            at.map(|at| state.unfinished.swap_remove(at)).is_some()
        })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let held = match self.phase {
            Phase::Reading => self.forget(),
            Phase::Complete => true,
        };
        if held {
            let amount = self.amount;
            self.bodies
                .with(|state| state.used = state.used.saturating_sub(amount));
            self.bodies.0.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    async fn room(bodies: &Bodies, peer: u8, amount: usize) -> Option<Room> {
        bodies
            .room(10, IpAddr::from([10, 0, 0, peer]), amount, PATIENCE)
            .await
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_waits_for_room_but_not_for_ever() {
        let bodies = Bodies::default();
        let first = room(&bodies, 1, 6).await.unwrap().complete().unwrap();
        let since = Instant::now();
        assert!(room(&bodies, 2, 6).await.is_none());
        assert_eq!(since.elapsed(), PATIENCE);
        let small = room(&bodies, 2, 4).await.unwrap();
        assert_eq!(bodies.used(), 10);
        let waiting = tokio::spawn({
            let bodies = bodies.clone();
            async move { room(&bodies, 2, 6).await.is_some() }
        });
        tokio::time::sleep(PATIENCE / 2).await;
        drop(first);
        assert!(waiting.await.unwrap());
        drop(small);
        assert_eq!(bodies.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unfinished_body_of_a_larger_peer_gives_way() {
        let bodies = Bodies::default();
        let held = room(&bodies, 1, 5).await.unwrap();
        let later = room(&bodies, 1, 5).await.unwrap();
        let since = Instant::now();
        let small = room(&bodies, 2, 3).await.unwrap();
        assert_eq!(since.elapsed(), Duration::ZERO);
        held.gone().await;
        assert!(held.complete().is_none());
        assert_eq!(bodies.used(), 8);
        assert!(room(&bodies, 1, 5).await.is_none(), "a larger one does not");
        drop((later, small));
        assert_eq!(bodies.used(), 0);
    }
}
