//! Keys of BroadcastJobs. Wire format.

/// Label of a BroadcastJob's pods: name of the job.
pub const NAME: &str = "broadcastjob-name";
/// Label of a BroadcastJob's pods: uid of the job.
pub const UID: &str = "broadcastjob-controller-uid";
