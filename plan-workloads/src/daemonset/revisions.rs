//! What a set says about its revisions, and which of them its pods have.

use kruise_api::{daemonset::DaemonSet, names::REVISION_HASH};
use kruise_plan_kit::{
    ObjectWrites,
    history::{History, Keep, Reported, Specified},
    revision::Revision,
};
use kruise_views::RevisionView;

use super::{decision::Decision, places::Places};

/// What it says. The status names its revision by hash. `pulls_ahead`: revisions carry labels about their images.
pub(super) fn specified<'a>(set: &'a DaemonSet, history: &'a History, pulls_ahead: bool) -> Specified<'a> {
    let status = &set.status;
    let is_reported = |view: &&std::sync::Arc<RevisionView>| {
        go_compat::revision::label_matches_revision(&status.update_revision, &view.name)
    };
    let reported = history.all().iter().find(is_reported);
    Specified {
        template: &set.spec.template,
        annotations: &set.metadata.annotations,
        claims_hash: None,
        collision_count: status.collision_count,
        reported: Reported {
            name: reported.map_or("", |view| &view.name),
            is_current: set.metadata.generation > 0 && status.observed_generation == set.metadata.generation,
        },
        current: "",
        hash_label: REVISION_HASH,
        pulls_ahead,
    }
}

/// The newest older revision that a living pod has.
pub(super) fn outdated(history: &History, places: &Places<'_>) -> Option<Revision> {
    let old = places
        .members()
        .filter(|member| member.is_living() && !member.pod.updated);
    let labels: Vec<&str> = old.map(|member| member.pod.label()).collect();
    let is_used = |view: &&std::sync::Arc<RevisionView>| {
        let mut labels = labels.iter();
        labels.any(|label| go_compat::revision::label_matches_revision(label, &view.name))
    };
    let found = history.all().iter().rev().find(is_used)?;
    Revision::stored(found)
}

impl Decision<'_> {
    /// Deletes the oldest revisions beyond the limit that no pod has, and those that are the update revision once more.
    pub(super) fn truncate(&self, twins: &[String]) -> Vec<ObjectWrites> {
        let rollout = &self.rollout;
        let limit = self.set.spec.revision_history_limit.unwrap_or(10).max(0);
        let limit = usize::try_from(limit).unwrap_or(0);
        let is_used = |view: &RevisionView| {
            let mut members = self.places.members();
            members.any(|member| go_compat::revision::label_matches_revision(member.pod.label(), &view.name))
        };
        let reason = format!("more than {limit} older revisions");
        // The update revision is one more, whether it is stored yet or not.
        let stored = usize::from(rollout.history.get(&rollout.update.name).is_some());
        let keep = Keep::InAll(limit + stored);
        let kept = [rollout.update.name.as_str()];
        let history = &rollout.history;
        let mut writes = history.truncate(&rollout.owner, keep, &kept, is_used, &reason);
        if !twins.is_empty() {
            let is_needed =
                |view: &RevisionView| !twins.iter().any(|twin| **twin == *view.name) || is_used(view);
            let reason = "another revision holds the same template";
            let spare = history.truncate(&rollout.owner, Keep::Unused(0), &kept, is_needed, reason);
            let known: Vec<_> = writes
                .iter()
                .flat_map(|object| &object.steps)
                .map(|step| step.write.target().clone())
                .collect();
            let is_new = |object: &ObjectWrites| {
                let mut steps = object.steps.iter();
                steps.all(|step| !known.contains(step.write.target()))
            };
            writes.extend(spare.into_iter().filter(is_new));
        }
        writes
    }
}
