//! Requests of the server's own components: its background work, and the cluster around it.
//!
//! A component does one thing after the other. While a request of its waits for a webhook, whatever the same user
//! requests is queued behind it and is carried out in order afterwards; a component that would repeat itself should
//! not act meanwhile ([`Api::waits`]). The calls to make are in [`Api::calls`].

use std::collections::{BTreeSet, VecDeque};

use jiff::Timestamp;

use super::state::{Api, Line, Origin, Outcome, Pending};
use crate::webhook::WebhookCall;
use crate::wire::{Request, Response};

impl Api {
    /// Webhook calls that the server itself needs, for its components and for watches in a version that is not stored,
    /// since the last call. Answer each with [`Api::resume`], in any order; watches may then have events.
    pub fn calls(&mut self) -> Vec<WebhookCall> {
        std::mem::take(&mut self.calls)
    }

    /// Whether [`Api::calls`] has any.
    #[cfg(feature = "http")]
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Whether a request of this user waits for a webhook.
    pub(crate) fn waits(&self, user: &str) -> bool {
        self.lines.contains_key(user)
    }

    /// Drops the requests of components and what waits: they are gone.
    pub(crate) fn forget_components(&mut self) {
        self.lines.clear();
        self.failed.clear();
        self.pending
            .retain(|_, pending| !matches!(pending, Pending::Request(_, _, Origin::Component)));
        self.calls.retain(|call| self.pending.contains_key(&call.id));
    }

    /// Carries out a component's request, if need be later: then there is no answer.
    pub(crate) fn submit(&mut self, request: Request, now: Timestamp) -> Option<Response> {
        if let Some(line) = self.lines.get_mut(&request.user) {
            line.push_back((request, now));
            return None;
        }
        let user = request.user.clone();
        match self.begin(request, now, Origin::Component) {
            Outcome::Call(call) => {
                self.lines.insert(user, Line::new());
                self.calls.push(*call);
                None
            }
            outcome => {
                self.note(&user, &outcome);
                outcome.response()
            }
        }
    }

    /// Remembers who met a failure that may be over later: one of the server, or a refusal by a guard.
    fn note(&mut self, user: &str, outcome: &Outcome) {
        let may_be_over = |code: u16| code >= 500 || matches!(code, 403 | 429);
        if matches!(outcome, Outcome::Respond(response) if may_be_over(response.code)) {
            self.failed.insert(user.to_owned());
        }
    }

    /// Users whose requests the server could not carry out, since the last call.
    pub(crate) fn failed(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.failed)
    }

    /// The first request of a line got on; those behind it follow until one waits again.
    pub(super) fn follow(&mut self, user: &str, mut outcome: Outcome) {
        loop {
            if let Outcome::Call(call) = outcome {
                self.calls.push(*call);
                return;
            }
            self.note(user, &outcome);
            let Some((request, now)) = self.lines.get_mut(user).and_then(VecDeque::pop_front) else {
                self.lines.remove(user);
                return;
            };
            outcome = self.begin(request, now, Origin::Component);
        }
    }
}
