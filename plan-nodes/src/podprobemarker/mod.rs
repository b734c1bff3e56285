//! PodProbeMarker: node agents probe the pods that match.
//!
//! # What it promises
//! - **Exactly these probes.** The NodePodProbe of each node has the probes of the marker for each of its pods that
//!   matches, is active, and has run its init containers, and no other probe of this marker: probes that left the
//!   specification and pods that match no more are removed, and so are entries that OpenKruise left behind.
//! - **Probes of others stay.** A probe belongs to the marker whose name is before the number sign, all of it.
//!   Entries of other markers and members of newer versions are written back as they are, and only to the version
//!   that they were read from.
//! - **Ports are numbers.** A named port is that of the pod's container. A pod whose container has no such port is
//!   not probed with this probe, and an event says so.
//! - **Nothing is left.** A marker that is deleted stays until no NodePodProbe has a probe of it.
//! - **Virtual nodes have no agent.** With the gate `EnablePodProbeMarkerOnServerless`, conditions that their
//!   provider sets lead to the labels and annotations of the marker.
//!
//! What results do to pods is decided in `nodepodprobe`.

mod desired;
mod explain;
mod merge;
mod plan;
pub mod reasons;
mod serverless;
mod snapshot;
mod targets;

pub use plan::plan;
pub use snapshot::{Nodes, Options, Probes, Snapshot};
pub use targets::{Place, place};
