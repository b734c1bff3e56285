//! What the suite runs on.

use crate::lab::nodes::RealNodes;

/// What the suite runs on.
pub(super) enum Place {
    ControlPlane,
    Playground,
    RealNodes(RealNodes),
    /// A cluster without anything of ours, on which the image runs.
    Chart(RealNodes),
}

/// Fewer tests than this run on one cluster: a second one would only cost its start.
const ONE_CLUSTER: usize = 20;

impl Place {
    /// On how many clusters so many tests run. Tests that need a cluster alone mostly wait, so a second cluster
    /// costs little.
    pub(super) fn clusters(&self, tests: usize) -> usize {
        match self {
            Self::ControlPlane | Self::Playground if tests >= ONE_CLUSTER => 2,
            _ => 1,
        }
    }

    /// How many tests share a cluster at a time. Simulated pods need no processor, so most tests only wait.
    pub(super) fn at_once(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        match self {
            Self::ControlPlane | Self::Playground => 2 * processors,
            Self::RealNodes(_) => processors,
            // Each has the cluster to itself.
            Self::Chart(_) => 1,
        }
    }

    /// Of the cluster's folder.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::ControlPlane => "e2e",
            Self::Playground => "playground",
            Self::RealNodes(_) => "e2e-nodes",
            Self::Chart(_) => "e2e-chart",
        }
    }
}
