//! What a pod of a BroadcastJob says about nodes.

use serde_json::{Map, Value, json};

/// From the specification of a pod, in the form of a template.
pub(super) fn placement(spec: &Value) -> Value {
    let mut kept = Map::new();
    for member in ["nodeSelector", "tolerations"] {
        if let Some(value) = spec.get(member).filter(|value| !value.is_null()) {
            kept.insert(member.into(), value.clone());
        }
    }
    let required = spec.pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    if let Some(required) = required.filter(|required| !required.is_null() && !is_pin(required)) {
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
        kept.insert("affinity".into(), affinity);
    }
    json!({"spec": kept})
}

/// Does it ask for the name of one node, and for nothing else?
fn is_pin(required: &Value) -> bool {
    let Some([term]) = required
        .get("nodeSelectorTerms")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    else {
        return false;
    };
    let Some([field]) = term
        .get("matchFields")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    else {
        return false;
    };
    let expressions = term.get("matchExpressions").and_then(Value::as_array);
    expressions.is_none_or(Vec::is_empty) && field.get("key") == Some(&Value::from("metadata.name"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::PodView;

    fn pod(kind: &str, policy: &str) -> PodView {
        let pinned = json!({"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]});
        let pod = json!({
            "metadata": {"name": "check-1", "namespace": "ops", "ownerReferences": [
                {"apiVersion": "apps.kruise.io/v1alpha1", "kind": kind, "name": "check", "uid": "u", "controller": true}]},
            "spec": {
                "restartPolicy": policy, "nodeSelector": {"disk": "ssd"}, "tolerations": [{"operator": "Exists"}],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": pinned}},
            },
            "status": {
                "initContainerStatuses": [{"name": "i", "restartCount": 2}],
                "containerStatuses": [{"name": "c", "restartCount": 3}],
            },
        });
        serde_json::from_str(&pod.to_string()).unwrap()
    }

    #[test]
    fn what_a_pod_says_about_nodes_is_kept_without_the_pin_for_broadcastjobs_only() {
        let pod = pod("BroadcastJob", "OnFailure");
        assert_eq!(pod.pinned.as_deref(), Some("n1"));
        let expected =
            json!({"spec": {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"operator": "Exists"}]}});
        assert_eq!(pod.broadcast.unwrap().placement, expected);
        assert_eq!(super::tests::pod("DaemonSet", "OnFailure").broadcast, None);
    }

    #[test]
    fn restarts_of_all_containers_count_where_failed_ones_restart() {
        let restarts = |policy| pod("BroadcastJob", policy).broadcast.unwrap().restarts;
        assert_eq!(["OnFailure", "Never"].map(restarts), [5, 0]);
    }

    #[test]
    fn an_affinity_of_the_template_is_kept() {
        let asks =
            json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]});
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": asks}});
        let kept = super::placement(&json!({"affinity": affinity, "nodeSelector": Value::Null}));
        assert_eq!(kept, json!({"spec": {"affinity": affinity}}));
    }
}
