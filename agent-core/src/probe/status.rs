//! The status of a NodePodProbe: what it is to be, and the JSON patch that makes it so.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::node_pod_probe::{NodePodProbeView, PodProbeStatus, ProbeState, ProbedPod};

/// The results of all probes that have one. Pods and probes that are stored keep their places.
pub(super) fn wanted<'a>(
    node: &NodePodProbeView,
    stored: Option<&[PodProbeStatus]>,
    result: &dyn Fn(&str, &str) -> Option<&'a ProbeState>,
) -> Vec<PodProbeStatus> {
    let stored = stored.unwrap_or_default();
    let mut pods: BTreeMap<&str, &ProbedPod> = BTreeMap::new();
    for pod in &node.pods {
        pods.entry(&pod.uid).or_insert(pod);
    }
    let known = stored.iter().map(|status| &*status.uid);
    let all = known.chain(node.pods.iter().map(|pod| &*pod.uid));
    let mut seen = BTreeSet::new();
    let statuses = all.filter(|uid| seen.insert(*uid)).filter_map(|uid| {
        let pod = pods.get(uid)?;
        let before = stored.iter().find(|status| *status.uid == *uid);
        let before = before.into_iter().flat_map(|status| &status.probe_states);
        let names = before.map(|state| &*state.name);
        let mut seen = BTreeSet::new();
        let names = names.chain(pod.probes.iter().map(|probe| &*probe.name));
        let states: Vec<ProbeState> = names
            .filter(|name| seen.insert(*name))
            .filter_map(|name| result(uid, name).cloned())
            .collect();
        (!states.is_empty()).then(|| PodProbeStatus {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            probe_states: states,
        })
    });
    statuses.collect()
}

/// The operations that make what is stored what is wanted; none if it is. Entries of pods are replaced where they
/// are, and each operation on one follows a test of whose it is.
pub(super) fn patch(
    uid: &str,
    stored: Option<&[PodProbeStatus]>,
    wanted: &[PodProbeStatus],
) -> Option<Value> {
    let mut operations = vec![json!({"op": "test", "path": "/metadata/uid", "value": uid})];
    let Some(stored) = stored else {
        operations.push(json!({"op": "add", "path": "/status", "value": {"podProbeStatuses": wanted}}));
        return (!wanted.is_empty()).then(|| operations.into());
    };
    if stored == wanted {
        return None;
    }
    let is_wanted: BTreeSet<&str> = wanted.iter().map(|status| &*status.uid).collect();
    let mut kept: Vec<&PodProbeStatus> = Vec::new();
    let mut removals = Vec::new();
    for (index, status) in stored.iter().enumerate() {
        let is_second = kept.iter().any(|before| before.uid == status.uid);
        if is_wanted.contains(&*status.uid) && !is_second {
            kept.push(status);
        } else {
            removals.push((index, status));
        }
    }
    // From the last one on, so that those before keep their places.
    for (index, status) in removals.into_iter().rev() {
        operations.push(test(index, &status.uid));
        operations.push(json!({"op": "remove", "path": place(index)}));
    }
    for (index, status) in wanted.iter().enumerate() {
        match kept.get(index) {
            Some(before) if *before == status => {}
            Some(before) => {
                operations.push(test(index, &before.uid));
                operations.push(json!({"op": "replace", "path": place(index), "value": status}));
            }
            None => {
                operations.push(json!({"op": "add", "path": "/status/podProbeStatuses/-", "value": status}));
            }
        }
    }
    Some(operations.into())
}

fn place(index: usize) -> String {
    format!("/status/podProbeStatuses/{index}")
}

fn test(index: usize, uid: &str) -> Value {
    json!({"op": "test", "path": format!("{}/uid", place(index)), "value": uid})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statuses(text: &str) -> Vec<PodProbeStatus> {
        let one = |word: &str| {
            let (uid, message) = word.split_once(':').unwrap();
            PodProbeStatus {
                uid: uid.into(),
                probe_states: vec![ProbeState {
                    name: "m#p".into(),
                    message: message.into(),
                    ..ProbeState::default()
                }],
                ..PodProbeStatus::default()
            }
        };
        text.split_whitespace().map(one).collect()
    }

    fn operations(stored: &str, wanted: &str) -> Vec<String> {
        let patch = patch("u", Some(&statuses(stored)), &statuses(wanted));
        let Some(Value::Array(all)) = patch else {
            return Vec::new();
        };
        assert_eq!(
            all[0],
            json!({"op": "test", "path": "/metadata/uid", "value": "u"})
        );
        let line = |operation: &Value| {
            let path = operation["path"]
                .as_str()
                .unwrap()
                .trim_start_matches("/status/podProbeStatuses/");
            let value = match &operation["value"] {
                Value::Object(status) => format!(" {}", status["uid"].as_str().unwrap()),
                Value::String(uid) => format!(" {uid}"),
                _ => String::new(),
            };
            format!("{} {path}{value}", operation["op"].as_str().unwrap())
        };
        all[1..].iter().map(line).collect()
    }

    #[test]
    fn only_entries_that_change_are_sent_and_each_is_tested() {
        assert_eq!(operations("a:1 b:1", "a:1 b:1"), Vec::<String>::new());
        assert_eq!(
            operations("a:1 b:1 c:1", "a:1 b:2 c:1"),
            ["test 1/uid b", "replace 1 b"]
        );
        assert_eq!(
            operations("a:1 b:1 c:1", "b:2 d:1"),
            [
                "test 2/uid c",
                "remove 2",
                "test 0/uid a",
                "remove 0",
                "test 0/uid b",
                "replace 0 b",
                "add - d"
            ]
        );
        assert_eq!(operations("a:1", ""), ["test 0/uid a", "remove 0"]);
        assert_eq!(operations("a:1 a:2", "a:1"), ["test 1/uid a", "remove 1"]);
        assert_eq!(operations("", "a:1"), ["add - a"]);
    }

    #[test]
    fn a_first_status_is_added_as_a_whole_and_an_empty_one_is_not() {
        assert_eq!(patch("u", None, &[]), None);
        let patch = patch("u", None, &statuses("a:1")).unwrap();
        assert_eq!(patch[1]["path"], "/status");
        assert_eq!(patch[1]["value"]["podProbeStatuses"][0]["uid"], "a");
    }
}
