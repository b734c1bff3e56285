//! How many pods each subset gets.

mod adaptive;
mod bounds;
mod reserved;
mod seen;
mod specified;
#[cfg(test)]
mod tests;

use kruise_api::uniteddeployment::{Subset, UnitedDeploymentSpec};

pub(crate) use seen::Seen;

/// The replicas of each subset, in the order of the topology; or why there are none.
pub(crate) fn allocate(spec: &UnitedDeploymentSpec, seen: &[Seen<'_>]) -> Result<Vec<i32>, String> {
    let total = spec.total();
    let strategy = &spec.topology.schedule_strategy;
    let is_bounded = |seen: &Seen<'_>| {
        let Subset {
            min_replicas,
            max_replicas,
            ..
        } = seen.subset;
        min_replicas.is_some() || max_replicas.is_some()
    };
    if strategy.reserves() {
        reserved::allocate(total, seen)
    } else if strategy.is_adaptive() {
        adaptive::allocate(total, seen)
    } else if seen.iter().any(is_bounded) {
        bounds::allocate(total, seen)
    } else {
        specified::allocate(total, seen)
    }
}
