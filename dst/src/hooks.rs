//! Who answers for the hook before an update: a load balancer, say, that a pod must leave before it is changed.
//!
//! It lets a held pod go by taking the hook's label from it, and puts the label back when the pod was changed or is
//! held no more. It looks again and again, as late as it likes.

use std::{sync::Arc, time::Duration};

use kruise_sim::{Method, Request};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    cluster::{Cluster, State},
    history::Watched,
    object::Object,
    random::Random,
};

/// The label that holds a pod while it is there.
pub const LABEL: &str = "traffic";
/// The label that tells the phase of a pod's lifecycle.
pub const STATE: &str = "lifecycle.apps.kruise.io/state";

/// `spec.lifecycle` of a set with the hook, which takes held pods out of service.
pub fn lifecycle() -> Value {
    json!({"inPlaceUpdate": {"labelsHandler": {LABEL: "on"}, "markPodNotReady": true}})
}

/// Answers for the hook, for ever.
pub async fn answer(cluster: Arc<Cluster>, seed: u64) {
    let mut random = Random::new(seed, 5);
    loop {
        sleep(Duration::from_millis(random.between(300, 2_500))).await;
        cluster.with(State::answer_hook);
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
}
