//! Amounts of storage.

use go_compat::quantity::Quantity;
use serde_json::Value;

/// An amount of storage; nothing is the least.
pub(crate) fn amount(of: &Value, pointer: &str) -> Option<Quantity> {
    Quantity::from_json(of.pointer(pointer)?).ok()
}

/// The storage that a claim requests.
pub(crate) fn requested(claim: &Value) -> Option<Quantity> {
    amount(claim, "/spec/resources/requests/storage")
}
