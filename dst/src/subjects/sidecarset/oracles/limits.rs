//! *"Partition pods stay as they are, never more than maxUnavailable are unavailable because of the SidecarSet, and only
//! those that the selector names are upgraded, of which no more than images differ."*

use super::change::Change;
use super::known::Known;
use super::view::Spec;

/// What is wrong with an upgrade.
pub fn wrong(change: Change<'_>, spec: Spec<'_>, known: &Known<'_>) -> Option<(&'static str, String)> {
    let Change { before, after } = change;
    if !spec.is_updated(after) {
        return Some(("upgrades go to the newest", "it records another hash".to_owned()));
    }
    if !spec.selects(before) {
        return Some(("only selected pods", "the selector does not name it".to_owned()));
    }
    if !spec.can_follow(before) {
        return Some(("only images change", "more than images differ".to_owned()));
    }
    partition(change, spec, known).or_else(|| availability(change, spec, known))
}

fn partition(change: Change<'_>, spec: Spec<'_>, known: &Known<'_>) -> Option<(&'static str, String)> {
    let uid = &change.before.uid;
    let old = known.most(spec, uid, |pod| !spec.is_updated(pod));
    let all = known.least(spec, uid, |_| true) + 1;
    let kept = spec.partition(all);
    (old < kept).then(|| {
        let text = format!("{old} others stay old, at most, and {kept} of {all} have to");
        ("partition of a set", text)
    })
}

fn availability(change: Change<'_>, spec: Spec<'_>, known: &Known<'_>) -> Option<(&'static str, String)> {
    let before = change.before;
    // What is unavailable already costs nothing.
    if !spec.is_ready(before) {
        return None;
    }
    let out = known.least(spec, &before.uid, |pod| spec.is_out(pod));
    let all = known.most(spec, &before.uid, |_| true) + 1;
    let limit = spec.max_unavailable(all);
    (out >= limit).then(|| {
        let text = format!("{out} others are unavailable, at least, and {limit} of {all} may be");
        ("availability of a set", text)
    })
}
