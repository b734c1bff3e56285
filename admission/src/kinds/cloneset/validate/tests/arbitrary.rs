//! Documents that no schema has looked at.

use proptest::prelude::*;
use serde_json::json;

use super::rules::weight;
use super::*;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![
            Just("100%".to_owned()),
            Just("-1%".to_owned()),
            Just("InPlaceOnly".to_owned()),
            ".{0,8}"
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,5}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Every place in a document.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| places(value, &format!("{at}/{key}"), found)),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(i, value)| places(value, &format!("{at}/{i}"), found)),
        _ => {}
    }
}

proptest! {
    #[test]
    fn no_object_panics_and_what_is_stored_stays_writable(
        old in any::<bool>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any_json()), 1..4),
    ) {
        let original = with(if old { OLD } else { NEW }, &[
            ("~.priorityStrategy", weight(1, &json!({"matchLabels": {"a": "b"}}))),
            ("~.scatterStrategy", json!([{"key": "a", "value": "b"}])),
            ("~.inPlaceUpdateStrategy", json!({"imagePreDownloadParallelism": 1})),
            ("spec.scaleStrategy.podsToDelete", json!(["a"])),
            ("spec.volumeClaimTemplates", json!([{"metadata": {"name": "data"}}])),
            ("spec.progressDeadlineSeconds", json!(600)),
        ]);
        let mut mutated = original.clone();
        for (index, value) in edits {
            let mut found = Vec::new();
            places(&mutated, "", &mut found);
            *mutated.pointer_mut(index.get(found.as_slice()).as_str()).unwrap() = value;
        }
        let version = if old { OLD } else { NEW };
        let mut request = request("CREATE", original.clone(), mutated.clone());
        request.version = version.to_owned();
        for (operation, object, stored) in [
            (Operation::Create, &mutated, &Value::Null),
            (Operation::Update, &mutated, &original),
            (Operation::Update, &original, &mutated),
            (Operation::Delete, &Value::Null, &mutated),
        ] {
            (request.operation, request.object, request.old_object) = (operation, object.clone(), stored.clone());
            let _ = validate(&request, Options { deletion_protection: true, ..Options::default() });
            for phase in [Phase::Validating, Phase::Mutating] {
                let _ = decided(&WEBHOOKS, phase, &request, Options::default(), &|lookup| match lookup {
        Lookup::All(kind, _) => kind.all(Vec::new()),
                    _ => LookupResult::NotFound,
                });
            }
        }
        (request.operation, request.object, request.old_object) = (Operation::Update, mutated.clone(), mutated);
        let outcome = validate(&request, Options::default());
        let refused = matches!(outcome, Outcome::Response(Response::Deny { code: 422, .. }) | Outcome::Missing(_));
        prop_assert!(!refused, "{:?}", outcome);
    }
}
