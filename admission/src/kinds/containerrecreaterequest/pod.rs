//! The pod of a new request: whether its containers can be started anew, and what is copied from it.
//!
//! What is copied says on which node the request is carried out, and which containers of which pod it is about: a
//! container that was replaced meanwhile has another identity.

use kruise_api::names::conditions::SIDECAR_TERMINATED;
use kruise_api::names::containerrecreaterequest::{NODE_NAME, NODE_TYPE, POD_UID, VIRTUAL_KUBELET};
use kruise_api::path::segment;
use kube_schema::validate::{self, Errors};
use serde_json::{Map, Value, json};

use crate::json::{fill, integer, items, made, member, present, text};
use crate::kinds::Scope;
use crate::lookup::{Lookup, Read, Reader};

const POD: &str = "spec.podName";
/// Handlers that a request has a place for.
const HANDLERS: [&str; 3] = ["exec", "httpGet", "tcpSocket"];

/// What is wrong with a new request for this pod.
pub(super) fn check(errors: &mut Errors, object: &Value, scope: &Scope<'_>, reader: &mut Reader<'_>) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let name = text(spec, "podName");
    let pod = match pod(object, scope, reader) {
        Read::Found(pod) => pod,
        Read::NotFound => return errors.invalid(POD, name, &format!("no found Pod named {name}")),
        Read::Missing => return,
    };
    if !is_active(pod) {
        return errors.invalid(POD, name, "the pod has ended, or is being deleted");
    }
    let Some(node) = node_of(pod) else {
        return errors.invalid(POD, name, "not allowed to recreate containers in a pending Pod");
    };
    if validate::not_a_label_value(node).is_some() {
        let detail = format!(
            "the name of its node {node} is too long for a label, by which the agent of the node finds requests"
        );
        return errors.invalid(POD, name, &detail);
    }
    match reader.labels(Lookup::NodeLabels(node.to_owned())) {
        Read::Missing => return,
        Read::NotFound => return errors.invalid(POD, name, &format!("its node {node} does not exist")),
        Read::Found(_) => {}
    }
    for (index, one) in items(spec, "containers").iter().enumerate() {
        let name = text(one, "name");
        let detail = match container(pod, name) {
            None if is_among(pod, "initContainers", name) => {
                "is an init container that runs only while the pod starts"
            }
            None => "is no container of the pod",
            Some(_) if identity(pod, name).is_none() => "has not been started yet",
            Some(_) => continue,
        };
        errors.invalid(format!("spec.containers[{index}].name"), name, detail);
    }
}

/// Copies into a new request what the pod says.
pub(super) fn copy(object: &mut Value, scope: &Scope<'_>, reader: &mut Reader<'_>) {
    let Some(pod) = pod(object, scope, reader).found() else {
        return;
    };
    let node = node_of(pod).unwrap_or_default();
    let labels = reader.labels(Lookup::NodeLabels(node.to_owned())).found();
    let is_virtual = labels
        .and_then(|labels| labels.get(NODE_TYPE))
        .map(String::as_str)
        == Some(VIRTUAL_KUBELET);
    if let Some(Value::Object(labels)) = made(object, "metadata").and_then(|one| made(one, "labels")) {
        let uid = pod.pointer("/metadata/uid").cloned();
        labels.insert(NODE_NAME.to_owned(), node.into());
        labels.insert(POD_UID.to_owned(), uid.unwrap_or_default());
        if is_virtual {
            labels.insert(NODE_TYPE.to_owned(), VIRTUAL_KUBELET.into());
        }
    }
    let Some(spec) = made(object, "spec") else {
        return;
    };
    if let (Some(seconds), Some(strategy)) = (
        pod.pointer("/spec/terminationGracePeriodSeconds")
            .and_then(Value::as_i64),
        made(spec, "strategy"),
    ) {
        fill(strategy, "terminationGracePeriodSeconds", seconds);
    }
    let has_hook = |one: &Value| hook(pod, text(one, "name")).is_some();
    // A preStop hook may hold secrets, and any client that reaches the port can read the response to a review.
    let are_copied =
        items(spec, "containers").iter().any(has_hook) && reader.has(Lookup::BlindAgent(node.to_owned()));
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    for one in containers.into_iter().flatten() {
        copy_container(one, pod, are_copied);
    }
}

/// The hook that a container runs before it is stopped.
fn hook<'p>(pod: &'p Value, name: &str) -> Option<&'p Map<String, Value>> {
    container(pod, name)?.pointer("/lifecycle/preStop")?.as_object()
}

/// Copies which run of the container it is, and the hook if the agent does not read it from the pod.
fn copy_container(one: &mut Value, pod: &Value, with_hook: bool) {
    let name = text(one, "name").to_owned();
    let (Some(of), Some(identity)) = (container(pod, &name), identity(pod, &name)) else {
        return;
    };
    let Some(one) = one.as_object_mut() else {
        return;
    };
    if let Some(hook) = hook(pod, &name).filter(|_| with_hook) {
        let known = hook.iter().filter(|(name, _)| HANDLERS.contains(&name.as_str()));
        let known: Map<String, Value> = known.map(|(name, hook)| (name.clone(), hook.clone())).collect();
        // ports are known by name to nothing else
        if known.contains_key("httpGet")
            && let Some(ports) = present(of, "ports")
        {
            one.insert("ports".to_owned(), ports.clone());
        }
        one.insert("preStop".to_owned(), known.into());
    }
    one.insert("statusContext".to_owned(), identity);
}

/// The pod that a request names.
fn pod<'a>(object: &Value, scope: &Scope<'_>, reader: &mut Reader<'a>) -> Read<&'a Value> {
    let name = object.pointer("/spec/podName").and_then(Value::as_str);
    match name.filter(|name| validate::is_dns_subdomain(name)) {
        Some(name) => {
            let path = format!("/api/v1/namespaces/{}/pods/{name}", segment(scope.namespace));
            reader.object(Lookup::Path(path))
        }
        None => Read::NotFound,
    }
}

/// Where the pod runs, if that was decided.
fn node_of(pod: &Value) -> Option<&str> {
    let name = pod.pointer("/spec/nodeName").and_then(Value::as_str);
    name.filter(|name| !name.is_empty())
}

/// Not deleted or over. A pod whose sidecars were ended with its job is over, and may be asked for all the same.
fn is_active(pod: &Value) -> bool {
    let status = pod.get("status").unwrap_or(&Value::Null);
    let conditions = items(status, "conditions");
    let excused = || {
        conditions
            .iter()
            .any(|one| text(one, "type") == SIDECAR_TERMINATED)
    };
    let is_over = matches!(text(status, "phase"), "Succeeded" | "Failed")
        || pod
            .pointer("/metadata/deletionTimestamp")
            .is_some_and(Value::is_string);
    !is_over || excused()
}

/// Is a container of this name in the list of this name?
fn is_among(pod: &Value, list: &str, name: &str) -> bool {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    items(spec, list).iter().any(|one| text(one, "name") == name)
}

/// A container of the pod that runs as long as the pod.
fn container<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    let spec = pod.get("spec")?;
    let of = |list| items(spec, list).iter().find(|one| text(one, "name") == name);
    of("containers").or_else(|| of("initContainers").filter(|one| text(one, "restartPolicy") == "Always"))
}

/// Which run of a container it is now.
fn identity(pod: &Value, name: &str) -> Option<Value> {
    let status = member(pod, "status")?;
    let of = |list| items(status, list).iter().find(|one| text(one, "name") == name);
    let found = of("containerStatuses").or_else(|| of("initContainerStatuses"))?;
    let id = Some(text(found, "containerID")).filter(|id| !id.is_empty())?;
    Some(json!({"containerID": id, "restartCount": integer(found, "restartCount").unwrap_or_default()}))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Case, case};
    use super::*;

    const CASE: Case = case("ContainerRecreateRequest", || Value::Null);
    const POD: &str = "/api/v1/namespaces/default/pods/web-0";
    const NODE: &str = "/api/v1/nodes/n1";
    const BLIND_AGENT: &str = "agent of n1";

    fn request() -> Value {
        CASE.object(
            "v1beta1",
            &json!({"podName": "web-0", "containers": [{"name": "web"}, {"name": "proxy"}]}),
        )
    }

    fn the_pod() -> Value {
        let get = json!({"httpGet": {"port": "admin", "path": "/stop"}});
        json!({
            "metadata": {"name": "web-0", "uid": "u1"},
            "spec": {
                "nodeName": "n1", "terminationGracePeriodSeconds": 45,
                "containers": [
                    {"name": "web", "lifecycle": {"preStop": get}, "ports": [{"name": "admin", "containerPort": 9}]},
                    {"name": "slow", "lifecycle": {"preStop": {"sleep": {"seconds": 5}}}, "ports": [{"containerPort": 1}]},
                    {"name": "starting"},
                ],
                "initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "once"}],
            },
            "status": {
                "phase": "Running",
                "containerStatuses": [
                    {"name": "web", "containerID": "containerd://web", "restartCount": 2},
                    {"name": "slow", "containerID": "containerd://slow", "restartCount": 0},
                    {"name": "starting", "containerID": ""},
                ],
                "initContainerStatuses": [
                    {"name": "proxy", "containerID": "containerd://proxy"},
                    {"name": "once", "containerID": "containerd://once"},
                ],
            },
        })
    }

    fn with(edit: impl FnOnce(&mut Value)) -> [(&'static str, Value); 2] {
        let mut pod = the_pod();
        edit(&mut pod);
        [(POD, pod), (NODE, json!({}))]
    }

    fn refused(seen: &[(&str, Value)], names: &[&str]) -> Option<String> {
        let mut object = request();
        object["spec"]["containers"] = names.iter().map(|name| json!({"name": name})).collect();
        CASE.seeing(seen, "CREATE", &object, &Value::Null)
    }

    #[test]
    fn the_pod_must_run_on_a_node_and_have_the_containers() {
        let there = with(|_| ());
        assert_eq!(refused(&there, &["web", "proxy", "slow"]), None);
        for (seen, names, expected) in [
            (
                vec![(POD, Value::Null)],
                vec!["web"],
                "spec.podName: Invalid value: \"web-0\": no found Pod named web-0",
            ),
            (
                with(|pod| pod["spec"]["nodeName"] = json!("")).to_vec(),
                vec!["web"],
                "not allowed to recreate containers in a pending Pod",
            ),
            (
                with(|pod| pod["status"]["phase"] = json!("Failed")).to_vec(),
                vec!["web"],
                "the pod has ended",
            ),
            (
                with(|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")).to_vec(),
                vec!["web"],
                "the pod has ended",
            ),
            (
                vec![(POD, the_pod()), (NODE, Value::Null)],
                vec!["web"],
                "its node n1 does not exist",
            ),
            (
                with(|pod| pod["spec"]["nodeName"] = json!("n".repeat(64))).to_vec(),
                vec!["web"],
                "is too long for a label",
            ),
            (
                there.to_vec(),
                vec!["web", "other"],
                "spec.containers[1].name: Invalid value: \"other\": is no container",
            ),
            (
                there.to_vec(),
                vec!["once"],
                "spec.containers[0].name: Invalid value: \"once\": is an init container",
            ),
            (
                there.to_vec(),
                vec!["starting"],
                "spec.containers[0].name: Invalid value: \"starting\": has not been",
            ),
        ] {
            let message = refused(&seen, &names).unwrap_or_else(|| panic!("{expected}"));
            assert!(message.contains(expected), "{message}\nexpected {expected}");
        }
        // the containers of a job that is over, but for its sidecars
        let over = with(|pod| {
            pod["status"]["phase"] = json!("Failed");
            pod["status"]["conditions"] = json!([{"type": "SidecarTerminated", "status": "True"}]);
        });
        assert_eq!(refused(&over, &["web"]), None);
    }

    #[test]
    fn what_could_be_no_name_is_not_looked_up() {
        let mut object = request();
        object["spec"]["podName"] = json!("../nodes/n1");
        let message = CASE.seeing(&[], "CREATE", &object, &Value::Null).unwrap();
        assert!(message.contains("no found Pod named ../nodes/n1"), "{message}");
    }

    #[test]
    fn what_the_pod_says_is_copied() {
        let mut object = request();
        object["spec"]["containers"] = json!([{"name": "web"}, {"name": "slow"}, {"name": "proxy"}]);
        let seen = [
            (POD, the_pod()),
            (NODE, json!({"metadata": {"labels": {"type": "virtual-kubelet"}}})),
            (BLIND_AGENT, json!(true)),
        ];
        let found = CASE.filled_in(&seen, &object);
        let labels = json!({
            "crr.apps.kruise.io/active": "true", "crr.apps.kruise.io/node-name": "n1",
            "crr.apps.kruise.io/pod-uid": "u1", "type": "virtual-kubelet",
        });
        assert_eq!(found["metadata"]["labels"], labels);
        let strategy = json!({"failurePolicy": "Fail", "terminationGracePeriodSeconds": 45});
        assert_eq!(found["spec"]["strategy"], strategy);
        let containers = json!([
            {"name": "web", "preStop": {"httpGet": {"port": "admin", "path": "/stop"}},
             "ports": [{"name": "admin", "containerPort": 9}],
             "statusContext": {"containerID": "containerd://web", "restartCount": 2}},
            // there is no place for this hook: as OpenKruise stores it
            {"name": "slow", "preStop": {}, "statusContext": {"containerID": "containerd://slow", "restartCount": 0}},
            {"name": "proxy", "statusContext": {"containerID": "containerd://proxy", "restartCount": 0}},
        ]);
        assert_eq!(found["spec"]["containers"], containers);
    }

    #[test]
    fn hooks_are_copied_only_for_agents_that_do_not_read_pods() {
        let mut object = request();
        object["spec"]["containers"] = json!([{"name": "web"}, {"name": "slow"}]);
        let mut seen = with(|_| ()).to_vec();
        seen.push((BLIND_AGENT, json!(false)));
        let found = CASE.filled_in(&seen, &object);
        for container in found["spec"]["containers"].as_array().unwrap() {
            let keys: Vec<&String> = container.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["name", "statusContext"]);
        }
    }

    #[test]
    fn a_time_of_ones_own_stays() {
        let mut object = request();
        object["spec"]["strategy"] = json!({"terminationGracePeriodSeconds": 0, "failurePolicy": "Ignore"});
        let found = CASE.filled_in(&with(|_| ()), &object);
        assert_eq!(found["spec"]["strategy"], object["spec"]["strategy"]);
        assert_eq!(found["metadata"]["labels"].get("type"), None);
    }
}
