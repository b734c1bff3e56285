//! What results do to pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::SignedDuration;

use kruise_api::{
    nodepodprobe::{NodePodProbe, PodProbeStatus, ProbeName, ProbeState},
    podprobemarker::{MarkedProbe, PodProbeMarker, State},
};
use kruise_plan_kit::{
    ObjectWrites, Part, Plan,
    pod_writes::{self, Guard},
    put,
};
use kruise_views::{PodView, Truth};
use serde_json::{Value, json};

use super::snapshot::{Known, Snapshot};
use crate::probes;

/// Shortest time between two writes of a pod that change nothing but messages. A probe that prints the time would
/// otherwise be a write in each of its periods, for each of its pods.
const MESSAGE_KEPT: SignedDuration = SignedDuration::from_mins(1);

/// Adds the writes of the pods that are not yet as their results say.
pub(super) fn apply(snapshot: &Snapshot<'_>, node: &NodePodProbe, plan: &mut Plan) {
    let mut seen = BTreeSet::new();
    let statuses = node
        .statuses
        .iter()
        .filter(|status| seen.insert((&status.namespace, &status.name)));
    for status in statuses {
        let Some((change, pod)) = of_pod(snapshot, node, status) else {
            continue;
        };
        if change.is_of_messages {
            let key = format!("message of {}/{}", status.namespace, status.name);
            let last = snapshot.memory.attempts.get(&key).map(|known| known.last);
            let left = last.map(|last| MESSAGE_KEPT - snapshot.now.duration_since(last));
            if let Some(left) = left
                .and_then(|left| Duration::try_from(left).ok())
                .filter(|left| !left.is_zero())
            {
                plan.requeue_after([left]);
                continue;
            }
            plan.attempts.push(key);
        }
        plan.writes.push(change.write(&pod));
    }
}

fn of_pod(
    snapshot: &Snapshot<'_>,
    node: &NodePodProbe,
    status: &PodProbeStatus,
) -> Option<(Change, Arc<PodView>)> {
    let (namespace, name) = (&status.namespace, &status.name);
    let entry = node.pod(namespace, name, &status.uid)?;
    let Known::Found(pod) = snapshot.cluster.pod(namespace, name) else {
        return None;
    };
    let is_it = *pod.uid == *status.uid && pod.is_active() && pod.node.as_deref() == Some(snapshot.name);
    if !is_it {
        return None;
    }
    let results = status.probe_states.iter().filter_map(|state| {
        let is_current = entry.probes.iter().any(|probe| probe.name == state.name);
        if state.state == State::None || !is_current {
            return None;
        }
        let name = ProbeName::parse(&state.name)?;
        Some((marker(snapshot, namespace, name.marker)?, name.probe, state))
    });
    let results: Vec<(Arc<PodProbeMarker>, &str, &ProbeState)> = results.collect();
    let mut marks = Marks::default();
    for (marker, probe, state) in &results {
        if let Some(probe) = marker.probe(probe) {
            marks.add(probe, state);
        }
    }
    Some((marks.change(&pod)?, pod))
}

/// A marker that is there to stay.
fn marker(snapshot: &Snapshot<'_>, namespace: &str, name: &str) -> Option<Arc<PodProbeMarker>> {
    match snapshot.cluster.marker(namespace, name) {
        Known::Found(marker) => Some(marker).filter(|marker| marker.metadata.deletion_timestamp.is_none()),
        Known::Gone | Known::Unknown => None,
    }
}

/// What a pod is to have.
#[derive(Default)]
struct Marks<'a> {
    /// The result that decides about each condition, by type.
    conditions: BTreeMap<&'a str, &'a ProbeState>,
    /// Labels with their values, or none where there is to be no such label.
    labels: BTreeMap<&'a str, Option<&'a str>>,
    /// Annotations alike.
    annotations: BTreeMap<&'a str, Option<&'a str>>,
}

impl<'a> Marks<'a> {
    /// Adds a result. Of the conditions, the first one with a type stays. Labels and annotations are set and
    /// removed one result after the other, as OpenKruise does.
    fn add(&mut self, probe: &'a MarkedProbe, state: &'a ProbeState) {
        if !probe.pod_condition_type.is_empty() {
            self.conditions.entry(&probe.pod_condition_type).or_insert(state);
        }
        let applies = |policy: &&kruise_api::podprobemarker::MarkerPolicy| policy.state == state.state;
        for policy in probe.marker_policy.iter().filter(|policy| !applies(policy)) {
            self.labels.extend(policy.labels.keys().map(|key| (&**key, None)));
            self.annotations
                .extend(policy.annotations.keys().map(|key| (&**key, None)));
        }
        for policy in probe.marker_policy.iter().filter(applies) {
            self.labels
                .extend(policy.labels.iter().map(|(key, value)| (&**key, Some(&**value))));
            self.annotations.extend(
                policy
                    .annotations
                    .iter()
                    .map(|(key, value)| (&**key, Some(&**value))),
            );
        }
    }

    /// What brings the pod there, if it is not.
    fn change(&self, pod: &PodView) -> Option<Change> {
        let mut patch = json!({});
        for (key, wanted) in &self.labels {
            if pod.labels.get(key) != *wanted {
                put(&mut patch, &["metadata", "labels", key], json!(wanted));
            }
        }
        let prints = &pod.annotation_prints;
        for (key, wanted) in &self.annotations {
            let is_so = match wanted {
                Some(value) => prints.has(key, value),
                None => !prints.has_key(key),
            };
            if !is_so {
                put(&mut patch, &["metadata", "annotations", key], json!(wanted));
            }
        }
        let conditions: Vec<Value> = self
            .conditions
            .iter()
            .filter_map(|(kind, state)| condition(pod, kind, state))
            .collect();
        let has_status = |condition: &Value| {
            let kind = condition.get("type").and_then(Value::as_str)?;
            let status = pod.condition(kind)?.status;
            (condition.get("status")? == &format!("{status:?}")).then_some(())
        };
        let is_of_messages =
            patch.get("metadata").is_none() && conditions.iter().all(|one| has_status(one).is_some());
        let part = if conditions.is_empty() {
            patch.get("metadata")?;
            Part::Main
        } else {
            put(&mut patch, &["status", "conditions"], conditions.into());
            Part::Status
        };
        Some(Change {
            part,
            patch,
            is_of_messages,
        })
    }
}

/// The one request that brings a pod to what its results say.
struct Change {
    part: Part,
    patch: Value,
    /// Does it change nothing but messages?
    is_of_messages: bool,
}

impl Change {
    fn write(self, pod: &PodView) -> ObjectWrites {
        let reason = "as its probes report";
        let step = pod_writes::patch(
            pod,
            probes::MARK_POD,
            self.part,
            self.patch,
            Guard::SamePod,
            reason,
        );
        ObjectWrites::of_pod(vec![step])
    }
}

/// The condition that a result stands for, if the pod has another one.
fn condition(pod: &PodView, kind: &str, state: &ProbeState) -> Option<Value> {
    let status = match state.state {
        State::Succeeded => Truth::True,
        State::Failed | State::Unknown | State::None => Truth::False,
    };
    let before = pod.condition(kind);
    if before.is_some_and(|before| before.status == status && *before.message == *state.message) {
        return None;
    }
    let mut condition = json!({"type": kind, "status": format!("{status:?}"), "message": state.message});
    let times = [
        ("lastProbeTime", &state.last_probe_time),
        ("lastTransitionTime", &state.last_transition_time),
    ];
    for (member, time) in times {
        if let Some(time) = time {
            put(&mut condition, &[member], time.as_str().into());
        }
    }
    if before.is_some_and(|before| !before.reason.is_empty()) {
        // It was that of whoever wrote the condition before.
        put(&mut condition, &["reason"], Value::Null);
    }
    Some(condition)
}
