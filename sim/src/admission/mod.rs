//! Admission webhooks, without calling anybody.
//!
//! The core cannot call a webhook; it says which call it needs ([`WebhookCall`]) and forgets the request's progress.
//! When the answer comes, the request runs again from its start with the answers so far, which it looks up by their
//! question: the same request with the same seed and time asks the same questions. If the object changed meanwhile the
//! question is another one and is asked anew, as a server does that finds its update overtaken.
//!
//! Mutating webhooks come in the order of their configurations' names; those that ask for it are called once more if
//! a later one changed the object. `matchConditions` are not evaluated: such a webhook is asked about all that its
//! rules and selectors match.

mod matching;
mod review;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_schema::patch;
use serde_json::Value;

use self::matching::{Hook, hooks};
use crate::api::{Api, Call};
use crate::status::Failure;

/// Most questions of one request: webhooks that never agree end with an error.
const QUESTIONS: usize = 64;

/// Why a verb did not finish.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    /// It failed.
    Failure(Failure),
    /// A webhook must be called first.
    Ask(Box<Question>),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// What a webhook is to be asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    /// The webhook's name.
    pub(crate) webhook: String,
    /// Where it is: `clientConfig` of its configuration.
    pub(crate) client: Value,
    /// How long to wait for it.
    pub(crate) timeout_seconds: i64,
    /// The `AdmissionReview`.
    pub(crate) review: Value,
    /// What is asked, without the uid.
    key: String,
}

/// A call that whoever drives the API must make, and answer with [`Api::resume`].
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookCall {
    /// Names the call.
    pub id: CallId,
    /// The webhook's name.
    pub webhook: String,
    /// `clientConfig` of its configuration: a URL or a service, and the certificate to trust.
    pub client: Value,
    /// How long to wait for an answer.
    pub timeout_seconds: i64,
    /// The `AdmissionReview` to send.
    pub review: Value,
}

/// A webhook call of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub(crate) u64);

/// What came of a webhook call.
#[derive(Clone, Debug, PartialEq)]
pub enum WebhookReply {
    /// An `AdmissionReview` with a response.
    Review(Value),
    /// None: the text says why.
    Failed(String),
}

/// A question with its answer.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) key: String,
    pub(crate) reply: WebhookReply,
}

impl Question {
    pub(crate) fn key(&self) -> String {
        self.key.clone()
    }

    pub(crate) fn call(self, id: CallId) -> WebhookCall {
        WebhookCall {
            id,
            webhook: self.webhook,
            client: self.client,
            timeout_seconds: self.timeout_seconds,
            review: self.review,
        }
    }
}

/// Asks the mutating webhooks; returns the object as they leave it.
pub(crate) fn mutate(
    api: &Api,
    call: &Call<'_>,
    operation: &'static str,
    object: Value,
    old: &Value,
) -> Result<Value, Stop> {
    let hooks = hooks(
        api,
        call,
        "mutatingwebhookconfigurations",
        operation,
        &object,
        old,
    );
    let mut object = object;
    let mut again: Vec<(&Hook, Value)> = Vec::new();
    for hook in &hooks {
        object = mutated(call, hook, operation, object, old)?;
        if hook.reinvoked {
            again.push((hook, object.clone()));
        }
    }
    for (hook, seen) in again {
        if seen != object {
            object = mutated(call, hook, operation, object, old)?;
        }
    }
    Ok(object)
}

fn mutated(
    call: &Call<'_>,
    hook: &Hook,
    operation: &'static str,
    mut object: Value,
    old: &Value,
) -> Result<Value, Stop> {
    let Some(response) = ask(call, hook, operation, &object, old)? else {
        return Ok(object);
    };
    let failed = |why: &str| Failure::internal(&format!("failed calling webhook {:?}: {why}", hook.name));
    let Some(encoded) = response.get("patch").and_then(Value::as_str) else {
        return Ok(object);
    };
    let decoded = STANDARD
        .decode(encoded)
        .map_err(|error| failed(&error.to_string()))?;
    let operations: Value = serde_json::from_slice(&decoded).map_err(|error| failed(&error.to_string()))?;
    patch::json(&mut object, &operations).map_err(|error| Failure::internal(&error.to_string()))?;
    Ok(crate::verbs::reshape(call, object)?)
}

/// Asks the validating webhooks.
pub(crate) fn validate(
    api: &Api,
    call: &Call<'_>,
    operation: &'static str,
    object: &Value,
    old: &Value,
) -> Result<(), Stop> {
    for hook in hooks(
        api,
        call,
        "validatingwebhookconfigurations",
        operation,
        object,
        old,
    ) {
        ask(call, &hook, operation, object, old)?;
    }
    Ok(())
}

/// A webhook's response if it allows the request; `None` if it failed and may.
fn ask(
    call: &Call<'_>,
    hook: &Hook,
    operation: &'static str,
    object: &Value,
    old: &Value,
) -> Result<Option<Value>, Stop> {
    let request = review::request(call, operation, object, old);
    let key = format!("{} {request}", hook.name);
    let Some(answered) = call.answers.iter().find(|one| one.key == key) else {
        if call.answers.len() >= QUESTIONS {
            return Err(Failure::internal("the webhooks do not come to an end").into());
        }
        return Err(Stop::Ask(Box::new(Question {
            webhook: hook.name.clone(),
            client: hook.client.clone(),
            timeout_seconds: hook.timeout_seconds,
            review: review::review(call, request),
            key,
        })));
    };
    match &answered.reply {
        WebhookReply::Review(review) => {
            let response = review.get("response").cloned().unwrap_or_default();
            if response.get("allowed") == Some(&Value::Bool(true)) {
                return Ok(Some(response));
            }
            Err(review::denied(&hook.name, &response).into())
        }
        WebhookReply::Failed(_) if hook.ignored_on_failure => Ok(None),
        WebhookReply::Failed(why) => {
            let why = format!(
                "failed calling webhook {:?}: failed to call webhook: {why}",
                hook.name
            );
            Err(Failure::internal(&why).into())
        }
    }
}
