//! *"Partition pods stay as they are, never more than maxUnavailable are unavailable because of the SidecarSet, and
//! only those that the selector names are upgraded, of which no more than images differ."*

use super::known::Known;
use super::view::Spec;
use crate::rules::Broken;
use crate::rules::prelude::*;

/// What is wrong with an upgrade.
pub fn wrong([before, after]: [&Object; 2], spec: Spec<'_>, known: &Known<'_>) -> Broken {
    breaks!("upgrades go to the newest", !spec.is_updated(after) => "it records another hash");
    breaks!("only selected pods", !spec.selects(before) => "the selector does not name it");
    breaks!("only images change", !spec.can_follow(before) => "more than images differ");
    let uid = &before.uid;
    let old = known.most(spec, uid, |pod| !spec.is_updated(pod));
    let all = known.least(spec, uid, |_| true) + 1;
    let kept = spec.partition(all);
    breaks!("partition of a set", old < kept => "{old} others stay old, at most, and {kept} of {all} have to");
    let out = known.least(spec, uid, |pod| spec.is_out(pod));
    let all = known.most(spec, uid, |_| true) + 1;
    let limit = spec.max_unavailable(all);
    // What is unavailable already costs nothing.
    breaks!("availability of a set", out >= limit && spec.is_ready(before)
        => "{out} others are unavailable, at least, and {limit} of {all} may be");
    None
}
