//! Whether pods are updated in place.

/// How pods may be updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// By new pods.
    Recreate,
    /// In place where the change allows, else by new pods.
    InPlaceIfPossible,
    /// In place or not at all.
    InPlaceOnly,
}

impl Policy {
    /// Reads `podUpdatePolicy`.
    pub fn of(text: &str) -> Self {
        match text {
            "InPlaceIfPossible" => Self::InPlaceIfPossible,
            "InPlaceOnly" => Self::InPlaceOnly,
            _ => Self::Recreate,
        }
    }

    /// May pods change in place?
    pub fn is_in_place(self) -> bool {
        self != Self::Recreate
    }
}
