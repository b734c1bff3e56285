//! Whether a budget's status may follow the one before: charges are paid from what is allowed.

use super::truth;
use crate::rules::prelude::*;

/// Pods that the newer status charges and the older one does not. An entry that is older than the pod that has the name now
/// is none of its, and one that stays as it is charges nothing.
pub fn new(before: &Object, after: &Object, pods: &Log) -> Vec<String> {
    let is_new = |name: &&str| {
        let created = pods.named(name).map(|pod| truth::created(pod).as_second());
        let [was, is] = [before, after].map(|budget| truth::charge(budget, name));
        let is_older = |was: Timestamp| created.is_some_and(|created| was.as_second() < created);
        was.is_none_or(|was| is != Some(was) && is_older(was))
    };
    let charged = truth::charged(after).into_iter();
    charged.filter(is_new).map(str::to_owned).collect()
}

/// What is wrong with the status of a budget after the one before, given how many charges are new.
pub fn judge(before: &Object, after: &Object, new: &[String]) -> Option<Violation> {
    let [was, is] = [before, after].map(Numbers::of);
    let added = i64::try_from(new.len()).unwrap_or(i64::MAX);
    let most = if was.rest() == is.rest() {
        was.allowed
    } else if was.current == is.current {
        // The specification or the number of replicas is another one. What was charged since the count stays charged.
        is.room() - (was.room() - was.allowed)
    } else {
        is.room()
    };
    let is_right = is.allowed >= 0 && (new.is_empty() || is.allowed + added <= most);
    let statuses = [before, after].map(|budget| &budget.value()["status"]);
    never!(Violation::of, "charges are paid from what is allowed",
        !is_right => "{new:?} were charged to budget {}, {most} were allowed and {} are left: {statuses:?}",
            after.name, is.allowed);
    None
}

struct Numbers {
    allowed: i64,
    current: i64,
    desired: i64,
}

impl Numbers {
    fn of(budget: &Object) -> Self {
        Self {
            allowed: truth::number(budget, "unavailableAllowed"),
            current: truth::number(budget, "currentAvailable"),
            desired: truth::number(budget, "desiredAvailable"),
        }
    }

    fn rest(&self) -> (i64, i64) {
        (self.current, self.desired)
    }

    /// What the formula allows.
    fn room(&self) -> i64 {
        (self.current - self.desired).max(0)
    }
}
