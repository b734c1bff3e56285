//! Admission of SidecarSets, in whatever version they are written.

mod defaults;
pub mod mutate;

use serde_json::Value;

/// Fills in defaults and the hashes of the containers, as the webhook does.
pub fn complete(set: &mut Value) {
    defaults::apply(set);
    mutate::stamp(set);
}
