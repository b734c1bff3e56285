//! Flags of upstream's controllers that are not built yet. Installations pass them, so they are accepted.
//!
//! When the controller that reads a flag is registered, the flag is removed here.

use go_compat::flags::{Flag, Kind};
use kruise_frame::flags::flag;

/// Accepted and ignored.
pub(super) const FLAGS: &[Flag] = &[flag(
    "ws-enabled-versioned-status",
    Kind::String,
    "deployment,replicaset",
    IGNORED,
)];

const IGNORED: &str = "accepted and ignored";
