//! *"Exactly the probes of the marker, and nothing of others is lost."*

use kruise_sim::Method;

use super::known::{change, is_surely_probed, is_surely_wanted, may_be_wanted, probes};
use crate::engine::oracles::{Mirror, Violation, Write};
use crate::subjects::podprobemarker::start::{CONTROLLER, PROBES};

/// Judges changes of NodePodProbes.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != PROBES.plural || write.method != Method::Patch || !write.subresource.is_empty() {
        return None;
    }
    let (before, after) = change(write, mirror, PROBES)?;
    let violation = |oracle, what: String| {
        let what = format!("{} wrote {}: {what}", write.process, write.name);
        Some(Violation { oracle, what })
    };
    let (had, has) = (probes(before), probes(after));
    for (uid, name) in had.difference(&has) {
        if is_surely_probed(write, mirror, uid) && is_surely_wanted(write, mirror, name) {
            return violation("no probe that is wanted is lost", format!("{uid} lost {name}"));
        }
    }
    for (uid, name) in has.difference(&had) {
        if write.component != CONTROLLER {
            return violation("tidying adds nothing", format!("{uid} got {name}"));
        }
        if !may_be_wanted(write, mirror, name) {
            return violation(
                "a marker that is deleted probes nothing",
                format!("{uid} got {name}"),
            );
        }
    }
    None
}
