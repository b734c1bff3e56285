//! What has to be remembered to judge.

use crate::rules::prelude::*;

/// Who wrote what.
#[derive(Debug, Default)]
pub struct Memory {
    /// Newest version of a pod that a process wrote for a SidecarSet: by process, SidecarSet and uid of the pod.
    pub wrote: BTreeMap<(ProcessId, String, Arc<str>), u64>,
    /// Newest version of a pod that anybody wrote for any SidecarSet.
    pub newest: u64,
    /// What was written before a process began to lead.
    pub led: BTreeMap<ProcessId, u64>,
}
