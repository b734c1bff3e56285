//! Adding the containers to pods.

use std::sync::Arc;

use kruise_api::{ephemeraljob::EphemeralJob, names::ephemeraljob::ID};
use kruise_plan_kit::{
    Batching, Body, Intent, ObjectWrites, Part, Phase, Plan, Why,
    injected::is_injected,
    pod_writes::{Guard, patch},
};
use kruise_views::PodView;
use serde_json::{Value, json};

use super::{
    events,
    snapshot::Snapshot,
    targets::{Target, Targets},
};

/// A pod gets the ephemeral containers of a job.
const ADD_CONTAINERS: Intent = Intent::of_update("add-containers");

/// Adds the containers to the pods that have none, as far as `parallelism` allows.
pub(super) fn add(snapshot: &Snapshot<'_>, targets: &Targets<'_>, plan: &mut Plan) {
    let job = snapshot.job;
    let mut bare: Vec<&Target<'_>> = targets
        .all
        .iter()
        .filter(|target| target.own.is_empty())
        .collect();
    // A pod that the server refuses keeps no other one waiting.
    let refused = |target: &&Target<'_>| snapshot.memory.refused.get(&*target.view.uid).copied();
    bare.sort_by_key(|target| refused(target).unwrap_or(0));
    let limit = usize::try_from(job.spec.parallelism()).unwrap_or(0);
    let limit = limit.saturating_add(usize::from(is_injected("PodsAtOnceOffByOne")));
    let busy = targets.busy();
    let room = limit.saturating_sub(busy);
    if bare.is_empty() {
        return;
    }
    let body = Arc::new(body(job));
    for (index, target) in bare.into_iter().enumerate() {
        if index < room {
            plan.writes.push(of_pod(job, target.view, &body));
        } else {
            let text =
                format!("waits: parallelism lets {limit} pods run the containers at a time, and {busy} do");
            plan.why.push(Why::new(&*target.view.name, text));
        }
    }
}

fn of_pod(job: &EphemeralJob, pod: &PodView, body: &Arc<Value>) -> ObjectWrites {
    let body = Body {
        base: Arc::clone(body),
        set: Vec::new(),
    };
    // The uid is precondition enough: the server refuses changes of ephemeral containers that exist.
    let (intent, part) = (ADD_CONTAINERS, Part::EphemeralContainers);
    let reason = match in_the_way(job, pod) {
        Some(why) => format!("it has none of the containers, but the API server refuses them: {why}"),
        None => "it has none of the containers".to_owned(),
    };
    let step = patch(pod, intent, part, body, Guard::SamePod, reason);
    let step = events::addition(step, job, &pod.name);
    ObjectWrites {
        batching: Batching::SlowStart,
        ..ObjectWrites::new(Phase::Pods, vec![step])
    }
}

/// Why the API server cannot take the containers, as far as the pod shows it. The pod is tried all the same: what
/// it shows may be a moment old.
fn in_the_way(job: &EphemeralJob, pod: &PodView) -> Option<String> {
    let has = |name: &str| pod.containers.iter().any(|one| &*one.name == name);
    let is_sidecar = |name: &str| pod.sidecars.iter().any(|one| &*one.name == name);
    job.spec.template.ephemeral_containers.iter().find_map(|one| {
        let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default();
        let (name, target) = (text("name"), text("targetContainerName"));
        if has(name) {
            Some(format!("the pod has a container {name} of its own"))
        } else if !target.is_empty() && !has(target) && !is_sidecar(target) {
            Some(format!(
                "{name} is for the container {target}, which the pod does not have"
            ))
        } else {
            None
        }
    })
}

/// The patch that is the same for all pods. Containers are merged by their names.
fn body(job: &EphemeralJob) -> Value {
    let containers = job.spec.template.ephemeral_containers.iter();
    let containers: Vec<Value> = containers.map(|one| marked(one, &job.metadata.uid)).collect();
    json!({"spec": {"ephemeralContainers": containers}})
}

/// The container with the variable that says whose it is.
fn marked(container: &Value, uid: &str) -> Value {
    let mut container = container.clone();
    if let Value::Object(members) = &mut container {
        let env = members.entry("env").or_insert(Value::Null);
        let own = env.as_array_mut().map(std::mem::take).unwrap_or_default();
        let others = own.into_iter().filter(|one| one.get("name") != Some(&ID.into()));
        *env = others.chain([json!({"name": ID, "value": uid})]).collect();
    }
    container
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_pod_shows_to_be_in_the_way_is_said() {
        let pod = json!({"metadata": {"name": "web-a", "uid": "u"},
            "spec": {"containers": [{"name": "main", "image": "web:1"}]}});
        let pod: PodView = serde_json::from_value(pod).unwrap();
        let reason = |container: Value| {
            let job = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "EphemeralJob",
                "metadata": {"name": "look", "namespace": "shop", "uid": "j"},
                "spec": {"selector": {}, "template": {"ephemeralContainers": [container]}}});
            let job = EphemeralJob::from_value(job).unwrap();
            of_pod(&job, &pod, &Arc::new(body(&job))).steps.remove(0).reason
        };
        assert_eq!(reason(json!({"name": "tools"})), "it has none of the containers");
        assert_eq!(
            reason(json!({"name": "tools", "targetContainerName": "main"})),
            "it has none of the containers"
        );
        let clash = reason(json!({"name": "main"}));
        assert!(
            clash.ends_with("refuses them: the pod has a container main of its own"),
            "{clash}"
        );
        let lost = reason(json!({"name": "tools", "targetContainerName": "other"}));
        assert!(
            lost.ends_with("tools is for the container other, which the pod does not have"),
            "{lost}"
        );
    }

    #[test]
    fn a_container_says_whose_it_is_whatever_its_own_variables_say() {
        let env = |env: Value| marked(&json!({"name": "a", "env": env, "newField": 1}), "u1");
        let id = json!({"name": "KRUISE_EJOB_ID", "value": "u1"});
        assert_eq!(env(Value::Null), json!({"name": "a", "env": [id], "newField": 1}));
        let given = json!([{"name": "KRUISE_EJOB_ID", "value": "forged"}, {"name": "A", "value": "b"}]);
        assert_eq!(env(given)["env"], json!([{"name": "A", "value": "b"}, id]));
    }
}
