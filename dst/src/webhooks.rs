//! Calls of webhooks, answered by the handlers of a manager that is up.
//!
//! What is left out is the socket: the review goes in and out as the same text.

use kruise_server::{review::Review, webhook::Handler};
use kruise_sim::{WebhookCall, WebhookReply};
use serde_json::Value;

use crate::{cluster::State, history::Trouble};

/// What comes of a call.
pub fn ask(state: &mut State, call: &WebhookCall) -> WebhookReply {
    let down = state.troubled(|trouble| (*trouble == Trouble::WebhookDown).then_some(()));
    if down.is_some() {
        state.counters.fired("webhook down");
        return WebhookReply::Failed("connection refused".into());
    }
    let path = call
        .client
        .pointer("/service/path")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let Some(handler) = state.routes.values().next().and_then(|routes| routes.get(path)) else {
        return WebhookReply::Failed("no endpoints available".into());
    };
    let Handler::Review(review) = handler else {
        return WebhookReply::Failed("not found".into());
    };
    match Review::decode(call.review.to_string().as_bytes()) {
        Ok(asked) => {
            let reply = asked.reply.clone();
            WebhookReply::Review(reply.answer(&review(asked)))
        }
        Err(error) => WebhookReply::Failed(error.to_string()),
    }
}
