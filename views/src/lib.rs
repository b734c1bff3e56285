//! Narrow, read-only views of objects: only the fields that planners read, decoded directly from the JSON of the
//! server.
//!
//! Invariants: a view is never written back, so fields that this build does not know are not lost. A view takes a few
//! kilobytes where the full object takes tens.

mod amounts;
mod barrier;
mod claim;
mod environment;
mod image_job;
mod labelled;
mod labels;
mod metadata;
mod node;
mod node_pod;
mod owner;
mod pod;
mod prints;
mod revision;
mod scheduled_job;
mod secret;
mod storage_class;
mod subset;
mod workload;
mod written;

pub use amounts::{AmountsView, amount};
pub use barrier::BarrierView;
pub use claim::ClaimView;
pub use environment::{MetadataMap, MetadataVariable};
pub use image_job::ImageJobView;
pub use labelled::{LabelledView, NamespaceView};
pub use labels::Labels;
pub use metadata::MetadataView;
pub use node::{NodeView, TaintView};
pub use node_pod::{NodeContainerStatusView, NodeContainerView, NodePodView};
pub use owner::OwnerView;
pub use pod::{
    BroadcastView, ClaimVolume, ConditionView, ContainerStatusView, ContainerView, EphemeralState,
    EphemeralView, MarkedSidecar, MarkedView, Phase, PodView, PortView, Truth,
};
pub use prints::AnnotationPrints;
pub use revision::RevisionView;
pub use scheduled_job::{JobEnd, ScheduledJobView};
pub use secret::SecretView;
pub use storage_class::StorageClassView;
pub use subset::SubsetView;
pub use workload::{Numbering, TEMPLATE_HASH, WorkloadView, numbers_of};
pub use written::WrittenView;
