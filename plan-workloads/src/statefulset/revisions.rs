//! What a set says about its revisions, and which of them a missing pod gets.

use kruise_api::{names::CONTROLLER_HASH, statefulset::StatefulSet};
use kruise_plan_kit::{
    history::{Reported, Specified},
    lifecycle::State,
};

use super::{Ordinals, limits::Limits, members::Members};

/// What it says. `pulls_ahead`: revisions carry labels about their images.
pub(super) fn specified(set: &StatefulSet, pulls_ahead: bool) -> Specified<'_> {
    let status = &set.status;
    Specified {
        template: &set.spec.template,
        annotations: &set.metadata.annotations,
        claims_hash: None,
        collision_count: status.collision_count,
        reported: Reported {
            name: &status.update_revision,
            is_current: set.metadata.generation > 0 && status.observed_generation == set.metadata.generation,
        },
        current: &status.current_revision,
        hash_label: CONTROLLER_HASH,
        pulls_ahead,
    }
}

/// Which missing pods come back on the current revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Returning {
    /// None: pods change when somebody deletes them.
    Never,
    /// Those of the lowest slots, as many as the partition.
    Ranks(i64),
    /// Those whose ordinals are less than so many above the first.
    Below(i64),
    /// So many, the lowest first: as many as the partition lacks.
    Count(i64),
}

impl Returning {
    /// Reads it from the specification and the pods there are. `held_as_updated`: pods held before an update count as
    /// updated where users choose the order.
    pub(super) fn of(
        set: &StatefulSet,
        limits: Limits,
        members: &Members<'_>,
        held_as_updated: bool,
    ) -> Self {
        let strategy = &set.spec.update_strategy;
        let partition = i64::from(limits.partition);
        match &strategy.rolling_update {
            _ if strategy.kind == "OnDelete" => Self::Never,
            None => Self::Below(i64::from(set.status.current_replicas)),
            Some(rolling) if rolling.unordered_update.is_some() => {
                let is_old = |held: bool, updated: bool| !(updated || (held_as_updated && held));
                let old = members
                    .slots
                    .iter()
                    .filter(|member| is_old(member.pod.state == State::PreparingUpdate, member.pod.updated));
                Self::Count(partition - old.count() as i64)
            }
            Some(_) => Self::Ranks(partition),
        }
    }

    /// Does the pod of this slot come back on the current revision? Asked for each missing pod, the lowest first.
    pub(super) fn takes(&mut self, ordinal: i32, ordinals: &Ordinals) -> bool {
        match self {
            Self::Never => false,
            Self::Ranks(partition) => ordinals.rank(ordinal).is_some_and(|rank| rank < *partition),
            Self::Below(limit) => i64::from(ordinal) < ordinals.start() + *limit,
            Self::Count(left) => {
                let takes = *left > 0;
                *left -= i64::from(takes);
                takes
            }
        }
    }

    /// How many of `missing` pods come on the update revision, where users choose the order.
    pub(super) fn updated_of(self, missing: i64) -> i64 {
        match self {
            Self::Count(left) => missing - left.clamp(0, missing),
            Self::Never | Self::Ranks(_) | Self::Below(_) => missing,
        }
    }
}
