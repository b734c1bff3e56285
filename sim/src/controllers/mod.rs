//! The controllers of a controller manager that workloads lean on.

mod budgets;
mod claims;
mod deployment;
mod jobs;
mod node_lifecycle;
mod objects;
mod orphans;
mod quotas;
mod replica_set;
mod stateful_set;
#[cfg(test)]
mod tests;

pub(crate) use self::budgets::Budgets;
pub(crate) use self::claims::Claims;
pub(crate) use self::deployment::Deployments;
pub(crate) use self::jobs::Jobs;
pub(crate) use self::node_lifecycle::NodeLifecycle;
pub(crate) use self::orphans::Orphans;
pub(crate) use self::quotas::Quotas;
pub(crate) use self::replica_set::ReplicaSets;
pub(crate) use self::stateful_set::StatefulSets;
