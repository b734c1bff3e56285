//! How long the rest of a rollout takes, for people: how many *waves* of pods are left, and how long one takes.
//!
//! A wave is as many pods as may be updated at one time.
//!
//! # What it promises
//! - Nothing is decided by it: plans write the same without it.
//! - No number is made up. Where nothing says how long a pod takes, there is no time; where something holds the
//!   rollout, that is said in place of numbers.
//! - A time is that of a median pod among the last ones. It is as good as the next pods are like them.

mod pods;
#[cfg(test)]
mod tests;
mod types;

use std::time::Duration;

use crate::rollout::Rollout;

pub use pods::Observed;
pub use types::{Course, Held, Outlook, Pace, Sample};

/// Pods that the median is of, at most: the last ones say most about the next.
const LAST: usize = 5;

/// Times on pods are whole seconds, so that a pod which was out of service may seem to have taken none.
const GRAIN: Duration = Duration::from_secs(1);

/// What is known of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Pods that are still to be updated.
    pub to_update: usize,
    /// Pods that stay on their revision.
    pub kept: usize,
    /// What keeps them, in plain words.
    pub kept_by: &'static str,
    /// Pods that may be updated at one time.
    pub at_once: usize,
    /// How long a pod has to be ready before it is available.
    pub min_ready: Duration,
    /// What the pods of the revision say.
    pub observed: Observed,
    /// Are pods updated in place where the change allows? Pods that were updated so say more than new ones then.
    pub in_place: bool,
    /// Does a new pod come only when the one before it has ended? How long that takes is stored nowhere.
    pub ends_first: bool,
    /// Why no pod is updated, by the specification.
    pub held: Option<Held>,
    /// Is nothing done now?
    pub idle: bool,
}

impl Facts {
    /// What a rollout and its pods say by themselves. Which pods are left is for its kind to say. `idle` says that
    /// nothing is done now.
    pub fn of(rollout: &Rollout<'_>, observed: Observed, min_ready_seconds: i32, idle: bool) -> Self {
        Self {
            min_ready: Duration::from_secs(u64::try_from(min_ready_seconds).unwrap_or(0)),
            observed,
            in_place: rollout.strategy.policy.is_in_place(),
            held: Held::of(rollout),
            idle,
            ..Self::default()
        }
    }
}

impl Held {
    /// What the specification of a rollout says.
    fn of(rollout: &Rollout<'_>) -> Option<Self> {
        if rollout.strategy.on_delete {
            return Some(Self::OnDelete);
        }
        rollout.strategy.paused.then_some(Self::Paused)
    }
}

/// What is ahead; `None` if there is no rollout.
pub fn outlook(facts: &Facts) -> Option<Outlook> {
    let under_way = facts.observed.under_way.len();
    if facts.to_update == 0 && under_way == 0 && facts.kept == 0 {
        return None;
    }
    let course = if let Some(held) = held(facts) {
        Course::Held(held)
    } else {
        let count = waves(facts.to_update, under_way, facts.at_once);
        let pace = pace(facts, count);
        Course::Waves { count, pace }
    };
    Some(Outlook {
        to_update: facts.to_update,
        under_way,
        replaced: facts.observed.replaced,
        kept: facts.kept,
        kept_by: facts.kept_by,
        at_once: facts.at_once,
        course,
    })
}

fn held(facts: &Facts) -> Option<Held> {
    let none_under_way = facts.observed.under_way.is_empty();
    // The rollout ends when the last of them is gone, which nobody can know.
    let overstaying = Some(facts.observed.overstaying).filter(|&pods| pods > 0);
    let overstaying = overstaying.map(Held::Overstaying);
    if facts.to_update == 0 {
        let hooks = Some(facts.observed.hooked).filter(|&hooked| hooked > 0 && !none_under_way);
        return hooks
            .map(Held::Hooks)
            .or(overstaying)
            .or(none_under_way.then_some(Held::Kept));
    }
    if facts.held.is_some() {
        return facts.held;
    }
    match facts.observed.hooked {
        0 if overstaying.is_some() => overstaying,
        0 if facts.at_once == 0 => Some(Held::NoRoom),
        0 => (none_under_way && facts.idle).then_some(Held::Waits),
        hooked => Some(Held::Hooks(hooked)),
    }
}

/// How many waves there are, that of the pods under way included: it has room for others if they are fewer than may be
/// updated at one time.
fn waves(to_update: usize, under_way: usize, at_once: usize) -> usize {
    let at_once = at_once.max(1);
    if under_way == 0 {
        return to_update.div_ceil(at_once);
    }
    let room = at_once.saturating_sub(under_way);
    1 + to_update.saturating_sub(room).div_ceil(at_once)
}

fn pace(facts: &Facts, waves: usize) -> Option<Pace> {
    let (median, of) = median(facts)?;
    let (took, settles) = if median.stayed_ready {
        (Duration::ZERO, Duration::ZERO)
    } else {
        (median.took.max(GRAIN), facts.min_ready)
    };
    let each = took.saturating_add(settles);
    let under_way = &facts.observed.under_way;
    let left = |since: &Option<Duration>| since.map_or(each, |since| each.saturating_sub(since));
    let begins_more = facts.to_update > 0 && under_way.len() < facts.at_once;
    let first = if under_way.is_empty() || begins_more {
        each
    } else {
        under_way.iter().map(left).max().unwrap_or(each)
    };
    let more = u32::try_from(waves.saturating_sub(1)).unwrap_or(u32::MAX);
    let longest = under_way.iter().flatten().max().copied();
    Some(Pace {
        took,
        of,
        settles,
        first,
        last: first.saturating_add(each.saturating_mul(more)),
        overdue: longest.filter(|&longest| longest > each.max(GRAIN).saturating_mul(2)),
        end_not_counted: facts.ends_first && !median.in_place,
    })
}

/// The median of the last pods, and how many these are. Of an even number it is the longer one of the two in the
/// middle.
fn median(facts: &Facts) -> Option<(Sample, usize)> {
    let mut last = facts.observed.taken.clone();
    if facts.in_place && last.iter().any(|sample| sample.in_place) {
        last.retain(|sample| sample.in_place);
    }
    last.sort_unstable();
    last.reverse();
    last.truncate(LAST);
    last.sort_unstable_by_key(|sample| (sample.took, sample.stayed_ready, sample.began));
    let median = last.get(last.len() / 2)?;
    Some((*median, last.len()))
}
