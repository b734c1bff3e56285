//! Conversion of stored objects between versions: the endpoint an API server calls when a client reads or writes a
//! version other than the stored one.
//!
//! What changes is said in [`kruise_api::convert`]. One object that cannot be converted fails the whole review, as the protocol wants it: the API
//! server would not know what to do with the rest.

use std::fmt;

use serde::{
    Deserialize, Deserializer as _,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};

use crate::Error;

/// The longest object that is taken apart, in bytes; an API server stores none of even half that size.
const OBJECT_LIMIT: usize = 8 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    kind: String,
    api_version: Option<String>,
    #[serde(borrow)]
    request: Request<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired: String,
    #[serde(borrow)]
    objects: Option<&'a RawValue>,
}

/// From the body of a ConversionReview to the body of its answer. An error is the sender's: HTTP 400.
pub fn convert(body: &[u8]) -> Result<Vec<u8>, Error> {
    let review: Review<'_> = serde_json::from_slice(body).map_err(refusal)?;
    if review.kind != "ConversionReview" {
        return Err(Error::Conversion);
    }
    let request = review.request;
    let version = review.api_version.as_deref().unwrap_or("apiextensions.k8s.io/v1");
    // Versions differ by little: the answer rarely outgrows this, and what is not written to costs no memory.
    let mut answer = Vec::with_capacity(body.len() + body.len() / 8 + 1024);
    let head = json!({"kind": "ConversionReview", "apiVersion": version}).to_string();
    answer.extend_from_slice(head.trim_end_matches('}').as_bytes());
    answer.extend_from_slice(b",\"response\":{\"uid\":");
    serde_json::to_writer(&mut answer, &request.uid)?;
    let start = answer.len();
    answer.extend_from_slice(b",\"convertedObjects\":[");
    let objects = Objects {
        desired: &request.desired,
        answer: &mut answer,
    };
    let result = match request.objects {
        Some(list) => list.deserialize_seq(objects).map_err(refusal)?,
        None => Ok(()),
    };
    match result {
        Ok(()) => answer.extend_from_slice(b"],\"result\":{\"status\":\"Success\"}}}"),
        Err(message) => {
            answer.truncate(start);
            answer.extend_from_slice(b",\"result\":");
            serde_json::to_writer(&mut answer, &json!({"status": "Failure", "message": message}))?;
            answer.extend_from_slice(b"}}");
        }
    }
    Ok(answer)
}

fn refusal(error: serde_json::Error) -> Error {
    if error.is_data() {
        Error::Conversion
    } else {
        Error::Json(error)
    }
}

/// Converts the objects of a list as they are read.
struct Objects<'a> {
    desired: &'a str,
    answer: &'a mut Vec<u8>,
}

impl<'de> Visitor<'de> for Objects<'_> {
    type Value = Result<(), String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut result = Ok(());
        let mut separator = "";
        while let Some(object) = list.next_element::<&'de RawValue>()? {
            self.answer.extend_from_slice(separator.as_bytes());
            separator = ",";
            result = self.push(object.get());
            if result.is_err() {
                break;
            }
        }
        // A list may only be left at its end.
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(result)
    }
}

impl Objects<'_> {
    fn push(&mut self, object: &str) -> Result<(), String> {
        if object.len() > OBJECT_LIMIT {
            return Err(format!("an object exceeds {OBJECT_LIMIT} bytes"));
        }
        let object = serde_json::from_str(object).map_err(|error| error.to_string())?;
        let object = one(object, self.desired)?;
        serde_json::to_writer(&mut *self.answer, &object).map_err(|error| error.to_string())
    }
}

fn one(mut object: Value, desired: &str) -> Result<Value, String> {
    if object.get("apiVersion").is_some_and(|version| version == desired) {
        return Err(format!("the object is already in version {desired}"));
    }
    kruise_api::convert::convert(&mut object, desired).map_err(|error| error.to_string())?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(desired: &str, objects: &[Value]) -> Value {
        let body = json!({
            "kind": "ConversionReview",
            "apiVersion": "apiextensions.k8s.io/v1",
            "request": {"uid": "u", "desiredAPIVersion": desired, "objects": objects},
        });
        let answer = convert(body.to_string().as_bytes()).unwrap();
        serde_json::from_slice(&answer).unwrap()
    }

    fn set(version: &str, name: &str) -> Value {
        json!({
            "apiVersion": format!("apps.kruise.io/{version}"),
            "kind": "CloneSet",
            "metadata": {"name": name, "uid": "u1"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"newerThanUs": 1}},
        })
    }

    #[test]
    fn objects_come_back_in_order_in_the_desired_version() {
        for (from, to) in [("v1alpha1", "v1beta1"), ("v1beta1", "v1alpha1")] {
            let desired = format!("apps.kruise.io/{to}");
            let answer = review(&desired, &[set(from, "one"), set(from, "two")]);
            assert_eq!(answer["kind"], "ConversionReview");
            assert_eq!(answer["apiVersion"], "apiextensions.k8s.io/v1");
            let response = &answer["response"];
            assert_eq!(
                (&response["uid"], &response["result"]["status"]),
                (&json!("u"), &json!("Success"))
            );
            let objects = response["convertedObjects"].as_array().unwrap();
            let names: Vec<&Value> = objects.iter().map(|object| &object["metadata"]["name"]).collect();
            assert_eq!(names, ["one", "two"]);
            for object in objects {
                assert_eq!(object["apiVersion"], desired);
                assert_eq!(object["metadata"]["uid"], "u1");
                assert_eq!(object["spec"]["template"], json!({"newerThanUs": 1}));
            }
        }
    }

    #[test]
    fn every_kind_with_two_versions_is_converted() {
        let kinds = kruise_api::kinds::ALL.into_iter();
        for kind in kinds.filter(|kind| (kind.versions)().len() == 2) {
            let version = |version: &str| format!("{}/{version}", kind.group);
            let object = json!({
                "apiVersion": version("v1alpha1"), "kind": kind.kind,
                "metadata": {"name": "a", "uid": "u1"}, "spec": {"newerThanUs": {"x": [1]}},
            });
            let answer = review(&version("v1beta1"), &[object]);
            let converted = &answer["response"]["convertedObjects"][0];
            assert_eq!(converted["apiVersion"], version("v1beta1"), "{}", kind.kind);
            assert_eq!(
                converted["spec"]["newerThanUs"],
                json!({"x": [1]}),
                "{}",
                kind.kind
            );
        }
    }

    #[test]
    fn one_bad_object_fails_the_review() {
        let desired = "apps.kruise.io/v1beta1";
        let mut other_kind = set("v1alpha1", "x");
        other_kind["kind"] = json!("Deployment");
        let mut other_group = set("v1alpha1", "x");
        other_group["apiVersion"] = json!("apps/v1alpha1");
        for bad in [
            set("v1beta1", "x"),
            set("v9", "x"),
            other_kind,
            other_group,
            json!(1),
        ] {
            let answer = review(desired, &[set("v1alpha1", "good"), bad.clone()]);
            let result = &answer["response"]["result"];
            assert_eq!(result["status"], "Failure", "{bad}");
            assert!(!result["message"].as_str().unwrap().is_empty());
            assert_eq!(answer["response"].get("convertedObjects"), None);
            assert_eq!(answer["response"]["uid"], "u");
        }
    }

    #[test]
    fn an_object_no_api_server_stores_is_not_taken_apart() {
        let mut huge = set("v1alpha1", "x");
        huge["metadata"]["annotations"] = json!({"a": "b".repeat(OBJECT_LIMIT)});
        let answer = review("apps.kruise.io/v1beta1", &[huge]);
        let message = answer["response"]["result"]["message"].as_str().unwrap();
        assert_eq!(message, "an object exceeds 8388608 bytes");
    }

    #[test]
    fn bodies_that_are_no_review_are_errors() {
        assert!(matches!(convert(b"{"), Err(Error::Json(_))));
        for body in [
            "[]",
            r#"{"kind":"AdmissionReview"}"#,
            r#"{"kind":"ConversionReview"}"#,
            r#"{"kind":"ConversionReview","request":{"uid":"u"}}"#,
        ] {
            assert!(
                matches!(convert(body.as_bytes()), Err(Error::Conversion)),
                "{body}"
            );
        }
    }
}
