//! A world that many tasks share.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::watch;

use crate::{CallId, Outcome, Request, WebhookReply, World};

/// The only clock of this crate.
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}

/// A world in real time, shared by connections. See [`serve`](super::serve).
#[derive(Debug)]
pub struct Live {
    world: Mutex<World>,
    /// The newest revision: watches and the player wait for it to move.
    revision: watch::Sender<u64>,
}

impl Live {
    /// Shares a world.
    pub fn new(mut world: World) -> Arc<Self> {
        let (revision, _) = watch::channel(world.api().revision());
        Arc::new(Self {
            world: Mutex::new(world),
            revision,
        })
    }

    /// Does something to the world between two requests: what is read is one consistent state, and what is written
    /// shows in watches as soon as this returns. Nobody is answered meanwhile, so it should not take long.
    pub fn with_world<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        // a panic while the world was locked leaves it as consistent as the last finished write
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut world);
        let newest = world.api().revision();
        drop(world);
        self.revision
            .send_if_modified(|known| std::mem::replace(known, newest) != newest);
        result
    }

    /// Answers a request at the time of the clock.
    pub(super) fn handle(&self, request: &Request) -> Outcome {
        self.with_world(|world| {
            world.advance(now());
            world.handle(request)
        })
    }

    /// Goes on with a request that waited for a webhook.
    pub(super) fn resume(&self, id: CallId, reply: WebhookReply) -> Option<Outcome> {
        self.with_world(|world| world.resume(id, reply))
    }

    /// Tells of writes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }
}
