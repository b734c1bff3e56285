//! Pods as the tour shows and compares them. A pod is the same one only if its uid is: names and addresses can return.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

/// What is shown of one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name, which may come again.
    pub name: String,
    /// Its identity, which never does.
    pub uid: String,
    /// Empty until it has one.
    pub address: String,
    /// Where it runs; empty until it is scheduled.
    pub node: String,
    /// Of its only container.
    pub restarts: u64,
    /// The image that its container runs, not the one of its specification.
    pub image: String,
    /// Is it in service?
    pub ready: Ready,
    /// When it was created, and since when its readiness is what it is: `2026-01-01T00:00:00Z`, so that text is in
    /// the order of time. Empty if it has never been ready.
    pub times: [String; 2],
    /// Names of the volume claims that it mounts.
    pub disks: Vec<String>,
}

/// Is a pod in service?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// It is.
    Yes,
    /// Not yet, or not now.
    No,
    /// It is being deleted.
    Leaving,
}

impl Ready {
    /// For a table.
    pub fn text(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Leaving => "leaving",
        }
    }
}

impl Pod {
    /// Reads a pod; what it has not yet is empty.
    ///
    /// # Errors
    /// It has no uid.
    pub fn read(pod: &Value) -> Result<Self> {
        let text = |pointer| {
            pod.pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let is_ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
        let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
        let uid = pod.pointer("/metadata/uid").and_then(Value::as_str);
        let all = |all: Option<&Vec<Value>>, of: fn(&Value) -> Option<String>| -> Vec<String> {
            all.into_iter().flatten().filter_map(of).collect()
        };
        let since = all(conditions, |condition| {
            let time = condition.get("lastTransitionTime").and_then(Value::as_str);
            time.filter(|_| condition["type"] == "Ready").map(str::to_owned)
        });
        let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
        Ok(Self {
            name: text("/metadata/name"),
            uid: uid.context("a pod without uid")?.to_owned(),
            address: text("/status/podIP"),
            node: text("/spec/nodeName"),
            restarts: pod
                .pointer("/status/containerStatuses/0/restartCount")
                .and_then(Value::as_u64)
                .unwrap_or_default(),
            image: text("/status/containerStatuses/0/image"),
            ready: if pod.pointer("/metadata/deletionTimestamp").is_some() {
                Ready::Leaving
            } else if conditions.is_some_and(|all| all.iter().any(is_ready)) {
                Ready::Yes
            } else {
                Ready::No
            },
            times: [text("/metadata/creationTimestamp"), since.concat()],
            disks: all(volumes, |volume| {
                let claim = volume.pointer("/persistentVolumeClaim/claimName");
                claim.and_then(Value::as_str).map(str::to_owned)
            }),
        })
    }
}

/// What became of the pods of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Still there, at the same place, no container restarted.
    pub untouched: Vec<String>,
    /// Still there, at the same place, its container restarted once, as an update in place does.
    pub restarted: Vec<String>,
    /// Still there, but moved, or restarted more than once: nothing the tour does explains it.
    pub disturbed: Vec<String>,
    /// Not there before.
    pub new: Vec<String>,
    /// Not there any more.
    pub gone: Vec<String>,
}

impl Change {
    /// Compares the pods of two moments. The names in each list keep the order of the pods.
    pub fn between(before: &[Pod], after: &[Pod]) -> Self {
        let old: BTreeMap<&str, &Pod> = before.iter().map(|pod| (pod.uid.as_str(), pod)).collect();
        let mut change = Self::default();
        for pod in after {
            let list = match old.get(pod.uid.as_str()) {
                None => &mut change.new,
                Some(was) if !is_at_the_same_place(was, pod) => &mut change.disturbed,
                Some(was) if pod.restarts == was.restarts => &mut change.untouched,
                Some(was) if pod.restarts == was.restarts + 1 => &mut change.restarted,
                Some(_) => &mut change.disturbed,
            };
            list.push(pod.name.clone());
        }
        let is_gone = |pod: &&Pod| after.iter().all(|now| now.uid != pod.uid);
        change.gone = before
            .iter()
            .filter(is_gone)
            .map(|pod| pod.name.clone())
            .collect();
        change
    }

    /// Pods of before that are still there at their address.
    pub fn addresses_kept(&self) -> usize {
        self.untouched.len() + self.restarted.len()
    }

    /// How many pods the change was about; one that replaces another counts once.
    pub fn size(&self) -> usize {
        self.new.len().max(self.gone.len()) + self.restarted.len() + self.disturbed.len()
    }
}

fn is_at_the_same_place(was: &Pod, is: &Pod) -> bool {
    (&was.name, &was.address, &was.node) == (&is.name, &is.address, &is.node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, uid: &str, restarts: u64) -> Pod {
        Pod {
            name: name.into(),
            uid: uid.into(),
            address: "10.1.0.1".into(),
            node: "kwok-0".into(),
            restarts,
            image: "nginx:1".into(),
            ready: Ready::Yes,
            times: ["2026-01-01T00:00:00Z", "2026-01-01T00:00:02Z"].map(String::from),
            disks: vec!["data-web-1".into()],
        }
    }

    #[test]
    fn a_pod_is_read_as_its_container_runs() {
        let object = json!({
            "metadata": {"name": "web-1", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "nodeName": "kwok-0", "containers": [{"image": "nginx:2"}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}, {"name": "tmp"}],
            },
            "status": {
                "podIP": "10.1.0.1",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:02Z"}],
                "containerStatuses": [{"image": "nginx:1", "restartCount": 3}],
            },
        });
        assert_eq!(Pod::read(&object).unwrap(), pod("web-1", "u", 3));
        let mut unready = object.clone();
        unready["status"]["conditions"][0]["status"] = json!("False");
        assert_eq!(Pod::read(&unready).unwrap().ready, Ready::No);
        let mut leaving = object.clone();
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(Pod::read(&leaving).unwrap().ready, Ready::Leaving);
        let young = json!({"metadata": {"name": "web-1", "uid": "u"}});
        assert_eq!(Pod::read(&young).unwrap().address, "");
        assert!(Pod::read(&json!({"metadata": {"name": "web-1"}})).is_err());
    }

    #[test]
    fn every_pod_is_in_exactly_one_list() {
        let before = ["a", "b", "c", "d", "e"].map(|name| pod(name, name, 0));
        let moved = Pod {
            node: "kwok-1".into(),
            ..pod("d", "d", 0)
        };
        let after = [
            pod("a", "a", 0),
            pod("b", "b", 1),
            pod("c", "c", 2),
            moved,
            pod("e", "other", 0),
        ];
        let change = Change::between(&before, &after);
        assert_eq!(change.untouched, ["a"]);
        assert_eq!(change.restarted, ["b"]);
        assert_eq!(change.disturbed, ["c", "d"]);
        assert_eq!(
            (change.new.clone(), change.gone.clone()),
            (vec!["e".to_owned()], vec!["e".to_owned()])
        );
        assert_eq!(change.size(), 4);
    }

    #[test]
    fn the_same_name_and_address_with_another_uid_is_another_pod() {
        let change = Change::between(&[pod("a", "1", 0)], &[pod("a", "2", 0)]);
        assert_eq!((change.new.len(), change.gone.len(), change.size()), (1, 1, 1));
    }
}
