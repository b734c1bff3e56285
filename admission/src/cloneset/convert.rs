//! Conversion of stored CloneSets between versions: the endpoint an API server calls when a client reads or writes a
//! version other than the stored one.
//!
//! The hub is `v1beta1`. One object that cannot be converted fails the whole review, as the protocol wants it: the API
//! server would not know what to do with the rest.

use kruise_api::cloneset::convert::{to_v1alpha1, to_v1beta1};
use kruise_api::names::APPS_GROUP;
use serde_json::{Value, json};

use crate::Error;

/// From the body of a ConversionReview to the body of its answer. An error is the sender's: HTTP 400.
pub fn convert(body: &[u8]) -> Result<Vec<u8>, Error> {
    let mut review: Value = serde_json::from_slice(body)?;
    if review.get("kind").and_then(Value::as_str) != Some("ConversionReview") {
        return Err(Error::Conversion);
    }
    let mut request = review
        .get_mut("request")
        .map(Value::take)
        .ok_or(Error::Conversion)?;
    let text = |name: &str| request.get(name).and_then(Value::as_str).map(str::to_owned);
    let (Some(uid), Some(desired)) = (text("uid"), text("desiredAPIVersion")) else {
        return Err(Error::Conversion);
    };
    let objects = match request.get_mut("objects").map(Value::take) {
        Some(Value::Array(objects)) => objects,
        _ => Vec::new(),
    };
    let converted: Result<Vec<Value>, String> =
        objects.into_iter().map(|object| one(object, &desired)).collect();
    let response = match converted {
        Ok(objects) => json!({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}}),
        Err(message) => json!({"uid": uid, "result": {"status": "Failure", "message": message}}),
    };
    let version = review
        .get("apiVersion")
        .cloned()
        .unwrap_or_else(|| json!("apiextensions.k8s.io/v1"));
    Ok(serde_json::to_vec(&json!({
        "kind": "ConversionReview", "apiVersion": version, "response": response,
    }))?)
}

fn one(mut object: Value, desired: &str) -> Result<Value, String> {
    let text = |name: &str| {
        object
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (kind, from) = (text("kind"), text("apiVersion"));
    let version = |text: &str| -> Option<String> {
        let (group, version) = text.split_once('/')?;
        (group == APPS_GROUP).then(|| version.to_owned())
    };
    if kind != "CloneSet" {
        return Err(format!("no conversion of {from} {kind}"));
    }
    let converted = match (version(&from).as_deref(), version(desired).as_deref()) {
        (Some("v1alpha1"), Some("v1beta1")) => to_v1beta1(&mut object),
        (Some("v1beta1"), Some("v1alpha1")) => to_v1alpha1(&mut object),
        (Some(from), Some(to)) if from == to => {
            return Err(format!("CloneSet is already in version {to}"));
        }
        _ => return Err(format!("no conversion of {kind} from {from} to {desired}")),
    };
    converted.map_err(|error| error.to_string())?;
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
