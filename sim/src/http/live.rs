//! A world that many tasks share.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::audit::AuditLog;
use super::caller;
use super::clock::now;
use super::runtimes::Callers;
use crate::{CallId, Outcome, Request, World};

/// A request that waits for a webhook, forgotten if its client leaves.
struct Waiting<'a>(&'a Live, Option<CallId>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.1 {
            self.0.with_world(|world| world.api().abandon(id));
        }
    }
}

/// A world in real time, shared by connections. See [`serve`](super::serve).
#[derive(Debug)]
pub struct Live {
    state: Mutex<State>,
    /// Counts news: watches, the player and the caller of webhooks wait for it to move.
    news: watch::Sender<u64>,
    audit: Option<AuditLog>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) world: World,
    /// Who waits for answers of runtimes.
    pub(super) callers: Callers,
    /// The newest revision that was news.
    revision: u64,
    /// The newest count of calls, answers and faults of runtimes that was news.
    runtime: u64,
}

impl Live {
    /// Shares a world.
    pub fn new(world: World) -> Arc<Self> {
        Self::audited(world, None)
    }

    /// Shares a world whose requests are logged.
    pub fn audited(mut world: World, audit: Option<AuditLog>) -> Arc<Self> {
        let revision = world.api().revision();
        let (news, _) = watch::channel(0);
        Arc::new(Self {
            state: Mutex::new(State {
                runtime: world.runtime_news(),
                callers: Callers::default(),
                world,
                revision,
            }),
            news,
            audit,
        })
    }

    pub(super) fn audit_log(&self) -> Option<&AuditLog> {
        self.audit.as_ref()
    }

    /// Does something to the world between two requests: what is read is one consistent state, and what is written
    /// shows in watches as soon as this returns. Nobody is answered meanwhile, so it should not take long, and it must
    /// not call this again.
    pub fn with_world<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        self.with_state(|state| act(&mut state.world))
    }

    /// As [`Live::with_world`]. What runtimes have answered goes to those who wait for it.
    pub(super) fn with_state<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        // a panic while the world was locked leaves it as consistent as the last finished write
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut state);
        state.answer_callers();
        let newest = state.world.api().revision();
        let runtime = state.world.runtime_news();
        let is_news = (state.revision, state.runtime) != (newest, runtime) || state.world.is_stirred();
        (state.revision, state.runtime) = (newest, runtime);
        drop(state);
        if is_news {
            self.news.send_modify(|count| *count += 1);
        }
        result
    }

    /// Answers a request at the time of the clock, webhooks included.
    pub(super) async fn answer(&self, request: &Request) -> Option<Outcome> {
        let mut outcome = self.with_world(|world| {
            world.advance(now());
            world.handle(request)
        });
        while let Outcome::Call(call) = outcome {
            let mut waiting = Waiting(self, Some(call.id));
            let reply = caller::call(self, &call).await;
            waiting.1 = None;
            outcome = self.with_world(|world| world.resume(call.id, reply))?;
        }
        Some(outcome)
    }

    /// Tells of writes, of calls to make and of calls that were answered.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }
}
