//! Objects that are converted in one call.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::object;
use crate::registry::{Conversion, Resource, Schema};
use crate::status::Failure;
use crate::validation::text;
use crate::webhook::{Awaited, NeededCall, WebhookReply, misfit};
use crate::wire;

/// How long a conversion webhook may take, in seconds.
const TIMEOUT: i64 = 30;
const KIND: &str = "ConversionReview";
const V1: &str = "apiextensions.k8s.io/v1";

pub(super) fn key(wanted: &str, object: &Value) -> String {
    format!("{wanted} {}", String::from_utf8_lossy(&wire::text(object)))
}

/// Objects that are wanted in a version.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) resource: Arc<Resource>,
    pub(crate) version: String,
    pub(crate) objects: Vec<Value>,
    /// Identifies the call.
    pub(crate) uid: String,
}

impl Batch {
    pub(super) fn wanted(&self) -> String {
        self.resource.api_version(&self.version)
    }

    /// Another `apiVersion`, and the shape that goes with it.
    pub(super) fn relabelled(self) -> Vec<Value> {
        let wanted = self.wanted();
        let relabel = |mut object: Value| {
            if text(&object, "apiVersion") == wanted {
                return object;
            }
            if let Value::Object(members) = &mut object {
                members.insert("apiVersion".into(), wanted.as_str().into());
            }
            (self.resource.traits.convert)(&mut object, &self.version);
            shaped(&self.resource, &self.version, object)
        };
        self.objects.into_iter().map(relabel).collect()
    }

    /// The call to the resource's webhook.
    pub(crate) fn needed_call(self) -> NeededCall {
        let webhook = match &self.resource.conversion {
            Conversion::Webhook(webhook) => webhook.clone(),
            Conversion::None => Arc::default(),
        };
        NeededCall {
            webhook: format!("{}.{}", self.resource.id.plural, self.resource.id.group),
            client: webhook.get("clientConfig").cloned().unwrap_or_default(),
            timeout_seconds: TIMEOUT,
            review: json!({
                "kind": KIND, "apiVersion": self.review_version(),
                "request": {"uid": self.uid, "desiredAPIVersion": self.wanted(), "objects": self.objects},
            }),
            awaited: Awaited::Conversion(self),
            progress: None,
        }
    }

    /// The first version of reviews that the webhook speaks and that is known here.
    fn review_version(&self) -> &'static str {
        let versions = match &self.resource.conversion {
            Conversion::Webhook(webhook) => webhook.get("conversionReviewVersions").and_then(Value::as_array),
            Conversion::None => None,
        };
        let mut known = versions
            .into_iter()
            .flatten()
            .filter_map(|one| match one.as_str() {
                Some("v1") => Some(V1),
                Some("v1beta1") => Some("apiextensions.k8s.io/v1beta1"),
                _ => None,
            });
        known.next().unwrap_or(V1)
    }

    /// What a reply says of each object, by the key it is looked up with.
    pub(crate) fn answers(&self, reply: &WebhookReply) -> Vec<(String, Result<Value, Failure>)> {
        let wanted = self.wanted();
        let keys = self.objects.iter().map(|object| key(&wanted, object));
        match self.accept(reply) {
            Ok(converted) => keys.zip(converted.into_iter().map(Ok)).collect(),
            Err(failure) => keys.map(|key| (key, Err(failure.clone()))).collect(),
        }
    }

    /// The converted objects, in order.
    pub(crate) fn accept(&self, reply: &WebhookReply) -> Result<Vec<Value>, Failure> {
        let first = self.objects.first().unwrap_or(&Value::Null);
        let hook = format!(
            "conversion webhook for {}, Kind={}",
            text(first, "apiVersion"),
            self.resource.kind
        );
        let converted = match reply {
            WebhookReply::Failed(why) => Err(why.clone()),
            WebhookReply::Review(review) => match misfit(review, KIND, V1, &self.uid) {
                // the older reviews were never held to their version and uid
                Some(why) if self.review_version() == V1 => Err(why),
                _ => response(review),
            },
        };
        let converted = converted.map_err(|why| Failure::unknown(&format!("{hook} failed: {why}")))?;
        if converted.len() != self.objects.len() {
            let (found, wanted) = (converted.len(), self.objects.len());
            let why = format!("{hook} returned {found} objects, expected {wanted}");
            return Err(Failure::unknown(&why));
        }
        let pairs = self.objects.iter().zip(converted).enumerate();
        pairs
            .map(|(index, (original, object))| {
                self.restored(original, object).map_err(|flaw| {
                    Failure::unknown(&format!("{hook} returned {}", self.flawed(index, flaw)))
                })
            })
            .collect()
    }

    /// Alone an object is spoken of in other words than in a list.
    fn flawed(&self, index: usize, flaw: Flaw) -> String {
        match (flaw, self.objects.len()) {
            (Flaw::Kind(why), 1) => format!("invalid object at index 0: {why}"),
            (Flaw::Identity(why), 1) => format!("invalid object: {why}"),
            (Flaw::Metadata(why), 1) => format!("invalid metadata: {why}"),
            (Flaw::Kind(why) | Flaw::Identity(why), _) => {
                format!("invalid converted object at index {index}: {why}")
            }
            (Flaw::Metadata(why), _) => format!("invalid metadata in object at index {index}: {why}"),
        }
    }

    /// A converted object, if it still is the same, with the metadata that no webhook may change.
    fn restored(&self, original: &Value, mut object: Value) -> Result<Value, Flaw> {
        let pairs = [
            ("groupVersion", self.wanted(), text(&object, "apiVersion")),
            ("kind", text(original, "kind").to_owned(), text(&object, "kind")),
        ];
        for (called, wanted, found) in pairs {
            if wanted != found {
                let why = format!("invalid {called} (expected {wanted}, received {found})");
                return Err(Flaw::Kind(why));
            }
        }
        for (name, called) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
            let had = object::metadata_text(original, name);
            let found = object::metadata_text(&object, name);
            if had != found {
                return Err(Flaw::Identity(format!(
                    "must have the same {called}: {had} != {found}"
                )));
            }
        }
        let mut metadata = original.get("metadata").cloned().unwrap_or_default();
        for name in ["labels", "annotations"] {
            let given = object::get_metadata(&object, name);
            let texts = given
                .as_object()
                .is_some_and(|all| all.values().all(Value::is_string));
            if !given.is_null() && !texts {
                let why = format!("metadata.{name} must be a map of strings in converted object");
                return Err(Flaw::Metadata(why));
            }
            crate::kinds::keep(&mut metadata, object::metadata_of(&object), name);
        }
        if let Value::Object(members) = &mut object {
            members.insert("metadata".into(), metadata);
        }
        Ok(shaped(&self.resource, &self.version, object))
    }
}

/// What is wrong with a converted object.
enum Flaw {
    /// It is something else.
    Kind(String),
    /// It is another object.
    Identity(String),
    /// Its labels or annotations are none.
    Metadata(String),
}

/// The objects of a successful response.
fn response(review: &Value) -> Result<Vec<Value>, String> {
    let response = review.get("response").filter(|response| response.is_object());
    let response = response.ok_or("no response provided")?;
    let result = response.get("result").unwrap_or(&Value::Null);
    if text(result, "status") != "Success" {
        return Err(match text(result, "message") {
            "" => format!(
                "response.result.status was '{}', not 'Success'",
                text(result, "status")
            ),
            message => message.to_owned(),
        });
    }
    let objects = response.get("convertedObjects").and_then(Value::as_array);
    Ok(objects.cloned().unwrap_or_default())
}

/// An object as its version's schema has it. A version that is not served any more has none here.
fn shaped(resource: &Resource, version: &str, object: Value) -> Value {
    match resource.version(version) {
        Some(version) if matches!(version.schema, Schema::Structural(_)) => {
            object::shape(object.clone(), version).map_or(object, |read| read.value)
        }
        _ => object,
    }
}
