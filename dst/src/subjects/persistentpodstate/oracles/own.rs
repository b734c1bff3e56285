//! *"A workload whose annotations ask for it gets a PersistentPodState of its own name. What the workload does not control is
//! never written."*

use super::super::start::WORKLOAD;
use super::known::{Change, is_for_workload};
use super::wanted::Wanted;
use crate::rules::prelude::*;
use crate::subjects::statefulset::start::STATEFULSETS;

/// Judges a creation, a deletion, or a change of the specification.
pub fn judge(change: &Change<'_>, method: Method, mirror: &Mirror) -> Option<Violation> {
    let state = change.before.unwrap_or(change.after);
    let violation = |oracle, what: String| Some(Violation { oracle, what });
    let sets = &mirror.of(STATEFULSETS).objects;
    let owner = sets.get(state.owner()).filter(|_| is_for_workload(state));
    let Some(owner) = owner.filter(|_| &*state.name == WORKLOAD) else {
        return violation(
            "what somebody else made stays",
            format!("{method:?} of {}, which no workload controls", state.name),
        );
    };
    let believed = change.recent(owner);
    if method == Method::Delete {
        let asks = |set: &Arc<Object>| Wanted::by(set).is_some();
        never!(Violation::of, "what annotations ask for stays",
            believed.iter().all(asks) => "{} was deleted", state.name);
        return None;
    }
    let made = Wanted::of(change.after);
    let is_asked = |set: &Arc<Object>| Wanted::by(set).is_some_and(|wanted| wanted == made);
    if believed.iter().any(is_asked) {
        return None;
    }
    violation(
        "what is generated is what annotations ask for",
        format!("{method:?} of {}: {made:?}", state.name),
    )
}
