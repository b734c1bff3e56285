//! Whether a budget's status may follow the one before: charges are paid from what is allowed.

use super::truth;
use crate::rules::prelude::*;

/// Pods that the newer status charges and the older one does not. An entry that is older than the pod that has the
/// name now is none of its, and one that stays as it is charges nothing.
pub fn new<'b>(before: &Object, after: &'b Object, pods: &Log) -> Vec<&'b str> {
    let is_new = |name: &&str| {
        let created = pods.named(name).map(|pod| pod.created().as_second());
        let [was, is] = [before, after].map(|budget| truth::charge(budget, name));
        let is_older = |was: Timestamp| created.is_some_and(|created| was.as_second() < created);
        was.is_none_or(|was| is != Some(was) && is_older(was))
    };
    truth::charged(after).into_iter().filter(is_new).collect()
}

/// What is wrong with the status of a budget after the one before, given which charges are new.
pub fn judge(before: &Object, after: &Object, new: &[&str]) -> Option<Violation> {
    let numbers = |budget: &Object| {
        ["unavailableAllowed", "currentAvailable", "desiredAvailable"].map(|name| truth::number(budget, name))
    };
    // What the formula allows.
    let room = |current: i64, desired: i64| (current - desired).max(0);
    let [allowed_before, current_before, desired_before] = numbers(before);
    let [allowed, current, desired] = numbers(after);
    let most = if (current_before, desired_before) == (current, desired) {
        allowed_before
    } else if current_before == current {
        // The specification or the number of replicas is another one. What was charged since the count stays charged.
        room(current, desired) - (room(current_before, desired_before) - allowed_before)
    } else {
        room(current, desired)
    };
    let is_right = allowed >= 0 && (new.is_empty() || allowed + new.len() as i64 <= most);
    never!(Violation::of, "charges are paid from what is allowed",
        !is_right => "{new:?} were charged to budget {}, {most} were allowed and {allowed} are left: {:?}",
            after.name, [before, after].map(Object::status));
    None
}
