//! *"Exactly the probes of the marker, and nothing of others is lost."*

use super::super::start::{CONTROLLER, PROBES};
use super::known::{is_surely_probed, is_surely_wanted, may_be_wanted, probes};
use crate::rules::prelude::*;

/// Judges changes of NodePodProbes.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != PROBES.plural || write.method != Method::Patch || !write.subresource.is_empty() {
        return None;
    }
    let [before, after] = write.both(mirror, PROBES)?;
    let (had, has) = (probes(before), probes(after));
    for (uid, name) in had.difference(&has) {
        never!(write, "no probe that is wanted is lost",
            is_surely_probed(write, mirror, uid) && is_surely_wanted(write, mirror, name)
                => "{uid} lost {name}");
    }
    for (uid, name) in has.difference(&had) {
        never!(write, "tidying adds nothing", write.component != CONTROLLER => "{uid} got {name}");
        never!(write, "a marker that is deleted probes nothing",
            !may_be_wanted(write, mirror, name) => "{uid} got {name}");
    }
    None
}
