//! What is stored after the way back, compared with what was stored before.

use kruise_plan_test_kit::Fleet;
use serde_json::{Value, json};

use super::cluster::{Cluster, Stored, key};
use super::is_reported_by_kubernetes;

/// The object that is edited meanwhile.
const EDITED: &str = "clonesets.apps.kruise.io shop-1/canary";
const PATH: &str = "/apis/apps.kruise.io/v1beta1/namespaces/shop-1/clonesets/canary";

/// An edit that has no effect on pods.
fn patch() -> Value {
    json!({"metadata": {"annotations": {"example.com/edited": "meanwhile"}}, "spec": {"revisionHistoryLimit": 7}})
}

/// Edits an object, and waits until the manager has seen it.
pub(super) fn edit(api: &Cluster) {
    api.merge(PATH, &patch());
    let since = std::time::Instant::now();
    loop {
        let set = api.get(PATH);
        if set["status"]["observedGeneration"] == set["metadata"]["generation"] {
            return;
        }
        assert!(since.elapsed() < crate::process::LIMIT, "{set}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// What may differ, by how its path ends: the version of the last write, what this manager reports or corrects and
/// OpenKruise does not, and the annotation that keeps what the older version of a definition has no field for.
const REPORTED: [&str; 6] = [
    " metadata resourceVersion",
    " metadata annotations kruise.io/conversion-data",
    // OpenKruise had stored an address that its pod no longer has, which this manager corrects.
    "/kwok-1 metadata generation",
    "/kwok-1 spec podProbes",
    " status conditions",
    " status subsetStatuses",
];
/// Of the set that the client has a pod of now and then: that one may have been counted when the manager ended.
const COUNTED: [&str; 2] = [" /logs-0 status matchedPods", " /logs-0 status updatedPods"];
/// A default that the webhook of a CloneSet fills in, and its value.
const FILLED_IN: (&str, bool) = (" spec scaleStrategy disablePVCReuse", false);

/// Every object is stored as it was, but for the edit, and for [`REPORTED`] and [`FILLED_IN`].
pub(super) fn assert_as_before(fleet: &Fleet, before: &Stored, after: &Stored) {
    let mut differences = Vec::new();
    for object in &fleet.objects {
        let key = key(object);
        let mut expected = before[&key].clone();
        if key == EDITED {
            expected["metadata"]["annotations"]["example.com/edited"] = json!("meanwhile");
            expected["spec"]["revisionHistoryLimit"] = json!(7);
            for pointer in ["/metadata/generation", "/status/observedGeneration"] {
                let number = expected.pointer_mut(pointer).unwrap();
                *number = json!(number.as_u64().unwrap() + 1);
            }
        }
        match after.get(&key) {
            None => differences.push(format!("{key} is gone")),
            Some(now) => compare(&key, &expected, now, &mut differences),
        }
    }
    let number = differences.len();
    differences.truncate(100);
    assert!(differences.is_empty(), "{number}: {differences:#?}");
}

/// Adds what differs, each as a path.
fn compare(path: &str, before: &Value, now: &Value, differences: &mut Vec<String>) {
    match (before, now) {
        (Value::Object(had), Value::Object(has)) => {
            let fields: std::collections::BTreeSet<&String> = had.keys().chain(has.keys()).collect();
            for field in fields {
                let path = format!("{path} {field}");
                let is_reported = field == "status" && is_reported_by_kubernetes(&path);
                if is_reported || REPORTED.iter().any(|end| path.ends_with(end)) {
                    continue;
                }
                let (had, has) = (had.get(field), has.get(field));
                match (had, has) {
                    (Some(had), Some(has)) => compare(&path, had, has, differences),
                    (Some(Value::Null), None) => {}
                    (None, Some(has)) if path.ends_with(FILLED_IN.0) && *has == json!(FILLED_IN.1) => {}
                    _ => differences.push(format!("{path}: {had:?} is {has:?}")),
                }
            }
        }
        _ if before == now => {}
        (Value::Number(had), Value::Number(has))
            if COUNTED.iter().any(|end| path.ends_with(end))
                && has.as_u64() == had.as_u64().map(|had| had + 1) => {}
        _ => differences.push(format!("{path}: {before} is {now}")),
    }
}
