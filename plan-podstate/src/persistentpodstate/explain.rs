//! The first line of an explanation.

use std::collections::BTreeMap;

use kruise_api::persistentpodstate::{PersistentPodStateSpec, PodState};

pub(super) fn summary(spec: &PersistentPodStateSpec, states: &BTreeMap<String, PodState>) -> String {
    let target = &spec.target_ref;
    let required: Vec<&str> = spec.required().collect();
    let preferred: Vec<String> = spec
        .preferred_persistent_topology
        .iter()
        .map(|one| format!("{} (weight {})", one.preference.keys.join(", "), one.weight))
        .collect();
    let list = |keys: String| {
        if keys.is_empty() {
            "nothing".to_owned()
        } else {
            keys
        }
    };
    let policy = if spec.keeps_scaled_in() {
        "until the workload is deleted"
    } else {
        "until they are scaled in"
    };
    format!(
        "records {} pods of {} {} {policy}; new ones need the same {}, and preferably the same {}",
        states.len(),
        target.kind,
        target.name,
        list(required.join(", ")),
        list(preferred.join("; ")),
    )
}
