//! Calls of webhooks, answered by the handlers of a manager that is up.
//!
//! What is left out is the socket, and the text that goes over it: the same review goes in and out. An answer takes as
//! long as its handler needs to ask the API server, and longer if the history says so; who called waits no longer than
//! it was told to.

use std::{future::Future, pin::Pin, time::Duration};

use kruise_server::{
    review::Review,
    webhook::{Decision, Handler},
};
use kruise_sim::{WebhookCall, WebhookReply};
use serde_json::Value;

use crate::{cluster::State, history::Trouble};

/// An answer that takes time.
pub type Later = Pin<Box<dyn Future<Output = WebhookReply> + Send>>;

/// What comes of a call.
pub enum Said {
    /// An answer at once.
    Now(WebhookReply),
    /// An answer, or that there was none in time.
    Later(Later),
}

/// Calls.
pub fn ask(state: &mut State, call: WebhookCall) -> Said {
    let patience = Duration::from_secs(u64::try_from(call.timeout_seconds).unwrap_or(10));
    let said = decide(state, call);
    let slow = state.troubled(|trouble| match trouble {
        Trouble::WebhookSlow(most) => Some(*most),
        _ => None,
    });
    let pause = slow.map(|most| {
        state.counters.fired("webhook slow");
        Duration::from_millis(state.random.between(most / 2, most))
    });
    let (pause, later): (Duration, Later) = match (said, pause) {
        (said @ Said::Now(_), None) => return said,
        (Said::Now(reply), Some(pause)) => (pause, Box::pin(std::future::ready(reply))),
        (Said::Later(later), pause) => (pause.unwrap_or_default(), later),
    };
    let answer = async move {
        tokio::time::sleep(pause).await;
        later.await
    };
    Said::Later(Box::pin(async move {
        tokio::time::timeout(patience, answer)
            .await
            .unwrap_or_else(|_| WebhookReply::Failed("context deadline exceeded".into()))
    }))
}

fn decide(state: &mut State, call: WebhookCall) -> Said {
    let failed = |why: String| Said::Now(WebhookReply::Failed(why));
    let down = state.troubled(|trouble| (*trouble == Trouble::WebhookDown).then_some(()));
    if down.is_some() {
        state.counters.fired("webhook down");
        return failed("connection refused".into());
    }
    let path = call
        .client
        .pointer("/service/path")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let Some(handler) = state.routes.values().next().and_then(|routes| routes.get(path)) else {
        return failed("no endpoints available".into());
    };
    match handler {
        Handler::Review(review) => {
            let asked = match Review::read(call.review) {
                Ok(asked) => asked,
                Err(error) => return failed(error.to_string()),
            };
            let reply = asked.reply.clone();
            match review(asked) {
                Decision::Now(verdict) => Said::Now(WebhookReply::Review(reply.answer(&verdict))),
                Decision::Later(verdict) => {
                    state.counters.asked_back += 1;
                    Said::Later(Box::pin(async move {
                        WebhookReply::Review(reply.answer(&verdict.await))
                    }))
                }
            }
        }
        Handler::Convert(convert) => {
            let body = serde_json::to_vec(&call.review).unwrap_or_default();
            let answer = convert(body).and_then(|answer| {
                serde_json::from_slice(&answer.concat()).map_err(|error| error.to_string())
            });
            Said::Now(answer.map_or_else(WebhookReply::Failed, WebhookReply::Review))
        }
    }
}
