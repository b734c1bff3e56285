//! Whether a stored object is at rest: its controller has nothing left to do.

use kruise_frame::json::text;
use serde_json::Value;

/// Pairs of fields that are equal at rest, if an object has both.
const EQUAL: [(&str, &str); 6] = [
    ("/metadata/generation", "/status/observedGeneration"),
    ("/spec/replicas", "/status/replicas"),
    ("/status/replicas", "/status/readyReplicas"),
    ("/status/desiredNumberScheduled", "/status/currentNumberScheduled"),
    ("/status/desiredNumberScheduled", "/status/numberReady"),
    ("/status/matchedPods", "/status/updatedPods"),
];

/// Whether the stored object says that its controller has something left to do, or is being deleted.
pub fn is_moving(kind: &str, object: &Value) -> bool {
    let number = |pointer| object.pointer(pointer).and_then(Value::as_i64);
    let differs = |(one, other)| match (number(one), number(other)) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    };
    let is_job = kind.ends_with("Job") && kind != "AdvancedCronJob";
    let has_ended = !text(object, "/status/completionTime").is_empty();
    EQUAL.into_iter().any(differs)
        || (is_job && !has_ended)
        || !text(object, "/metadata/deletionTimestamp").is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_moves_while_its_numbers_differ_or_its_job_runs() {
        let at_rest = json!({"metadata": {"generation": 2}, "spec": {"replicas": 3},
            "status": {"observedGeneration": 2, "replicas": 3, "readyReplicas": 3}});
        assert!(!is_moving("CloneSet", &at_rest));
        for (pointer, value) in [
            ("/metadata/generation", json!(3)),
            ("/spec/replicas", json!(4)),
            ("/status/readyReplicas", json!(2)),
        ] {
            let mut moving = at_rest.clone();
            *moving.pointer_mut(pointer).unwrap() = value;
            assert!(is_moving("CloneSet", &moving), "{pointer}");
        }
        assert!(is_moving("BroadcastJob", &json!({"status": {}})));
        assert!(!is_moving(
            "BroadcastJob",
            &json!({"status": {"completionTime": "2026-01-02T03:04:05Z"}})
        ));
        assert!(!is_moving("AdvancedCronJob", &json!({"status": {}})));
        assert!(is_moving(
            "CloneSet",
            &json!({"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}})
        ));
    }
}
