//! Who watches that nothing forbidden happens.
//!
//! Each oracle is written from the specification of CloneSets and of in-place updates, and knows nothing of how the
//! manager decides. What a manager does is judged by what it could know: of every object, the version it must know of
//! at least (see `Process::floors`) or any later one; of sets likewise. An action is a violation only if it would be
//! one under each of them.

mod end;
mod spec;
mod write;

use std::collections::BTreeMap;

use crate::{
    mirror::Mirror,
    network::{Process, ProcessId},
};

pub use end::unfinished;
pub use spec::Spec;
pub use write::Write;

/// Something that must not happen, happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which oracle says so.
    pub oracle: &'static str,
    /// What it saw.
    pub what: String,
}

/// All oracles that judge writes.
#[derive(Debug, Default)]
pub struct Oracles {
    leader: Option<ProcessId>,
}

impl Oracles {
    /// Who holds the lease.
    pub fn leader(&self) -> Option<ProcessId> {
        self.leader
    }

    /// Judges an accepted write.
    pub fn judge(
        &mut self,
        write: &Write<'_>,
        mirror: &Mirror,
        processes: &mut BTreeMap<ProcessId, Process>,
    ) -> Option<Violation> {
        if write.is_lease() {
            let holder = write.body["spec"]["holderIdentity"].as_str().unwrap_or_default();
            self.leader = (!holder.is_empty()).then_some(write.process);
        }
        let _ = (write, mirror, processes);
        None
    }
}
