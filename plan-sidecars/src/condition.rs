//! The condition that tells a pod whether its sidecars can follow their sets: all sets write it, each its own entry.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::names::conditions::{ALL_UPGRADABLE, IMMUTABLE_FIELD, SIDECARSET_UPGRADABLE as UPGRADABLE};
use kruise_plan_kit::{
    Intent, Part, Step, put,
    sidecars::{is_in_list, names},
};
use kruise_views::Truth;
use serde_json::json;

use crate::{
    member::Member,
    observe::Observed,
    upgrade::{Guard, patch},
};

/// What the sets of a pod said last. A message that cannot be read says nothing.
fn said(member: &Member<'_>) -> BTreeMap<String, bool> {
    let condition = member.pod.condition(UPGRADABLE);
    condition
        .and_then(|condition| serde_json::from_str(&condition.message).ok())
        .unwrap_or_default()
}

/// Did this set say that the pod cannot follow?
pub(crate) fn is_stranded(member: &Member<'_>, set: &str) -> bool {
    said(member).get(set) == Some(&false)
}

/// The write that tells a pod so; `None` if it knows. Entries of sets that are gone are dropped with it.
pub(crate) fn tell(
    observed: &Observed<'_>,
    member: &Member<'_>,
    upgradable: bool,
    now: Timestamp,
) -> Option<Step> {
    let set = &observed.set.metadata.name;
    let mut all = said(member);
    if all.insert(set.clone(), upgradable) == Some(upgradable) {
        return None;
    }
    let list = member
        .pod
        .annotations
        .get(names::INJECTED_LIST)
        .unwrap_or_default();
    all.retain(|name, _| name == set || (is_in_list(list, name) && (observed.is_set)(name)));
    let (status, reason) = if all.values().all(|upgradable| *upgradable) {
        (Truth::True, ALL_UPGRADABLE)
    } else {
        (Truth::False, IMMUTABLE_FIELD)
    };
    let before = member.pod.condition(UPGRADABLE);
    let mut condition = json!({
        "type": UPGRADABLE,
        "status": if status == Truth::True { "True" } else { "False" },
        "reason": reason,
        "message": json!(all).to_string(),
    });
    if before.is_none_or(|before| before.status != status) {
        let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        put(&mut condition, &["lastTransitionTime"], now.into());
    }
    let body = json!({"status": {"conditions": [condition]}});
    let text = if upgradable {
        "its sidecars can be upgraded in place"
    } else {
        "more than images changed: its sidecars cannot be upgraded in place"
    };
    Some(patch(
        member.pod,
        Intent::TellUpgradable,
        Part::Status,
        body,
        Guard::Seen,
        text.to_owned(),
    ))
}
