//! Calls to webhooks, which the driver of the API makes.
//!
//! The core cannot call a webhook; it returns the call that it needs ([`WebhookCall`]) and stops the request. With the
//! answer, the request runs again with the answers so far, from its start or, if it is an update, from where nothing
//! can have changed ([`crate::verbs::Progress`]). It finds the answers by what their calls were about: the same request
//! with the same seed and time needs the same calls. If an object changed meanwhile another call is needed, as on a
//! server whose update meets a conflict.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::conversion::Batch;
use crate::status::Failure;
use crate::validation::text;
use crate::verbs::Progress;

/// Kind and version of admission reviews.
pub(crate) const ADMISSION_KIND: &str = "AdmissionReview";
pub(crate) const ADMISSION_VERSION: &str = "admission.k8s.io/v1";

/// Most calls of one request: webhooks that never agree end with an error.
const CALLS: u64 = 64;

/// Why a verb did not finish.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// It failed.
    Failure(Failure),
    /// A webhook must be called first.
    Call(Box<NeededCall>),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// A call that a request needs before it can go on.
#[derive(Clone, Debug)]
pub(crate) struct NeededCall {
    /// The webhook's name.
    pub(crate) webhook: String,
    /// Where it is: `clientConfig` of its configuration.
    pub(crate) client: Value,
    /// How long to wait for it.
    pub(crate) timeout_seconds: i64,
    /// The review to send.
    pub(crate) review: Value,
    pub(crate) awaited: Awaited,
    /// What the request need not do again.
    pub(crate) progress: Option<Box<Progress>>,
}

/// What an admission review is about.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// The request of the review, without its uid and its objects.
    pub(crate) request: Value,
    pub(crate) object: Value,
    pub(crate) old: Arc<Value>,
}

/// What an answer will be found by.
#[derive(Clone, Debug)]
pub(crate) enum Awaited {
    /// What an admission review is about, and its uid.
    Admission {
        webhook: String,
        about: About,
        uid: String,
    },
    /// Objects in another version.
    Conversion(Batch),
}

impl NeededCall {
    /// The call to make, and what its answer will be found by.
    pub(crate) fn call(self, id: CallId) -> (WebhookCall, Awaited) {
        let call = WebhookCall {
            id,
            webhook: self.webhook,
            client: self.client,
            timeout_seconds: self.timeout_seconds,
            review: self.review,
        };
        (call, self.awaited)
    }
}

/// A call that the driver of the API must make, and answer with [`Api::resume`](crate::Api::resume).
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookCall {
    /// Names the call.
    pub id: CallId,
    /// The webhook's name; of a conversion, the definition's.
    pub webhook: String,
    /// `clientConfig` of its configuration: a URL or a service, and the certificate to trust.
    pub client: Value,
    /// How long to wait for an answer.
    pub timeout_seconds: i64,
    /// The `AdmissionReview` or `ConversionReview` to send.
    pub review: Value,
}

/// A webhook call of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub(crate) u64);

/// What came of a webhook call.
#[derive(Clone, Debug, PartialEq)]
pub enum WebhookReply {
    /// A review of the kind that was sent, with a response to its uid.
    Review(Value),
    /// None: the text is the reason, as it follows `failed to call webhook: `.
    Failed(String),
}

/// What is wrong with a review as the answer to one of some kind, version and uid.
pub(crate) fn misfit(review: &Value, kind: &str, api_version: &str, uid: &str) -> Option<String> {
    let absent = match kind {
        "ConversionReview" => "no response provided",
        _ => "webhook response was absent",
    };
    let (found_version, found_kind) = (text(review, "apiVersion"), text(review, "kind"));
    if (found_version, found_kind) != (api_version, kind) {
        return Some(format!(
            "expected webhook response of {api_version}, Kind={kind}, got {found_version}, Kind={found_kind}"
        ));
    }
    let Some(response) = review.get("response").filter(|response| !response.is_null()) else {
        return Some(absent.to_owned());
    };
    let found = text(response, "uid");
    (found != uid).then(|| format!("expected response.uid={uid:?}, got {found:?}"))
}

/// The response of a review that answers the one with this uid.
fn admission_response(review: &Value, uid: &str) -> Result<Value, String> {
    match misfit(review, ADMISSION_KIND, ADMISSION_VERSION, uid) {
        Some(why) => Err(format!("received invalid webhook response: {why}")),
        None => Ok(review.get("response").cloned().unwrap_or_default()),
    }
}

/// The answer of an admission webhook.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// The response of its review.
    Response(Value),
    /// None that can be used; the text is the reason.
    Unusable(String),
}

/// The answers of webhooks so far to one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    calls: u64,
    /// By webhook and what its call was about. There are a few.
    reviews: Vec<(String, About, Verdict)>,
    /// One by one, so that a list which meanwhile has one object more converts that one only.
    converted: BTreeMap<String, Result<Value, Failure>>,
}

impl Answers {
    /// Takes an answer.
    pub(crate) fn add(&mut self, awaited: Awaited, reply: WebhookReply) {
        self.calls += 1;
        match awaited {
            Awaited::Admission { webhook, about, uid } => {
                let response = match reply {
                    WebhookReply::Review(review) => admission_response(&review, &uid),
                    WebhookReply::Failed(why) => Err(format!("failed to call webhook: {why}")),
                };
                let verdict = response.map_or_else(Verdict::Unusable, Verdict::Response);
                self.reviews.push((webhook, about, verdict));
            }
            Awaited::Conversion(batch) => self.converted.extend(batch.answers(&reply)),
        }
    }

    pub(crate) fn review(
        &self,
        webhook: &str,
        request: &Value,
        object: &Value,
        old: &Arc<Value>,
    ) -> Option<&Verdict> {
        let mut reviews = self.reviews.iter();
        let same = |about: &About| about.request == *request && about.object == *object && about.old == *old;
        let found = reviews.find(|(name, about, _)| name == webhook && same(about));
        found.map(|(_, _, said)| said)
    }

    pub(crate) fn converted(&self, key: &str) -> Option<&Result<Value, Failure>> {
        self.converted.get(key)
    }

    /// The number of the next call, if there may be one more.
    pub(crate) fn next(&self) -> Result<u64, Failure> {
        if self.calls >= CALLS {
            return Err(Failure::internal("the webhooks do not come to an end"));
        }
        Ok(self.calls + 1)
    }
}
