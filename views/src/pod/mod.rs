//! A pod: the fields that planners read.

mod broadcast;
mod ephemeral;
mod marked;
mod report;
#[cfg(test)]
mod tests;
mod view;
mod wire;

pub use view::{
    BroadcastView, ClaimVolume, ConditionView, ContainerStatusView, ContainerView, EphemeralState,
    EphemeralView, MarkedSidecar, MarkedView, Phase, PodView, PortView, Truth,
};
