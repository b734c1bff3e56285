//! Narrow, read-only views of core objects: what planners look at and nothing else, decoded straight from the wire.
//!
//! Invariants: a view is never written back; fields that this build does not know are not lost, because they were
//! never ours to carry. A view costs a few kilobytes where the full object costs tens.

mod amounts;
mod barrier;
mod claim;
mod image_job;
mod labelled;
mod labels;
mod owner;
mod pod;
mod revision;
mod written;

pub use amounts::{AmountsView, amount};
pub use barrier::BarrierView;
pub use claim::ClaimView;
pub use image_job::ImageJobView;
pub use labelled::{LabelledView, NamespaceView, NodeView};
pub use labels::Labels;
pub use owner::OwnerView;
pub use pod::{ConditionView, ContainerStatusView, ContainerView, Phase, PodView, Truth};
pub use revision::RevisionView;
pub use written::WrittenView;
