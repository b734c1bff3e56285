//! Decisions of UnitedDeployments: one workload for each subset of nodes, created from one template.
//!
//! # What it promises
//! - Only workloads that the UnitedDeployment controls are written. One without a controller is adopted if it is of the
//!   template's kind, in the same namespace, matched by the selector, and labelled with a subset of the topology.
//! - A workload is changed by a merge patch of what the UnitedDeployment set before and sets now. What others set
//!   in it stays. It is written only if its revision, its replicas, its partition, its patch or its
//!   `maxUnavailable` is not what it is to be.
//! - Revisions are those of OpenKruise: data, hash, name and labels. One that means the same as the template is kept,
//!   whatever its bytes, so that no pod is rolled.
//! - Replicas of subsets that contradict the replicas of the whole change nothing. Condition and event say so.
//! - The status is written whatever fails.
//! - A workload goes once its subset has left the topology, or the template is of another kind. When the
//!   UnitedDeployment is deleted, the garbage collector deletes all of them by their owner references: there is no
//!   finalizer.
//!
//! # Order of decisions
//! [`plan`] finds the revision, then the workload of each subset, then which subsets cannot take pods
//! (`scheduling`), then the replicas of each (`allocation`), then what is to be written (`workload`, `change`), and
//! last the status.

mod allocation;
mod change;
mod conditions;
mod events;
mod explain;
mod plan;
mod pods;
pub mod reasons;
mod revision;
mod scheduling;
mod snapshot;
mod status;
mod subsets;
mod workload;
mod writes;

pub use plan::plan;
pub use snapshot::{Snapshot, Workload};

use kruise_api::uniteddeployment::Child;
use kruise_plan_kit::ResourceId;

/// The resource of a kind of workloads.
pub const fn resource(child: Child) -> ResourceId {
    match child {
        Child::StatefulSet => ResourceId::APPS_STATEFULSETS,
        Child::AdvancedStatefulSet => kruise_api::statefulset::RESOURCE,
        Child::CloneSet => kruise_api::cloneset::RESOURCE,
        Child::Deployment => ResourceId::DEPLOYMENTS,
    }
}
