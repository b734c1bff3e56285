//! The arithmetic of a rollout: how many pods to add, remove and change, and how many may be out of service meanwhile.

use go_compat::{IntOrString, Rounding, partition};
use kruise_api::cloneset::{CloneSetSpec, RollingUpdate};
use kruise_plan_kit::{
    injected::is_injected,
    lifecycle::State,
    rollout::{Class, Pod},
};

/// No set has as many pods. Larger limits are accepted, and mean the same; sums of smaller ones cannot overflow.
const MANY: i32 = 1 << 24;

/// The limits a specification sets, as numbers of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wanted pods.
    pub replicas: i32,
    /// Pods kept on old revisions.
    pub partition: i32,
    /// Most pods above `replicas`.
    pub max_surge: i32,
    /// Most pods out of service.
    pub max_unavailable: i32,
    /// Most pods out of service while adding; `None` is no limit.
    pub scale_max_unavailable: Option<i32>,
    /// Pods held before deletion do not count as replicas.
    pub exclude_preparing_delete: bool,
    /// No pod is updated: the update is paused, or waits for deletions by hand.
    pub held: bool,
    /// Updated pods beyond what the partition leaves go back to the current revision.
    pub rolls_back: bool,
    /// Which moves need no pods above `replicas`.
    pub in_place: InPlace,
}

/// Where every pod that may move can change in place: these moves need room only where no pod may be out of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InPlace {
    /// From old revisions to the update revision.
    pub forward: bool,
    /// From the update revision back to the current one.
    pub back: bool,
}

impl Limits {
    /// Reads the limits. Values that cannot be parsed count as OpenKruise counts them: a partition as 0, the others as
    /// 0 %.
    pub fn of(spec: &CloneSetSpec, exclude_preparing_delete: bool) -> Self {
        let replicas = spec.replicas.unwrap_or(1).max(0);
        let none = RollingUpdate::default();
        let rolling = spec.update_strategy.rolling_update.as_ref().unwrap_or(&none);
        let surge = rolling.max_surge.as_ref().filter(|_| !rolling.paused);
        let max_surge = surge
            .map_or(0, |surge| surge.scaled_b(replicas, Rounding::Up))
            .clamp(0, MANY);
        let rounding = if max_surge > 0 {
            Rounding::Down
        } else {
            Rounding::Up
        };
        let default = IntOrString::String("20%".into());
        let max_unavailable = rolling
            .max_unavailable
            .as_ref()
            .unwrap_or(&default)
            .scaled_b(replicas, rounding)
            .clamp(0, MANY);
        let scale = spec.scale_strategy.max_unavailable.as_ref();
        Self {
            replicas,
            partition: kept(partition(rolling.partition.as_ref(), replicas).unwrap_or(0)),
            max_surge,
            max_unavailable,
            scale_max_unavailable: scale.map(|limit| limit.scaled_b(replicas, Rounding::Up).clamp(0, MANY)),
            exclude_preparing_delete: exclude_preparing_delete
                || spec.scale_strategy.exclude_preparing_delete,
            held: rolling.paused || spec.update_strategy.kind == "OnDelete",
            rolls_back: false,
            in_place: InPlace::default(),
        }
    }
}

/// Pods of the update revision, or of all others, counted by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Held before deletion.
    pub preparing_delete: i32,
    /// Asked to go and in service.
    pub specified_available: i32,
    /// Asked to go and out of service.
    pub specified_unavailable: i32,
    /// Out of service.
    pub unavailable: i32,
    /// In service.
    pub available: i32,
}

impl Counts {
    /// Counts the pods that are `updated`, or those that are not. `held_as_updated` counts pods held before an
    /// update among the updated ones.
    pub fn of(pods: &[Pod<'_>], updated: bool, held_as_updated: bool) -> Self {
        let mut counts = Self::default();
        for pod in pods {
            let held = held_as_updated && pod.state == State::PreparingUpdate;
            if (held || pod.updated) != updated {
                continue;
            }
            let slot = match (pod.class(), pod.service.is_available()) {
                (Class::PreparingDelete, _) => &mut counts.preparing_delete,
                (Class::Specified, true) => &mut counts.specified_available,
                (Class::Specified, false) => &mut counts.specified_unavailable,
                (Class::Unavailable, _) => &mut counts.unavailable,
                (Class::Available, _) => &mut counts.available,
            };
            *slot += 1;
        }
        counts
    }

    fn specified(self) -> i32 {
        self.specified_available + self.specified_unavailable
    }

    fn active(self) -> i32 {
        self.specified() + self.unavailable + self.available
    }

    fn total(self) -> i32 {
        self.active() + self.preparing_delete
    }
}

/// What there is room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Pods missing.
    pub up: i32,
    /// Of those, pods of the current revision.
    pub up_old: i32,
    /// Pods that may be created now.
    pub up_limit: i32,
    /// Surplus pods.
    pub down: i32,
    /// Of those, pods of old revisions.
    pub down_old: i32,
    /// Available pods that may be deleted now.
    pub delete_available: i32,
    /// Pods above `replicas` that are wanted now.
    pub surge: i32,
    /// Of those, old ones.
    pub surge_old: i32,
    /// Pods to change; negative means back to the current revision.
    pub update: i32,
    /// Pods that may be out of service while changing.
    pub update_max_unavailable: i32,
}

/// Computes the numbers from the limits and the counts of old and updated pods.
pub fn numbers(limits: Limits, old: Counts, new: Counts) -> Numbers {
    let Limits {
        replicas,
        partition,
        max_unavailable,
        ..
    } = limits;
    let (mut old_diff, mut new_diff) = (old.active() - partition, new.active() - (replicas - partition));
    if !limits.rolls_back {
        // A surplus of new pods is no work to do.
        (old_diff, new_diff) = (old_diff.max(0), new_diff.min(0));
    }
    let troubled = old.preparing_delete + new.preparing_delete + old.unavailable + new.unavailable;
    let specified = old.specified() + new.specified();
    let (surge, surge_old) = surge(limits, troubled, specified, new.specified(), old_diff, new_diff);

    let excluded = |counts: Counts| {
        if limits.exclude_preparing_delete {
            counts.preparing_delete
        } else {
            0
        }
    };
    let counted = old.total() + new.total() - excluded(old) - excluded(new);
    let counted_old = old.total() - excluded(old);
    // `replicas` may be anything, so what is added to it may overflow.
    let wanted = replicas.saturating_add(surge);
    let wanted_old = partition.saturating_add(surge_old);
    let up = (wanted - counted).max(0);
    let up_old = if up > 0 {
        (wanted_old - counted_old).max(0)
    } else {
        0
    };
    // Pods on their way out never come into service, so they do not use up the room for new ones. Nor do broken pods
    // that the rollout replaces: waiting for them to become available would keep out the very pods that repair the set.
    let waited_for = |unavailable: i32, diff: i32| {
        let replaced = if limits.held { 0 } else { diff.max(0) };
        (unavailable - replaced).max(0)
    };
    let waited_for = waited_for(new.unavailable, new_diff) + waited_for(old.unavailable, old_diff);
    let room = limits
        .scale_max_unavailable
        .map(|limit| (limit - waited_for).max(0));
    let up_limit = room.map_or(up, |room| up.min(room));
    let down = (counted - specified - wanted).max(0);
    let down_old = if down > 0 {
        (counted_old - old.specified() - wanted_old).max(0)
    } else {
        0
    };

    let pods = old.total() + new.total();
    let broken = old.specified_unavailable + new.specified_unavailable;
    let delete_available = if specified > 0 || down > 0 {
        (max_unavailable + pods - replicas - troubled - broken).max(0)
    } else {
        0
    };
    let update = match left_to_move(old_diff, new_diff) {
        Moves::Forward(count) => count,
        Moves::Back(count) => -count,
        Moves::None => 0,
    };
    let update_max_unavailable = if update == 0 {
        0
    } else {
        max_unavailable + pods - replicas
    };
    Numbers {
        up,
        up_old,
        up_limit,
        down,
        down_old,
        delete_available,
        surge,
        surge_old,
        update,
        update_max_unavailable,
    }
}

/// Pods left to move between revisions.
enum Moves {
    None,
    /// To the update revision.
    Forward(i32),
    /// Back to the current one.
    Back(i32),
}

/// Pods move from a surplus to a shortage. A shortage on both sides is what creation fills.
fn left_to_move(old_diff: i32, new_diff: i32) -> Moves {
    match (old_diff, new_diff) {
        (1.., ..=-1) => Moves::Forward(old_diff.min(-new_diff)),
        (..=-1, 1..) => Moves::Back(new_diff.min(-old_diff)),
        _ => Moves::None,
    }
}

/// Pods wanted above `replicas`: to replace specified pods without losing service, or to give a rollout room.
fn surge(
    limits: Limits,
    troubled: i32,
    specified: i32,
    specified_new: i32,
    old_diff: i32,
    new_diff: i32,
) -> (i32, i32) {
    if limits.max_surge == 0 {
        return (0, 0);
    }
    let replace = (troubled + specified - limits.max_unavailable).clamp(0, specified);
    let replace_old = (replace - specified_new).max(0);
    // More room than there is left to move would be filled with pods that are surplus at once.
    let needs_room = |in_place: bool| !in_place || limits.max_unavailable == 0;
    let (roll, roll_old) = match left_to_move(old_diff, new_diff) {
        Moves::Forward(count) if needs_room(limits.in_place.forward) => (count, 0),
        Moves::Back(count) if needs_room(limits.in_place.back) => (count, count),
        _ => (0, 0),
    };
    let (wanted, wanted_old) = if replace >= roll {
        (replace, replace_old)
    } else {
        (roll, roll_old)
    };
    let surge = limits.max_surge.min(wanted);
    (surge, surge.min(wanted_old))
}

fn kept(partition: i32) -> i32 {
    if is_injected("PartitionOffByOne") {
        return (partition - 1).max(0);
    }
    partition
}
