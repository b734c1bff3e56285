//! What injecting sidecars and upgrading them have in common: which pods a SidecarSet is for, the hashes and revisions
//! of its containers, and what is recorded about it on a pod.
//!
//! Sets are raw JSON, of either served version where only common fields are read. Every text written here is part of
//! stored state, byte for byte as OpenKruise writes it: a hash that came out differently would make every injected pod
//! a stranger to its set.

mod fields;
mod hash;
mod injected;
mod matching;
mod metadata;
mod record;
mod revision;
mod shape;
mod state;
mod twins;

pub use kruise_api::names::sidecarset as names;

pub use hash::{Hashes, hashes, hashes_of};
pub use injected::{Injected, injected};
pub use matching::{Matcher, canary_of, custom_version};
pub use metadata::patched;
pub use record::{BadRecord, Record, Records, add_to_list, is_in_list};
pub use revision::{restore, revision_data};
pub use shape::is_own;
pub use state::{UpgradeState, UpgradeStates};
pub use twins::{Working, has_sidecars, is_hot, is_native, is_structurally_consistent, sidecar_list, twins};
