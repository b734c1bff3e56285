//! Conversion of stored objects between versions: the endpoint an API server calls when a client reads or writes a
//! version other than the stored one.
//!
//! What changes is said in [`kruise_api::convert`]. One object that cannot be converted fails the whole review, as the
//! protocol wants it: the API server would not know what to do with the rest.
//!
//! A list may be as large as a body can be. It is converted in parts, from the last to the first, and each part of the
//! body is given back before the next one is converted: body and answer are never in memory at the same time, but for
//! a part.

use std::fmt;

use kruise_api::{definition::Kind, kinds};
use serde::{
    Deserialize, Deserializer as _,
    de::{Error as _, IgnoredAny, SeqAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};

use crate::Error;

/// The longest object that is taken apart, in bytes; an API server stores none of even half that size.
const OBJECT_LIMIT: usize = 8 << 20;

/// As much of a list as is converted at a time, in bytes, if no object is longer.
const PART: usize = 960 << 10;

/// The longest member beside the objects, in bytes. It is copied into the answer.
const TEXT_LIMIT: usize = 1 << 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    kind: Text,
    api_version: Option<Text>,
    request: Request,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: Text,
    #[serde(rename = "desiredAPIVersion")]
    desired: Text,
    objects: Option<Parts>,
}

/// A short text: one that is as long as the body can be is not copied.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&'de RawValue>::deserialize(deserializer)?.get();
        if text.len() > TEXT_LIMIT {
            return Err(D::Error::custom("a text is too long"));
        }
        serde_json::from_str(text).map(Self).map_err(D::Error::custom)
    }
}

/// From the body of a ConversionReview of these kinds to the body of its answer, which is in pieces. An error is
/// the sender's: HTTP 400.
pub fn convert(kinds: &[&'static Kind], body: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
    let review: Review = serde_json::from_slice(&body).map_err(refusal)?;
    if review.kind.0 != "ConversionReview" {
        return Err(Error::Conversion);
    }
    let request = review.request;
    let version = review.api_version.as_ref();
    let version = version.map_or("apiextensions.k8s.io/v1", |version| &*version.0);
    let head = json!({"kind": "ConversionReview", "apiVersion": version}).to_string();
    let uid = Value::from(request.uid.0);
    let head = format!("{},\"response\":{{\"uid\":{uid}", head.trim_end_matches('}'));
    let parts = request.objects.unwrap_or_default();
    Ok(match parts.convert(kinds, body, &request.desired.0) {
        Ok(mut pieces) => {
            pieces.insert(0, format!("{head},\"convertedObjects\":[").into());
            pieces.push(b"],\"result\":{\"status\":\"Success\"}}}".to_vec());
            pieces
        }
        Err(message) => {
            let result = json!({"status": "Failure", "message": message});
            vec![format!("{head},\"result\":{result}}}}}").into()]
        }
    })
}

fn refusal(error: serde_json::Error) -> Error {
    if error.is_data() {
        Error::Conversion
    } else {
        Error::Json(error)
    }
}

/// Where the parts of a list of objects are, by addresses of the text that is read.
#[derive(Default)]
struct Parts {
    /// First and last byte of each, without what separates objects.
    ranges: Vec<(usize, usize)>,
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Self::default())
    }
}

impl<'de> Visitor<'de> for Parts {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Self, A::Error> {
        while let Some(object) = list.next_element::<&'de RawValue>()? {
            let text = object.get();
            let start = text.as_ptr().addr();
            let end = start + text.len();
            match self.ranges.last_mut() {
                Some((first, last)) if end - *first <= PART => *last = end,
                _ => self.ranges.push((start, end)),
            }
        }
        Ok(self)
    }
}

impl Parts {
    /// Converts the last part first, and gives its text back. An error is that of one of the objects.
    fn convert(
        self,
        kinds: &[&'static Kind],
        mut body: Vec<u8>,
        desired: &str,
    ) -> Result<Vec<Vec<u8>>, String> {
        let text = body.as_ptr().addr();
        let mut pieces = Vec::with_capacity(self.ranges.len() + 2);
        for (index, (start, end)) in self.ranges.into_iter().enumerate().rev() {
            let mut answer = Vec::with_capacity(PART + PART / 16);
            if index > 0 {
                answer.push(b',');
            }
            let objects = Objects {
                kinds,
                desired,
                answer: &mut answer,
            };
            let (start, end) = (start - text, end - text);
            let list = as_list(&mut body, start, end);
            serde_json::Deserializer::from_slice(list)
                .deserialize_seq(objects)
                .map_err(|error| error.to_string())??;
            answer.shrink_to_fit();
            pieces.push(answer);
            body.truncate(start);
            body.shrink_to_fit();
        }
        pieces.reverse();
        Ok(pieces)
    }
}

/// A part as a list of its own: what stands before and after it, a bracket, a comma or space, becomes brackets.
fn as_list(body: &mut [u8], start: usize, end: usize) -> &[u8] {
    let part = body.get_mut(start.saturating_sub(1)..=end).unwrap_or_default();
    if let [first, .., last] = part {
        *first = b'[';
        *last = b']';
    }
    part
}

/// Converts the objects of a list as they are read.
struct Objects<'a> {
    kinds: &'a [&'static Kind],
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
        let object = one(self.kinds, object, self.desired)?;
        serde_json::to_writer(&mut *self.answer, &object).map_err(|error| error.to_string())
    }
}

fn one(kinds: &[&'static Kind], mut object: Value, desired: &str) -> Result<Value, String> {
    if object.get("apiVersion").is_some_and(|version| version == desired) {
        return Err(format!("the object is already in version {desired}"));
    }
    kinds::convert(kinds, &mut object, desired).map_err(|error| error.to_string())?;
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
        let answer = convert(&kinds::ALL, body.to_string().into_bytes()).unwrap();
        serde_json::from_slice(&answer.concat()).unwrap()
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
    fn a_list_of_several_parts_comes_back_in_order_whatever_is_between_its_objects() {
        let count = 5 * PART / (64 << 10);
        let names: Vec<String> = (0..count).map(|index| format!("set-{index}")).collect();
        let sets: Vec<String> = names
            .iter()
            .map(|name| {
                let mut set = set("v1alpha1", name);
                set["metadata"]["annotations"] = json!({"large": "x".repeat(64 << 10)});
                set.to_string()
            })
            .collect();
        for separator in [",", " ,", ", ", "\n,\n  "] {
            let list = sets.join(separator);
            let body = format!(
                r#"{{"kind":"ConversionReview","request":{{"objects":[ {list} ],"uid":"u","desiredAPIVersion":"apps.kruise.io/v1beta1"}}}}"#
            );
            let pieces = convert(&kinds::ALL, body.into_bytes()).unwrap();
            assert!(pieces.len() > 5, "{} pieces", pieces.len());
            let answer: Value = serde_json::from_slice(&pieces.concat()).unwrap();
            let objects = answer["response"]["convertedObjects"].as_array().unwrap();
            let found: Vec<&Value> = objects.iter().map(|object| &object["metadata"]["name"]).collect();
            assert_eq!(found, names.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_bad_object_in_any_part_fails_the_review() {
        let mut large = set("v1alpha1", "large");
        large["metadata"]["annotations"] = json!({"large": "x".repeat(PART)});
        for at in 0..3 {
            let mut sets = vec![large.clone(); 3];
            sets[at]["kind"] = json!("Deployment");
            let answer = review("apps.kruise.io/v1beta1", &sets);
            assert_eq!(answer["response"]["result"]["status"], "Failure", "{at}");
            assert_eq!(answer["response"].get("convertedObjects"), None);
        }
    }

    #[test]
    fn a_list_of_nothing_is_converted_to_nothing() {
        assert_eq!(
            review("apps.kruise.io/v1beta1", &[])["response"],
            json!({"uid": "u", "convertedObjects": [], "result": {"status": "Success"}})
        );
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
        assert!(matches!(convert(&kinds::ALL, b"{".to_vec()), Err(Error::Json(_))));
        for body in [
            "[]",
            r#"{"kind":"AdmissionReview"}"#,
            r#"{"kind":"ConversionReview"}"#,
            r#"{"kind":"ConversionReview","request":{"uid":"u"}}"#,
            r#"{"kind":1,"request":{"uid":"u","desiredAPIVersion":"v1"}}"#,
        ] {
            assert!(
                matches!(convert(&kinds::ALL, body.into()), Err(Error::Conversion)),
                "{body}"
            );
        }
        let long = json!({"kind": "ConversionReview", "request": {"uid": "u".repeat(TEXT_LIMIT), "desiredAPIVersion": "v1"}});
        assert!(matches!(
            convert(&kinds::ALL, long.to_string().into()),
            Err(Error::Conversion)
        ));
    }
}
