//! A stateful set and its pods.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::controllers::objects::{controlled, number, ready_since, selects};
use crate::object::{at, get_metadata};
use crate::store::Key;
use crate::world::Client;

/// The label of a pod that names its revision.
pub(super) const REVISION: &str = "controller-revision-hash";

/// A set, and its pods by ordinal.
pub(super) struct Set<'a> {
    pub(super) key: &'a Key,
    pub(super) object: &'a Value,
    pub(super) pods: BTreeMap<i64, Arc<Value>>,
    pub(super) now: Timestamp,
}

impl<'a> Set<'a> {
    pub(super) fn of(client: &Client<'_>, key: &'a Key, object: &'a Value) -> Self {
        let pods = controlled(client.api, object, "", "pods").into_iter();
        let pods = pods.filter(|(pod, _)| selects(client.api, object, pod));
        let ordinal = |name: &str| {
            name.strip_prefix(key.name.as_ref())?
                .strip_prefix('-')?
                .parse()
                .ok()
        };
        Self {
            key,
            object,
            pods: pods
                .filter_map(|(pod, value)| Some((ordinal(&pod.name)?, value)))
                .collect(),
            now: client.now,
        }
    }

    pub(super) fn replicas(&self) -> i64 {
        number(self.object, "/spec/replicas")
    }

    pub(super) fn ordinals(&self) -> Range<i64> {
        let start = number(self.object, "/spec/ordinals/start");
        start..start.saturating_add(self.replicas())
    }

    pub(super) fn is_ordered(&self) -> bool {
        at(self.object, "/spec/podManagementPolicy") != Some(&"Parallel".into())
    }

    pub(super) fn is_rolling(&self) -> bool {
        at(self.object, "/spec/updateStrategy/type") == Some(&"RollingUpdate".into())
    }

    /// The first ordinal that is updated.
    pub(super) fn partition(&self) -> i64 {
        let partition = number(self.object, "/spec/updateStrategy/rollingUpdate/partition");
        self.ordinals().start.saturating_add(partition)
    }

    pub(super) fn pod_key(&self, ordinal: i64) -> Key {
        Key::new(&self.key.namespace, &format!("{}-{ordinal}", self.key.name))
    }

    /// When a pod is or becomes available if it stays ready.
    pub(super) fn available_at(&self, pod: &Value) -> Option<Timestamp> {
        let least = u64::try_from(number(self.object, "/spec/minReadySeconds")).unwrap_or_default();
        ready_since(pod)?.checked_add(Duration::from_secs(least)).ok()
    }

    pub(super) fn is_available(&self, pod: &Value) -> bool {
        !is_leaving(pod) && self.available_at(pod).is_some_and(|at| at <= self.now)
    }
}

pub(super) fn is_leaving(pod: &Value) -> bool {
    !get_metadata(pod, "deletionTimestamp").is_null()
}

/// The revision that a pod was made of.
pub(super) fn revision(pod: &Value) -> &str {
    get_metadata(pod, "labels")
        .get(REVISION)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
