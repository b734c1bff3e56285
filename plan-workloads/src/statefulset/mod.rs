//! StatefulSet: keep one pod for each of `replicas` ordinals, with a name and claims of its own, changing it in place where
//! the change allows.

mod plan;
mod snapshot;

pub use kruise_plan_kit::Explain;
pub use plan::plan;
pub use snapshot::{Find, Options, Snapshot};
