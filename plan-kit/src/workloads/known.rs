//! Workloads, and what is known of them.

use std::sync::Arc;

use kruise_api::{meta::OwnerReference, names::APPS_GROUP};
use kruise_views::{OwnerView, WorkloadView};

/// A workload that a pod belongs to, or that a budget names.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Workload {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name, in the namespace of the pod.
    pub name: String,
}

impl Workload {
    /// The workload of this group, kind and name.
    pub fn new(group: &str, kind: &str, name: &str) -> Self {
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Its group and kind.
    pub fn group_kind(&self) -> (&str, &str) {
        (&self.group, &self.kind)
    }

    /// Is it of a kind whose pods belong to it or to a ReplicaSet of it? Only other kinds can be above kinds that
    /// are known at run time.
    pub fn owns_pods_by_itself(&self) -> bool {
        matches!(
            self.group_kind(),
            ("apps", "Deployment" | "ReplicaSet" | "StatefulSet")
                | ("", "ReplicationController")
                | (APPS_GROUP, "CloneSet" | "StatefulSet")
        )
    }
}

impl From<&OwnerView> for Workload {
    fn from(owner: &OwnerView) -> Self {
        Self::new(&owner.group, &owner.kind, &owner.name)
    }
}

impl From<&Workload> for OwnerView {
    /// An owner whose uid is not known.
    fn from(workload: &Workload) -> Self {
        Self {
            group: workload.group.as_str().into(),
            kind: workload.kind.as_str().into(),
            name: workload.name.as_str().into(),
            uid: Box::default(),
        }
    }
}

impl From<&OwnerReference> for Workload {
    fn from(owner: &OwnerReference) -> Self {
        Self::new(owner.group(), &owner.kind, &owner.name)
    }
}

/// How many pods there should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// As many as their workloads want.
    Known(i32),
    /// Their workload does not say: as many as there are.
    Unknown,
}

/// What is known of a workload.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// It exists. Without `replicas`, its kind does not say how many pods it wants.
    Found(Arc<WorkloadView>),
    /// It does not exist.
    Gone,
    /// It cannot be read: its kind is not served, or the manager has no right to.
    Unreadable,
    /// It has yet to be read.
    NotYet,
}

/// What a workload is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// Its uid and its controller, which do not change as long as it exists.
    Owner,
    /// How many pods it wants, which does.
    Scale,
    /// Both, as the API server has them now: a cache is not believed that it is gone or wants no pods.
    Live,
}

/// Says what is known of a workload of one namespace.
pub type Source<'a> = &'a dyn Fn(&Workload, Aspect) -> Known;
