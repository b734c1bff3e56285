//! Calls of webhooks, answered by the handlers of a manager that is up.
//!
//! What is left out is the socket: the review goes in and out as the same text.

use kruise_server::{review::Review, webhook::Handler};
use kruise_sim::{WebhookCall, WebhookReply};
use serde_json::{Value, json};

use crate::{cluster::State, history::Trouble};

/// What comes of a call.
pub fn ask(state: &mut State, call: &WebhookCall) -> WebhookReply {
    if !concerns(call) {
        let uid = &call.review["request"]["uid"];
        return WebhookReply::Review(json!({"response": {"uid": uid, "allowed": true}}));
    }
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

/// The match condition of the pod webhook, which the embedded server does not evaluate: pods that have the gate do not
/// pass through it.
fn concerns(call: &WebhookCall) -> bool {
    let gates = call
        .review
        .pointer("/request/object/spec/readinessGates")
        .and_then(Value::as_array);
    let gated = gates
        .into_iter()
        .flatten()
        .any(|gate| gate["conditionType"] == "KruisePodReady");
    call.webhook != "mpod.kb.io" || !gated
}
