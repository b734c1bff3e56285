//! Keys of what AdvancedCronJobs create. Wire format.

/// Annotation of a created job: the scheduled time that it is for, RFC 3339.
pub const SCHEDULED_AT: &str = "apps.kruise.io/scheduled-at";
