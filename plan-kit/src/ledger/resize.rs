//! Does an update of a pod change nothing but amounts that running containers can be given?

use kruise_api::names::podunavailablebudget::UNAVAILABLE_PREFIX;
use serde_json::{Map, Value};

use super::Operation;
use crate::inplace::{keeps_class_of_service, restarts_for};

/// Annotation of pods that a node made from a file or an address.
const SOURCE: &str = "kubernetes.io/config.source";

/// What an update from one pod to another is, as budgets see it; `None` if it cannot make the pod unavailable:
/// neither does its specification differ, nor is it labelled unavailable.
pub fn operation_of_update(old: &Value, new: &Value) -> Option<Operation> {
    let is_labelled = is_newly_labelled(old, new);
    if old.get("spec") == new.get("spec") && !is_labelled {
        return None;
    }
    let is_resize = !is_labelled && is_pure_resize(old, new);
    Some(if is_resize {
        Operation::Resize
    } else {
        Operation::Update
    })
}

fn is_newly_labelled(old: &Value, new: &Value) -> bool {
    let labels = |pod: &Value| {
        let labels = pod.pointer("/metadata/labels").and_then(Value::as_object);
        let keys = labels.into_iter().flat_map(Map::keys).cloned();
        keys.filter(|key| key.starts_with(UNAVAILABLE_PREFIX))
            .collect::<Vec<_>>()
    };
    let before = labels(old);
    labels(new).iter().any(|key| !before.contains(key))
}

fn is_pure_resize(old: &Value, new: &Value) -> bool {
    without_amounts(old) == without_amounts(new)
        && !is_static(old)
        && !is_static(new)
        && keeps_class_of_service(old, new)
        && containers(old)
            .zip(containers(new))
            .all(|(old, new)| restarts_nothing(old, new))
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let list = pod.pointer("/spec/containers").and_then(Value::as_array);
    list.into_iter().flatten()
}

/// The specification without the amounts of its containers. Those of init containers stay.
fn without_amounts(pod: &Value) -> Value {
    let mut spec = pod.get("spec").cloned().unwrap_or_default();
    let list = spec.get_mut("containers").and_then(Value::as_array_mut);
    for container in list.into_iter().flatten() {
        if let Some(members) = container.as_object_mut() {
            members.remove("resources");
        }
    }
    spec
}

fn is_static(pod: &Value) -> bool {
    let source = pod
        .pointer("/metadata/annotations")
        .and_then(|found| found.get(SOURCE));
    source.is_some_and(|source| source != "api")
}

/// Are only amounts of CPU and memory different that the container takes without a restart?
fn restarts_nothing(old: &Value, new: &Value) -> bool {
    let mut changed = ["requests", "limits"].into_iter().flat_map(|list| {
        let amounts = |container: &Value| {
            let found = container
                .get("resources")
                .and_then(|resources| resources.get(list));
            found.and_then(Value::as_object).cloned().unwrap_or_default()
        };
        let (before, after) = (amounts(old), amounts(new));
        let names: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
        let differs = move |name: &String| before.get(name) != after.get(name);
        names.into_iter().filter(differs).collect::<Vec<_>>()
    });
    let is_taken = |name: String| matches!(name.as_str(), "cpu" | "memory") && !restarts_for(new, &name);
    let others = |container: &Value| {
        let members = container.get("resources").and_then(Value::as_object).cloned();
        let mut members = members.unwrap_or_default();
        members.retain(|name, _| name != "requests" && name != "limits");
        members
    };
    changed.all(is_taken) && others(old) == others(new)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Operation, operation_of_update};

    fn pod(cpu: &str) -> Value {
        json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{
                "name": "main", "image": "web:1",
                "resources": {"requests": {"cpu": cpu, "memory": "1Gi", "example.com/gpu": "1"}},
            }]},
        })
    }

    /// What becomes of a pod with half a CPU if this is changed.
    fn changed(change: impl Fn(&mut Value)) -> Option<Operation> {
        let mut new = pod("500m");
        change(&mut new);
        operation_of_update(&pod("500m"), &new)
    }

    #[test]
    fn labels_and_annotations_alone_make_no_pod_unavailable_but_for_the_label_that_says_so() {
        assert_eq!(changed(|_| {}), None);
        assert_eq!(changed(|pod| pod["metadata"]["labels"]["x"] = json!("y")), None);
        assert_eq!(
            changed(|pod| pod["metadata"]["annotations"] = json!({"x": "y"})),
            None
        );
        let label = "unavailable-pod.kruise.io/node";
        assert_eq!(
            changed(|pod| pod["metadata"]["labels"][label] = json!("")),
            Some(Operation::Update)
        );
        let mut labelled = pod("500m");
        labelled["metadata"]["labels"][label] = json!("");
        assert_eq!(
            operation_of_update(&labelled, &pod("500m")),
            None,
            "it is taken away"
        );
        assert_eq!(operation_of_update(&labelled, &labelled), None);
        let mut resized = labelled.clone();
        resized["spec"] = pod("1")["spec"].clone();
        assert_eq!(operation_of_update(&labelled, &resized), Some(Operation::Resize));
        assert_eq!(
            operation_of_update(&pod("500m"), &resized),
            Some(Operation::Update)
        );
    }

    #[test]
    fn amounts_of_cpu_and_memory_are_a_resize_and_everything_else_an_update() {
        let container = |name: &'static str, value: Value| {
            changed(move |pod| pod["spec"]["containers"][0][name] = value.clone())
        };
        let requests = |requests: Value| container("resources", json!({"requests": requests}));
        let resize = Some(Operation::Resize);
        let update = Some(Operation::Update);
        assert_eq!(
            requests(json!({"cpu": "1", "memory": "2Gi", "example.com/gpu": "1"})),
            resize
        );
        assert_eq!(requests(json!({"memory": "1Gi", "example.com/gpu": "1"})), resize);
        assert_eq!(
            requests(json!({"cpu": "1", "memory": "1Gi", "example.com/gpu": "2"})),
            update
        );
        assert_eq!(requests(json!({"cpu": "1", "memory": "1Gi"})), update);
        assert_eq!(container("image", json!("web:2")), update);
        assert_eq!(
            changed(|pod| pod["spec"]["activeDeadlineSeconds"] = json!(5)),
            update
        );
        let claims = json!({"requests": {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}, "claims": [{"name": "a"}]});
        assert_eq!(container("resources", claims), update);
    }

    #[test]
    fn another_class_of_service_a_restart_or_a_static_pod_is_an_update() {
        assert_eq!(
            changed(|pod| pod["spec"]["containers"][0]["resources"] = json!({})),
            Some(Operation::Update)
        );
        let with = |change: &dyn Fn(&mut Value)| {
            let [mut old, mut new] = [pod("500m"), pod("1")];
            change(&mut old);
            change(&mut new);
            operation_of_update(&old, &new).unwrap()
        };
        let policy = |policy: &'static str| {
            with(&|pod| {
                pod["spec"]["containers"][0]["resizePolicy"] = json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"},
                           {"resourceName": "cpu", "restartPolicy": policy}]);
            })
        };
        assert_eq!(policy("NotRequired"), Operation::Resize);
        assert_eq!(policy("RestartContainer"), Operation::Update);
        let source = |source: &'static str| {
            with(&|pod| pod["metadata"]["annotations"] = json!({"kubernetes.io/config.source": source}))
        };
        assert_eq!(source("api"), Operation::Resize);
        assert_eq!(source("file"), Operation::Update);
    }
}
