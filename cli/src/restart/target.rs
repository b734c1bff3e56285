//! The workload that is restarted: its pods, and how many of them may be out of service.

use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use jiff::Timestamp;
use kruise_api::{
    cloneset::{self, CloneSet},
    daemonset::{self, DaemonSet},
    definition::Kind,
    meta::LabelSelector,
    path::segment,
    statefulset::{self, StatefulSet},
};
use kruise_frame::explain::list;
use kruise_plan_kit::ResourceId;
use kruise_plan_workloads::{
    cloneset::Limits as OfCloneSet, daemonset::Limits as OfDaemonSet, statefulset::Limits as OfStatefulSet,
};
use kruise_runtime::{Client, Served};
use kruise_views::PodView;
use serde_json::Value;

use super::workload::Workload;
use crate::resources::Resource;

/// Reads what the specification of a workload says.
type Reader = fn(Value) -> Result<Facts, String>;

/// Kinds whose pods can be restarted.
const KINDS: [(&Kind, Reader); 3] = [
    (&cloneset::KIND, of_cloneset),
    (&statefulset::KIND, of_statefulset),
    (&daemonset::KIND, of_daemonset),
];

/// True for what has pods that can be restarted.
pub(super) fn can_be_restarted(resource: &Resource) -> bool {
    KINDS.iter().any(|(kind, _)| Resource::of(kind) == *resource)
}

/// A workload of a namespace.
pub(super) struct Target<'c> {
    client: &'c Client,
    path: String,
    reader: Reader,
    /// Path of the pods that its selector selects.
    pods: String,
    uid: String,
    /// Kind, namespace and name, for people.
    pub(super) title: String,
}

/// How many pods a workload wants and can spare. Whoever scales it changes that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Pods that it wants.
    pub(super) wanted: i32,
    /// Most pods out of service in a rollout; at least 1.
    pub(super) most_out: i32,
    /// Seconds that a pod must be Ready to be available.
    pub(super) min_ready_seconds: i32,
}

/// What a specification says, as the plans of its kind read it.
struct Facts {
    uid: String,
    selector: LabelSelector,
    limits: Limits,
}

impl<'c> Target<'c> {
    /// Reads a workload.
    pub(super) async fn read(
        client: &'c Client,
        served: &Served,
        workload: &Workload,
    ) -> anyhow::Result<Self> {
        let Workload {
            resource,
            namespace,
            name,
        } = workload;
        let mut known = KINDS.into_iter();
        let Some((kind, reader)) = known.find(|(kind, _)| Resource::of(kind) == *resource) else {
            bail!("containers of a {} cannot be restarted", resource.kind);
        };
        let title = format!("{} {namespace}/{name}", kind.kind);
        let collection = served.collection(ResourceId::of(kind), Some(namespace))?;
        let mut target = Self {
            client,
            path: format!("{collection}/{}", segment(name)),
            reader,
            pods: served.collection(ResourceId::PODS, Some(namespace))?,
            uid: String::new(),
            title,
        };
        let facts = target.facts().await?;
        if facts.selector.is_empty() {
            bail!("{} has no selector", target.title);
        }
        let selector = segment(&facts.selector.to_query());
        target.pods = format!("{}?labelSelector={selector}", target.pods);
        target.uid = facts.uid;
        Ok(target)
    }

    /// What the clock shows.
    pub(super) fn now(&self) -> Timestamp {
        self.client.now()
    }

    async fn facts(&self) -> anyhow::Result<Facts> {
        let title = &self.title;
        let object = self.client.get(&self.path).await;
        let object = object.with_context(|| format!("cannot read {title}"))?;
        (self.reader)(object).map_err(|error| anyhow!("{title} cannot be read: {error}"))
    }

    /// What it allows now. Fails if it was deleted, or replaced by another one of its name.
    pub(super) async fn limits(&self) -> anyhow::Result<Limits> {
        let facts = self.facts().await?;
        if facts.uid != self.uid {
            bail!("{} was replaced by another one", self.title);
        }
        Ok(facts.limits)
    }

    /// Its pods that have neither ended nor are being deleted.
    pub(super) async fn pods(&self) -> anyhow::Result<Vec<Arc<PodView>>> {
        let mut pods: Vec<Arc<PodView>> = list(self.client, &self.pods).await?;
        pods.retain(|pod| {
            let owner = pod.controller.as_ref();
            pod.is_active() && owner.is_some_and(|owner| *owner.uid == *self.uid)
        });
        Ok(pods)
    }
}

fn of_cloneset(object: Value) -> Result<Facts, String> {
    let set = CloneSet::from_value(object).map_err(|error| error.to_string())?;
    let limits = OfCloneSet::of(&set.spec, false);
    Ok(Facts {
        uid: set.metadata.uid,
        limits: Limits {
            wanted: limits.replicas,
            most_out: limits.max_unavailable.max(1),
            min_ready_seconds: set.spec.min_ready_seconds,
        },
        selector: set.spec.selector,
    })
}

fn of_statefulset(object: Value) -> Result<Facts, String> {
    let set = StatefulSet::from_value(object)?;
    let limits = OfStatefulSet::of(&set.spec);
    Ok(Facts {
        uid: set.metadata.uid,
        selector: set.spec.selector,
        limits: Limits {
            wanted: limits.replicas,
            most_out: limits.max_unavailable.max(1),
            min_ready_seconds: limits.min_ready_seconds,
        },
    })
}

fn of_daemonset(object: Value) -> Result<Facts, String> {
    let set = DaemonSet::from_value(object)?;
    let limits = OfDaemonSet::of(&set.spec, set.status.desired_number_scheduled);
    Ok(Facts {
        uid: set.metadata.uid,
        selector: set.spec.selector,
        limits: Limits {
            wanted: limits.desired,
            most_out: limits.max_unavailable.max(1),
            min_ready_seconds: limits.min_ready_seconds,
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Wanted pods, and how many may be out of service.
    fn of((kind, reader): (&Kind, Reader), spec: &Value, status: &Value) -> (i32, i32) {
        let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": kind.kind,
            "metadata": {"name": "web", "uid": "u"}, "spec": spec, "status": status});
        let facts = reader(object).unwrap();
        assert_eq!(facts.uid, "u");
        (facts.limits.wanted, facts.limits.most_out)
    }

    #[test]
    fn as_many_pods_may_be_out_of_service_as_in_a_rollout() {
        let [clone, stateful, daemon] = KINDS;
        let share = |share: &str| json!({"rollingUpdate": {"maxUnavailable": share}});
        let spec = json!({"replicas": 10, "updateStrategy": share("25%")});
        let none = json!({});
        assert_eq!(of(clone, &spec, &none), (10, 3));
        assert_eq!(of(stateful, &spec, &none), (10, 2));
        assert_eq!(of(stateful, &json!({"replicas": 10}), &none), (10, 1));
        let surge = json!({"replicas": 10, "updateStrategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}});
        assert_eq!(of(clone, &surge, &none), (10, 1), "a restart needs one");
        let spec = json!({"updateStrategy": share("25%")});
        assert_eq!(of(daemon, &spec, &json!({"desiredNumberScheduled": 5})), (5, 2));
    }
}
