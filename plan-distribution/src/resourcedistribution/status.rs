//! What a ResourceDistribution reports.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::{
    names::{
        conditions::{
            CONFLICT_OCCURRED, CREATE_FAILED, DELETE_FAILED, GET_FAILED, NAMESPACE_NOT_EXISTS, SUCCEEDED,
            UPDATE_FAILED,
        },
        resourcedistribution::{CONFLICTS, NAMESPACE_MISSING},
    },
    resourcedistribution::{DistributionCondition, ResourceDistribution, ResourceDistributionStatus},
};
use kruise_plan_kit::{Owner, StatusPatch, Urgency, jobs, status_patch};

/// A way in which copying can fail, in the order of the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    Get,
    Create,
    Update,
    Delete,
    Conflict,
    Missing,
}

impl Trouble {
    const ALL: [Self; 6] = [
        Self::Get,
        Self::Create,
        Self::Update,
        Self::Delete,
        Self::Conflict,
        Self::Missing,
    ];

    fn condition(self) -> &'static str {
        match self {
            Self::Get => GET_FAILED,
            Self::Create => CREATE_FAILED,
            Self::Update => UPDATE_FAILED,
            Self::Delete => DELETE_FAILED,
            Self::Conflict => CONFLICT_OCCURRED,
            Self::Missing => NAMESPACE_NOT_EXISTS,
        }
    }
}

/// What has come of the copies.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Namespaces that are to have a copy.
    pub(super) desired: usize,
    /// Those that have one as it is to be.
    pub(super) succeeded: usize,
    /// Those whose copies are about to be read, created or updated, and have not failed.
    pub(super) pending: usize,
    /// Namespaces by what is wrong there, with the error if there is one; sorted by name.
    troubles: BTreeMap<Trouble, Vec<(String, Option<String>)>>,
}

impl Tally {
    /// Of so many namespaces that are to have a copy.
    pub(super) fn of(desired: usize) -> Self {
        Self {
            desired,
            ..Self::default()
        }
    }

    pub(super) fn fails(&mut self, trouble: Trouble, namespace: &str, error: Option<String>) {
        let namespaces = self.troubles.entry(trouble).or_default();
        namespaces.push((namespace.to_owned(), error));
    }

    /// The namespaces where this is wrong.
    pub(super) fn namespaces(&self, trouble: Trouble) -> Vec<String> {
        let all = self.troubles.get(&trouble).into_iter().flatten();
        all.map(|(namespace, _)| namespace.clone()).collect()
    }

    /// Has everything been done, as far as it can be?
    fn is_settled(&self) -> bool {
        self.pending == 0 || !self.troubles.is_empty()
    }

    pub(super) fn status(
        &self,
        distribution: &ResourceDistribution,
        now: Timestamp,
    ) -> ResourceDistributionStatus {
        let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let (desired, succeeded) = (number(self.desired), number(self.succeeded));
        let conditions = Trouble::ALL.into_iter();
        ResourceDistributionStatus {
            desired,
            succeeded,
            failed: desired - succeeded,
            observed_generation: distribution.metadata.generation,
            conditions: conditions
                .map(|trouble| self.condition(trouble, distribution, now))
                .collect(),
        }
    }

    fn condition(
        &self,
        trouble: Trouble,
        distribution: &ResourceDistribution,
        now: Timestamp,
    ) -> DistributionCondition {
        let kind = trouble.condition();
        let failed = self.troubles.get(&trouble).map(Vec::as_slice).unwrap_or_default();
        let status = if failed.is_empty() { "False" } else { "True" };
        let error = failed.iter().find_map(|(_, error)| error.clone());
        let reason = match trouble {
            _ if failed.is_empty() => SUCCEEDED.to_owned(),
            Trouble::Conflict => CONFLICTS.to_owned(),
            Trouble::Missing => NAMESPACE_MISSING.to_owned(),
            _ => error.unwrap_or_default(),
        };
        let mut before = distribution.status.conditions.iter();
        let before = before.find(|condition| condition.kind == kind && condition.status == status);
        let since = before.and_then(|condition| condition.last_transition_time);
        DistributionCondition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            last_transition_time: Some(since.unwrap_or(jobs::stored(now))),
            reason,
            failed_namespaces: self.namespaces(trouble),
        }
    }

    /// The write of the status, if it differs from what is stored. While work goes on that may succeed, there is
    /// none: the status says what has come of it.
    pub(super) fn patch(
        &self,
        distribution: &ResourceDistribution,
        owner: &Owner<'_>,
        status: &ResourceDistributionStatus,
    ) -> Option<StatusPatch> {
        if !self.is_settled() {
            return None;
        }
        let urgency = Urgency {
            members: &["conditions"],
            settled: status.succeeded == status.desired,
        };
        let target = owner.target(kruise_api::resourcedistribution::RESOURCE, owner.name);
        let stored = &distribution.status;
        let before = (!stored.conditions.is_empty()).then_some(stored);
        let version = &distribution.metadata.resource_version;
        status_patch(target, version, before, status, urgency)
    }
}
