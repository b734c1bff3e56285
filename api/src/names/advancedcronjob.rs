//! Keys of what AdvancedCronJobs create. Wire format.

/// Annotation of what an AdvancedCronJob makes: the time of the schedule that it is for, RFC 3339.
pub const SCHEDULED_AT: &str = "apps.kruise.io/scheduled-at";
