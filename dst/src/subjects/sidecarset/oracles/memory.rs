//! Who wrote what for SidecarSets.

use crate::rules::prelude::*;

/// Who wrote what.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Newest version of a pod that a process wrote for a SidecarSet: by process, SidecarSet and uid of the pod.
    pub(super) wrote: BTreeMap<(ProcessId, String, Arc<str>), u64>,
    /// Newest version of a pod that anybody wrote for any SidecarSet.
    pub(super) newest: u64,
    /// What was written before a process began to lead.
    pub(super) led: BTreeMap<ProcessId, u64>,
}
