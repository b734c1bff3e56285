//! The condition of a pod: can its sidecars be upgraded in place? All sets write it, each its own entry.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::names::conditions::{ALL_UPGRADABLE, IMMUTABLE_FIELD, SIDECARSET_UPGRADABLE as UPGRADABLE};
use kruise_plan_kit::{
    Intent, Part, Step,
    lifecycle::go_time,
    pod_writes::Guard,
    put,
    sidecars::{is_in_list, names},
};
use kruise_views::Truth;
use serde_json::json;

use crate::{pod::Pod, snapshot::Snapshot, upgrade::patch};

/// A condition: whether sidecars of a pod can be upgraded in place.
const TELL_UPGRADABLE: Intent = Intent::of_update("tell-upgradable");

/// What the sets of a pod reported last. A message that cannot be read counts as empty.
fn said(pod: &Pod<'_>) -> BTreeMap<String, bool> {
    let condition = pod.view.condition(UPGRADABLE);
    condition
        .and_then(|condition| serde_json::from_str(&condition.message).ok())
        .unwrap_or_default()
}

/// Did this set report that the pod cannot be upgraded?
pub(crate) fn is_stranded(pod: &Pod<'_>, set: &str) -> bool {
    said(pod).get(set) == Some(&false)
}

/// Is a pod yet to be told whether it can be upgraded? One that refuses it is not waited for.
pub(crate) fn is_due(snapshot: &Snapshot<'_>, pod: &Pod<'_>) -> bool {
    let is_stranded = is_stranded(pod, &snapshot.set.metadata.name);
    let is_wrong = if pod.updated {
        is_stranded
    } else {
        pod.selected && !pod.upgradable && !is_stranded
    };
    is_wrong && !snapshot.memory.refused.contains_key(&*pod.view.uid)
}

/// The write that reports it on a pod; `None` if it is there. Entries of sets that are gone are dropped with it.
pub(crate) fn tell(snapshot: &Snapshot<'_>, pod: &Pod<'_>, upgradable: bool, now: Timestamp) -> Option<Step> {
    let set = &snapshot.set.metadata.name;
    let mut all = said(pod);
    if all.insert(set.clone(), upgradable) == Some(upgradable) {
        return None;
    }
    let list = pod.view.annotations.get(names::INJECTED_LIST).unwrap_or_default();
    all.retain(|name, _| name == set || (is_in_list(list, name) && (snapshot.is_set)(name)));
    let (status, reason) = if all.values().all(|upgradable| *upgradable) {
        (Truth::True, ALL_UPGRADABLE)
    } else {
        (Truth::False, IMMUTABLE_FIELD)
    };
    let before = pod.view.condition(UPGRADABLE);
    let mut condition = json!({
        "type": UPGRADABLE,
        "status": if status == Truth::True { "True" } else { "False" },
        "reason": reason,
        "message": json!(all).to_string(),
    });
    if before.is_none_or(|before| before.status != status) {
        put(&mut condition, &["lastTransitionTime"], go_time(now).into());
    }
    let body = json!({"status": {"conditions": [condition]}});
    let text = if upgradable {
        "its sidecars can be upgraded in place"
    } else {
        "more than images changed: its sidecars cannot be upgraded in place"
    };
    Some(patch(
        pod.view,
        TELL_UPGRADABLE,
        Part::Status,
        body,
        Guard::Unchanged,
        text,
    ))
}
