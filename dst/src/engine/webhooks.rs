//! Calls of webhooks, answered by the handlers of a manager that is up.
//!
//! What is left out is the socket, and the text that is sent over it: the same review is passed in and out. An answer
//! takes as long as its handler needs for lookups in the API server, and longer if a fault says so; a caller waits
//! no longer than its timeout.

use std::{future::Future, pin::Pin, time::Duration};

use kruise_manager::Routes;
use kruise_server::{
    review::Review,
    webhook::{Decision, Handler},
};
use kruise_sim::{WebhookCall, WebhookReply};
use serde_json::{Value, json};

use super::{faults::Faults, random::Random, report::Counters, scenario::LastingFault};

/// The path of a webhook of somebody else, which refuses all that it reviews.
pub const REFUSES: &str = "/refuses";

/// An answer that takes time.
pub type Later = Pin<Box<dyn Future<Output = WebhookReply> + Send>>;

/// The outcome of a call.
pub enum Answer {
    /// An answer at once.
    Now(WebhookReply),
    /// An answer, or that there was none in time.
    Later(Later),
}

/// Calls the webhook of a manager that is up, if there is one.
pub fn call(
    call: WebhookCall,
    routes: Option<&Routes>,
    faults: &Faults,
    counters: &mut Counters,
    random: &mut Random,
) -> Answer {
    if path(&call) == REFUSES {
        return Answer::Now(WebhookReply::Review(refusal(&call.review)));
    }
    let patience = Duration::from_secs(u64::try_from(call.timeout_seconds).unwrap_or(10));
    let answer = decide(call, routes, faults, counters);
    let slow = faults.find(|fault| match fault {
        LastingFault::WebhookSlow(most) => Some(*most),
        _ => None,
    });
    let pause = slow.map(|most| {
        counters.fired("webhook slow");
        Duration::from_millis(random.between(most / 2, most))
    });
    let (pause, later): (Duration, Later) = match (answer, pause) {
        (answer @ Answer::Now(_), None) => return answer,
        (Answer::Now(reply), Some(pause)) => (pause, Box::pin(std::future::ready(reply))),
        (Answer::Later(later), pause) => (pause.unwrap_or_default(), later),
    };
    let answer = async move {
        tokio::time::sleep(pause).await;
        later.await
    };
    Answer::Later(Box::pin(async move {
        tokio::time::timeout(patience, answer)
            .await
            .unwrap_or_else(|_| WebhookReply::Failed("context deadline exceeded".into()))
    }))
}

/// The path of the webhook that is called.
pub fn path(call: &WebhookCall) -> &str {
    let path = call.client.pointer("/service/path");
    path.and_then(Value::as_str).unwrap_or_default()
}

fn refusal(review: &Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
        "uid": review["request"]["uid"], "allowed": false,
        "status": {"code": 403, "message": "a policy of this cluster forbids it"}}})
}

fn decide(call: WebhookCall, routes: Option<&Routes>, faults: &Faults, counters: &mut Counters) -> Answer {
    let failed = |why: String| Answer::Now(WebhookReply::Failed(why));
    let down = faults.find(|fault| (*fault == LastingFault::WebhookDown).then_some(()));
    if down.is_some() {
        counters.fired("webhook down");
        return failed("connection refused".into());
    }
    let Some(handler) = routes.and_then(|routes| routes.get(path(&call))) else {
        return failed("no endpoints available".into());
    };
    match handler {
        Handler::Review(review) => {
            let request = match Review::read(call.review) {
                Ok(request) => request,
                Err(error) => return failed(error.to_string()),
            };
            let reply = request.reply.clone();
            match review(request) {
                Decision::Now(verdict) => Answer::Now(WebhookReply::Review(reply.answer(&verdict))),
                Decision::Later(verdict) => {
                    counters.lookups += 1;
                    Answer::Later(Box::pin(async move {
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
            Answer::Now(answer.map_or_else(WebhookReply::Failed, WebhookReply::Review))
        }
    }
}
