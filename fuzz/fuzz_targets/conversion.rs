//! A ConversionReview, whoever sends it: the objects of a good answer are as many, in the version that was asked
//! for, and become what they were before if they are converted back and again.

#![no_main]

use kruise_admission::convert::convert;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

kruise_fuzz::json_mutator!(0);

fuzz_target!(|data: &[u8]| {
    let Some(converted) = objects_of(data) else {
        return;
    };
    // Escapes in members that are not known are not looked at.
    let Ok(review) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let given = review["request"]["objects"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    assert_eq!(converted.len(), given.len());
    let desired = &review["request"]["desiredAPIVersion"];
    for (before, after) in given.iter().zip(&converted) {
        assert_eq!(after["apiVersion"], *desired);
        let back = one(after, &before["apiVersion"]).expect("what was converted converts back");
        let again = one(&back, desired).expect("and again");
        assert_eq!(again, *after, "back as {back}");
    }
});

fn one(object: &Value, desired: &Value) -> Option<Value> {
    let request = json!({"uid": "u", "desiredAPIVersion": desired, "objects": [object]});
    let review = json!({"kind": "ConversionReview", "request": request});
    objects_of(review.to_string().as_bytes())?.pop()
}

/// The converted objects of a good answer.
fn objects_of(body: &[u8]) -> Option<Vec<Value>> {
    let answer = convert(&kruise_api::kinds::ALL, body.to_vec()).ok()?.concat();
    let mut answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
    let response = answer["response"].take();
    if response["result"]["status"] != "Success" {
        assert_ne!(response["result"]["message"], "");
        return None;
    }
    Some(response["convertedObjects"].as_array().expect("a list").clone())
}
