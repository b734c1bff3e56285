//! Who answers for hooks: a load balancer, say, that a pod must leave before it is changed or deleted, and that must know
//! it before it counts.
//!
//! It lets a held pod go by taking the hook's mark from it, and puts the mark back when the pod was changed or is held no
//! more. It looks again and again, as late as it likes.

use std::{sync::Arc, time::Duration};

use kruise_sim::{Method, Request};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    cluster::{Cluster, State},
    history::{Mark, PreDelete, Start, Watched},
    object::Object,
    random::{Purpose, Random},
};

/// The label that holds a pod while it is there.
pub const LABEL: &str = "traffic";
/// The label that tells the phase of a pod's lifecycle.
pub const STATE: &str = "lifecycle.apps.kruise.io/state";

/// What holds a pod before it is deleted: key of a label, and a finalizer.
const DRAIN: [&str; 2] = ["drain", "dst.example/drain"];
/// What a pod needs to come into service.
const REGISTERED: [&str; 2] = ["registered", "dst.example/registered"];

/// `spec.lifecycle` of a set with these hooks, and what its pods are made with.
pub fn put_on(set: &mut Value, start: &Start) {
    let handler = |mark: Mark, [label, finalizer]: [&str; 2]| match mark {
        Mark::Label => json!({"labelsHandler": {label: "on"}}),
        Mark::Finalizer => json!({"finalizersHandler": [finalizer]}),
    };
    if start.hook {
        set["spec"]["lifecycle"]["inPlaceUpdate"] =
            json!({"labelsHandler": {LABEL: "on"}, "markPodNotReady": true});
        set["spec"]["template"]["metadata"]["labels"][LABEL] = "on".into();
    }
    if let Some(hook) = start.pre_delete {
        let mut before = handler(hook.mark, DRAIN);
        if hook.not_ready {
            before["markPodNotReady"] = true.into();
        }
        set["spec"]["lifecycle"]["preDelete"] = before;
        let metadata = &mut set["spec"]["template"]["metadata"];
        match hook.mark {
            Mark::Label => metadata["labels"][DRAIN[0]] = "on".into(),
            Mark::Finalizer => metadata["finalizers"] = json!([DRAIN[1]]),
        }
        if hook.excluded {
            set["spec"]["scaleStrategy"]["excludePreparingDelete"] = true.into();
        }
    }
    if let Some(mark) = start.pre_normal {
        set["spec"]["lifecycle"]["preNormal"] = handler(mark, REGISTERED);
    }
}

/// Answers for the hook, for ever.
pub async fn answer(cluster: Arc<Cluster>, seed: u64) {
    let mut random = Random::new(seed, Purpose::UpdateHook);
    loop {
        sleep(Duration::from_millis(random.between(300, 2_500))).await;
        cluster.with(State::answer_hook);
    }
}

/// Answers for the hooks before deletions and before service, for ever.
pub async fn attend(cluster: Arc<Cluster>, seed: u64, start: Start) {
    let mut random = Random::new(seed, Purpose::Attendance);
    loop {
        sleep(Duration::from_millis(random.between(300, 2_500))).await;
        let chance = random.draw();
        cluster.with(|state| state.attend(&start, &mut Random::new(chance, Purpose::Attended)));
    }
}

/// Must a pod have the mark of the hook before deletions? Nothing is said of one on its way.
fn is_drained(pod: &Object, mark: Mark) -> Option<bool> {
    let has = has(pod, mark, DRAIN);
    match pod.label(STATE) {
        _ if pod.is_going() => has.then_some(false),
        "PreparingDelete" => has.then_some(false),
        "Normal" => (!has).then_some(true),
        _ => None,
    }
}

/// Must a pod have the mark that lets it come into service?
fn is_known(pod: &Object, mark: Mark) -> Option<bool> {
    let has = has(pod, mark, REGISTERED);
    if pod.is_going() {
        return has.then_some(false);
    }
    let serves = pod.state("ContainersReady") == "True";
    (pod.label(STATE) == "PreparingNormal" && serves && !has).then_some(true)
}

fn has(pod: &Object, mark: Mark, [label, finalizer]: [&str; 2]) -> bool {
    match mark {
        Mark::Label => pod.has_label(label),
        Mark::Finalizer => finalizers(pod).any(|one| one == finalizer),
    }
}

fn finalizers(pod: &Object) -> impl Iterator<Item = &str> {
    let all = pod.value()["metadata"]["finalizers"].as_array();
    all.into_iter().flatten().filter_map(Value::as_str)
}

/// The patch that puts a mark on a pod, or takes it away.
fn marked(pod: &Object, mark: Mark, [label, finalizer]: [&str; 2], on: bool) -> Value {
    match mark {
        Mark::Label => {
            let value = if on { Value::from("on") } else { Value::Null };
            json!({"metadata": {"labels": {label: value}}})
        }
        Mark::Finalizer => {
            let others = finalizers(pod).filter(|one| *one != finalizer);
            let all: Vec<&str> = others.chain(on.then_some(finalizer)).collect();
            json!({"metadata": {"finalizers": all}})
        }
    }
}

/// The label as it must be, if it is not.
fn wanted(pod: &Object) -> Option<Value> {
    let state = pod.label(STATE);
    match (state, pod.has_label(LABEL)) {
        ("PreparingUpdate", true) => Some(Value::Null),
        ("Normal" | "Updated", false) => Some("on".into()),
        _ => None,
    }
}

impl State {
    /// Does for each pod what the hook asks for; what is refused is tried again the next time.
    fn answer_hook(&mut self) {
        let pods = self.mirror.of(Watched::Pods).now();
        let asked: Vec<_> = pods
            .filter(|pod| pod.is_active())
            .filter_map(|pod| Some((pod.name.clone(), wanted(pod)?)))
            .collect();
        for (name, label) in asked {
            let body = json!({"metadata": {"labels": {LABEL: label}}});
            let path = format!("/api/v1/namespaces/default/pods/{name}");
            let request = Request::new(Method::Patch, &path, Some(&body));
            self.answer(&request.content_type("application/merge-patch+json"));
        }
    }

    /// Does for some of the pods what the hooks of the set ask for.
    fn attend(&mut self, start: &Start, random: &mut Random) {
        let drains = start.pre_delete.map(|PreDelete { mark, .. }| mark);
        let pods = self.mirror.of(Watched::Pods).now();
        let mut asked = Vec::new();
        for pod in pods.filter(|pod| pod.name.starts_with("web-")) {
            let drained = drains.and_then(|mark| Some((mark, DRAIN, is_drained(pod, mark)?)));
            let known = start
                .pre_normal
                .and_then(|mark| Some((mark, REGISTERED, is_known(pod, mark)?)));
            let Some((mark, keys, on)) = drained.or(known) else {
                continue;
            };
            if random.percent(60) {
                asked.push((pod.name.clone(), marked(pod, mark, keys, on)));
            }
        }
        for (name, body) in asked {
            let path = format!("/api/v1/namespaces/default/pods/{name}");
            let request = Request::new(Method::Patch, &path, Some(&body));
            self.answer(&request.content_type("application/merge-patch+json"));
        }
    }
}
