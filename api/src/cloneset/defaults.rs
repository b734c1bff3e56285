//! Defaults of the specification, without those of the pod template.

use serde_json::{Map, Value, json};

use super::convert::V1ALPHA1;

/// Fills in absent fields, in the version of the object. Fields that are set stay. The parameters of a rolling
/// update are filled in only if the strategy is a rolling update.
pub fn apply(object: &mut Value) {
    let older = object
        .get("apiVersion")
        .is_some_and(|version| version == V1ALPHA1);
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    fill(spec, "replicas", json!(1));
    fill(spec, "revisionHistoryLimit", json!(10));
    fill(spec, "updateStrategy", json!({}));
    let Some(strategy) = spec.get_mut("updateStrategy").and_then(Value::as_object_mut) else {
        return;
    };
    if older {
        fill_text(strategy, "type", "ReCreate");
        rolling(strategy, "type");
        return;
    }
    fill_text(strategy, "type", "RollingUpdate");
    if strategy.get("type").is_some_and(|kind| kind == "RollingUpdate") {
        fill(strategy, "rollingUpdate", json!({}));
        if let Some(update) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut) {
            fill_text(update, "podUpdatePolicy", "ReCreate");
            rolling(update, "podUpdatePolicy");
        }
    }
}

fn rolling(update: &mut Map<String, Value>, policy: &str) {
    fill(update, "partition", json!(0));
    fill(update, "maxUnavailable", json!("20%"));
    fill(update, "maxSurge", json!(0));
    let policy = update.get(policy).and_then(Value::as_str);
    if matches!(policy, Some("InPlaceIfPossible" | "InPlaceOnly")) {
        fill(update, "inPlaceUpdateStrategy", json!({}));
    }
}

fn fill(members: &mut Map<String, Value>, name: &str, value: Value) {
    let slot = members.entry(name).or_insert(Value::Null);
    if slot.is_null() {
        *slot = value;
    }
}

/// As [`fill`]; an empty text counts as absent too.
fn fill_text(members: &mut Map<String, Value>, name: &str, value: &str) {
    if members.get(name).is_some_and(|have| have == "") {
        members.remove(name);
    }
    fill(members, name, value.into());
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::apply;

    fn defaulted(version: &str, spec: Value) -> Value {
        let mut object = json!({"apiVersion": format!("apps.kruise.io/{version}"), "spec": spec});
        apply(&mut object);
        let once = object.clone();
        apply(&mut object);
        assert_eq!(object, once);
        object["spec"].take()
    }

    #[test]
    fn the_newer_version_fills_a_rolling_update() {
        assert_eq!(
            defaulted("v1beta1", json!({})),
            json!({"replicas": 1, "revisionHistoryLimit": 10, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate":
                {"podUpdatePolicy": "ReCreate", "partition": 0, "maxUnavailable": "20%", "maxSurge": 0}}})
        );
    }

    #[test]
    fn the_older_version_fills_every_type() {
        let spec = defaulted(
            "v1alpha1",
            json!({"updateStrategy": {"type": "InPlaceOnly"}, "replicas": 0}),
        );
        assert_eq!(spec["replicas"], 0);
        assert_eq!(
            spec["updateStrategy"],
            json!({"type": "InPlaceOnly", "partition": 0, "maxUnavailable": "20%", "maxSurge": 0, "inPlaceUpdateStrategy": {}})
        );
    }

    #[test]
    fn parameters_beside_on_delete_stay() {
        let strategy = json!({"type": "OnDelete", "rollingUpdate": {"paused": true}});
        assert_eq!(
            defaulted("v1beta1", json!({"updateStrategy": strategy}))["updateStrategy"],
            strategy
        );
    }
}
