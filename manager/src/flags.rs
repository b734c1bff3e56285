//! The manager's flags.

use std::sync::LazyLock;

use go_compat::flags::{Flag, LOGGING};
use kruise_frame::flags::{IGNORED, OWN};

/// All flags of the manager: its own, those of its controllers, and those that are accepted and ignored.
pub static FLAGS: LazyLock<Vec<Flag>> = LazyLock::new(|| {
    let own = OWN.iter().copied();
    own.chain(kruise_kinds::flags())
        .chain(IGNORED.iter().chain(LOGGING).copied())
        .collect()
});
