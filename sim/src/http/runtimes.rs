//! Calls of container runtimes by tasks, which wait for the answers.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use super::clock::now;
use super::live::{Live, State};
use crate::runtime::{Answer, Call, CallId, Error};

/// Who waits for the answers to which calls.
#[derive(Debug, Default)]
pub(super) struct Callers(BTreeMap<CallId, oneshot::Sender<Result<Answer, Error>>>);

/// A call whose caller waits. Dropping it before its answer cancels the call.
struct Made<'a> {
    live: &'a Live,
    id: CallId,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        self.live.with_state(|state| {
            if state.callers.0.remove(&self.id).is_some() {
                state.world.cancel_runtime_call(self.id);
                // Nobody wants to know that it was cancelled.
                drop(state.world.runtime_answers_to(|id| id == self.id));
            }
        });
    }
}

impl State {
    /// Passes answers to those who wait for them.
    pub(super) fn answer_callers(&mut self) {
        let Callers(callers) = &mut self.callers;
        if callers.is_empty() {
            return;
        }
        let answers = self.world.runtime_answers_to(|id| callers.contains_key(&id));
        for (id, answer) in answers {
            if let Some(caller) = callers.remove(&id) {
                // A caller that has left cancels its call next.
                let _left = caller.send(answer);
            }
        }
    }
}

impl Live {
    /// Makes a call of the runtime of a node at the time of the clock, and waits for its answer. Dropping the
    /// future cancels the call: see [`World::cancel_runtime_call`](crate::World::cancel_runtime_call).
    ///
    /// # Errors
    /// Those of the runtime. A node that does not exist has none: [`Error::Unavailable`].
    pub async fn call_runtime(&self, node: &str, call: Call) -> Result<Answer, Error> {
        let (caller, answer) = oneshot::channel();
        let id = self.with_state(|state| {
            state.world.advance(now());
            let id = state.world.call_runtime(node, call);
            state.callers.0.insert(id, caller);
            id
        });
        let _made = Made { live: self, id };
        // Each call is answered once.
        let unanswered = |_| Err(Error::Unavailable("no answer".into()));
        answer.await.unwrap_or_else(unanswered)
    }
}
