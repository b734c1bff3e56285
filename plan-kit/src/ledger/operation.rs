//! What makes a pod unavailable, and which of it a budget limits.

use kruise_api::podunavailablebudget::PodUnavailableBudget;

/// What is about to happen to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// It is deleted.
    Delete,
    /// It is evicted.
    Evict,
    /// Its specification changes in place, or it is labelled unavailable.
    Update,
    /// Amounts of CPU or memory of running containers change, and nothing restarts.
    Resize,
}

impl Operation {
    /// The word of `protectOperations`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "DELETE",
            Self::Evict => "EVICT",
            Self::Update => "UPDATE",
            Self::Resize => "RESIZE",
        }
    }

    /// Does the pod go away?
    pub(super) fn removes(self) -> bool {
        matches!(self, Self::Delete | Self::Evict)
    }
}

/// Feature gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// `PodUnavailableBudgetDeleteGate`: deletions and evictions are limited.
    pub deletions: bool,
    /// `PodUnavailableBudgetUpdateGate`: updates and resizes are limited.
    pub updates: bool,
    /// `InPlacePodVerticalScaling`: a resize is no update, and limited only where a budget says so.
    pub resizes_apart: bool,
}

impl Gates {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        deletions: true,
        updates: false,
        resizes_apart: false,
    };

    /// Is this operation limited by any budget?
    pub fn limit(self, operation: Operation) -> bool {
        if operation.removes() {
            self.deletions
        } else {
            self.updates
        }
    }
}

/// Does the budget limit this operation?
pub(super) fn is_protected(budget: &PodUnavailableBudget, operation: Operation, gates: Gates) -> bool {
    let written = budget.protected_operations();
    let names = |operation: Operation| {
        if written.is_empty() {
            operation != Operation::Resize
        } else {
            written.contains(&operation.as_str())
        }
    };
    names(operation) || (operation == Operation::Resize && !gates.resizes_apart && names(Operation::Update))
}
