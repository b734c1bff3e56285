//! When a webhook is called.

/// Before or after the object is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Fills in.
    Mutating,
    /// Refuses.
    Validating,
}
