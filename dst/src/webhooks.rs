//! Calls of webhooks, answered by the handlers of a manager that is up.
//!
//! What is left out is the socket: the review goes in and out as the same text.

use kruise_server::{
    review::Review,
    webhook::{Decision, Handler},
};
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
    let body = call.review.to_string().into_bytes();
    let answer = match handler {
        Handler::Review(review) => {
            Review::decode(&body)
                .map_err(|error| error.to_string())
                .and_then(|asked| {
                    let reply = asked.reply.clone();
                    match review(asked) {
                        Decision::Now(verdict) => Ok(reply.answer(&verdict)),
                        Decision::Later(_) => Err("nothing in a history is asked back".to_owned()),
                    }
                })
        }
        Handler::Convert(convert) => convert(&body)
            .and_then(|answer| serde_json::from_slice(&answer).map_err(|error| error.to_string())),
    };
    answer.map_or_else(WebhookReply::Failed, WebhookReply::Review)
}
