//! Label selectors and match conditions. A selector prints as one that is equal, and both readers of selectors agree; a
//! condition has one value, and its negation the other. The first line is the text, the rest the object.

#![no_main]

use kruise_api::meta::LabelSelector;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|data: &[u8]| {
    let Ok(data) = std::str::from_utf8(data) else {
        return;
    };
    let (text, object) = data.split_once('\n').unwrap_or((data, ""));
    let object: Value = serde_json::from_str(object).unwrap_or_else(|_| {
        json!({"metadata": {"name": "web", "labels": {"app": "web", "tier": "", "n": "5"}}, "spec": {"replicas": 3}})
    });
    selector(text, &object["metadata"]["labels"]);
    condition(text, &object);
});

fn selector(text: &str, labels: &Value) {
    let Ok(read) = text.parse::<LabelSelector>() else {
        return;
    };
    let printed = read.to_query();
    let again: LabelSelector = printed.parse().expect("what is printed is read");
    assert_eq!(again.to_query(), printed, "{text:?}");
    let holds = |selector: &LabelSelector| selector.matches_by(|key| labels[key].as_str());
    assert_eq!(holds(&read), holds(&again), "{text:?} {printed:?}");
    // Comparisons of numbers are for lists only.
    let is_text = labels
        .as_object()
        .is_some_and(|all| all.values().all(Value::is_string));
    if is_text && !text.contains(['<', '>']) {
        if let Ok(selects) = kruise_sim::fuzzing::selects(text, labels) {
            assert_eq!(holds(&read), selects, "{text:?}");
        }
    }
}

fn condition(text: &str, object: &Value) {
    use kruise_sim::fuzzing::holds;

    let Ok(value) = holds(text, object) else {
        return;
    };
    for (other, expected) in [
        (format!("({text})"), value.clone().ok()),
        (format!("!({text})"), value.clone().ok().map(|value| !value)),
        (format!("({text}) || false"), value.clone().ok()),
        (format!("true && ({text})"), value.clone().ok()),
        (format!("({text}) ? true : false"), value.clone().ok()),
        (format!("false && ({text})"), Some(false)),
    ] {
        let found = holds(&other, object).expect("a condition in parentheses is one");
        assert_eq!(found.ok(), expected, "{other}");
    }
}
