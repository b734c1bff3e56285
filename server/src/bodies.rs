//! A limit on the memory of all requests together, and of their answers.
//!
//! A body counts with its announced length, and with the most it may have if it announces none, from before it is
//! read until it is answered: two that do not fit together follow each other instead of stopping each other halfway.
//! Then the answer counts instead, until it is sent: a peer that does not read takes no more than one that does not
//! write. When there is no room, unfinished bodies and unread answers of peers that hold more are dropped (see
//! [`share`](crate::share)): a peer gains nothing by announcing a large body and sending it slowly.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use crate::{
    activity::Activity,
    listen::Caller,
    share::{Claim, State, to_drop},
};

/// The bodies and answers in flight of one kind of request.
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
    /// Bodies that are being read and answers that are being sent, which can be dropped.
    droppable: BTreeMap<u64, (Claim, Holder)>,
    /// Number of the last of these.
    last: u64,
}

/// Who frees the memory of what is dropped.
#[derive(Debug)]
enum Holder {
    /// Reads a body.
    Reader(Arc<Notify>),
    /// Sends an answer, which is cut off with its connection.
    Connection(Arc<Activity>),
}

impl InFlight {
    /// Takes `amount` more for `peer` within `limit`. False if nothing that can be dropped makes enough room. What
    /// would not fit at all is let through alone.
    fn take(&mut self, limit: usize, peer: IpAddr, amount: usize) -> bool {
        while self.used > 0 && self.used + amount > limit {
            let claims: Vec<Claim> = self.droppable.values().map(|(claim, _)| *claim).collect();
            let at = to_drop(&claims, peer, amount);
            let number = at.and_then(|at| self.droppable.keys().nth(at).copied());
            let Some((claim, holder)) = number.and_then(|number| self.droppable.remove(&number)) else {
                return false;
            };
            // Handed over here; the holder frees the memory as soon as it runs.
            self.used = self.used.saturating_sub(claim.amount);
            match holder {
                Holder::Reader(gone) => gone.notify_one(),
                Holder::Connection(activity) => activity.cut(),
            }
        }
        self.used += amount;
        true
    }

    /// Adds what can be dropped. Returns its number.
    fn add(&mut self, peer: IpAddr, amount: usize, holder: Holder) -> u64 {
        let claim = Claim {
            peer,
            amount,
            state: State::Busy,
            since: Instant::now(),
        };
        self.last += 1;
        self.droppable.insert(self.last, (claim, holder));
        self.last
    }
}

/// Room for one body, until this is dropped.
pub(crate) struct Room {
    bodies: Bodies,
    amount: usize,
    phase: Phase,
    gone: Arc<Notify>,
}

/// Room for one answer, until this is dropped.
pub(crate) struct AnswerRoom {
    bodies: Bodies,
    amount: usize,
    number: u64,
}

enum Phase {
    /// It is the one of this number among what can be dropped.
    Reading(u64),
    Complete,
    /// The room is the answer's now.
    Answered,
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
        self.with(|state| {
            if !state.take(limit, peer, amount) {
                return None;
            }
            let gone = Arc::new(Notify::new());
            let number = state.add(peer, amount, Holder::Reader(gone.clone()));
            Some(Room {
                bodies: self.clone(),
                amount,
                phase: Phase::Reading(number),
                gone,
            })
        })
    }

    /// Frees what can be dropped and is not dropped yet. False if it was dropped already.
    fn forget(&self, number: u64) -> bool {
        self.with(|state| state.droppable.remove(&number).is_some())
    }

    fn free(&self, amount: usize) {
        self.with(|state| state.used = state.used.saturating_sub(amount));
        self.0.freed.notify_waiters();
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
        let Phase::Reading(number) = self.phase else {
            return Some(self);
        };
        if !self.bodies.forget(number) {
            // It was freed when it was dropped.
            self.phase = Phase::Answered;
            return None;
        }
        self.phase = Phase::Complete;
        Some(self)
    }

    /// The body is answered with `size` bytes, which take its place within `limit`. `None`: there is no room for them.
    pub(crate) fn answered(mut self, limit: usize, caller: &Caller, size: usize) -> Option<AnswerRoom> {
        let amount = self.amount;
        let number = self.bodies.with(|state| {
            state.used = state.used.saturating_sub(amount);
            if !state.take(limit, caller.peer, size) {
                state.used += amount;
                return None;
            }
            let holder = Holder::Connection(caller.activity.clone());
            Some(state.add(caller.peer, size, holder))
        })?;
        self.phase = Phase::Answered;
        self.bodies.0.freed.notify_waiters();
        Some(AnswerRoom {
            bodies: self.bodies.clone(),
            amount: size,
            number,
        })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let held = match self.phase {
            Phase::Reading(number) => self.bodies.forget(number),
            Phase::Complete => true,
            Phase::Answered => false,
        };
        if held {
            self.bodies.free(self.amount);
        }
    }
}

impl Drop for AnswerRoom {
    fn drop(&mut self) {
        if self.bodies.forget(self.number) {
            self.bodies.free(self.amount);
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

    fn caller(peer: u8) -> Caller {
        Caller {
            peer: IpAddr::from([10, 0, 0, peer]),
            activity: Arc::new(Activity::new(&crate::listen::Limits::default())),
            is_known: true,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_takes_the_place_of_its_body_until_it_is_sent() {
        let bodies = Bodies::default();
        let body = room(&bodies, 1, 6).await.unwrap().complete().unwrap();
        let answer = body.answered(10, &caller(1), 8).unwrap();
        assert_eq!(bodies.used(), 8);
        assert!(room(&bodies, 1, 6).await.is_none(), "answers count");
        drop(answer);
        assert_eq!(bodies.used(), 0);
        let other = room(&bodies, 2, 5).await.unwrap().complete().unwrap();
        let body = room(&bodies, 1, 1).await.unwrap().complete().unwrap();
        assert!(
            body.answered(10, &caller(1), 8).is_none(),
            "it is too large beside the other one"
        );
        assert_eq!(bodies.used(), 5);
        drop(other);
        let alone = room(&bodies, 1, 1).await.unwrap().complete().unwrap();
        let alone = alone
            .answered(10, &caller(1), 20)
            .expect("what fits never is let through alone");
        drop(alone);
        assert_eq!(bodies.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_with_an_unread_answer_of_a_larger_peer_is_cut_off() {
        let bodies = Bodies::default();
        let greedy = caller(1);
        let body = room(&bodies, 1, 9).await.unwrap().complete().unwrap();
        let unread = body.answered(10, &greedy, 9).unwrap();
        let since = Instant::now();
        let small = room(&bodies, 2, 3).await.unwrap();
        greedy.activity.is_cut().await;
        assert_eq!(since.elapsed(), Duration::ZERO);
        drop(unread);
        assert_eq!(bodies.used(), 3);
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
