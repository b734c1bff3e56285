//! The update path of all pods of one revision: what changes on them, and the patches for that.

use std::{cell::OnceCell, collections::BTreeMap};

use serde_json::{Value, json};

use super::{Policy, Rollout};
use crate::{
    history::revision::Revision,
    inplace::{Change, NotInPlace, Resize, RevisionLabels, UpdateLabel, UpdateSpec, diff},
};

/// How pods come from one revision to another in place.
pub(super) struct UpdatePath {
    pub(super) change: Change,
    /// What changes, in plain words.
    pub(super) reason: String,
    /// Prepared for the first pod that is updated: often none may be yet.
    spec: OnceCell<UpdateSpec>,
}

impl UpdatePath {
    /// The path that makes this change.
    pub(super) fn of(change: Change) -> Self {
        Self {
            reason: describe(&change),
            change,
            spec: OnceCell::new(),
        }
    }

    /// A change of resources, and of nothing else.
    pub(super) fn of_resources(resources: BTreeMap<String, Resize>) -> Change {
        Change {
            resources,
            metadata: json!({}),
            ..Change::default()
        }
    }

    /// The specification of the patches.
    pub(super) fn spec(&self, rollout: &Rollout<'_>, target: &Revision) -> &UpdateSpec {
        self.spec.get_or_init(|| {
            let labels = RevisionLabels {
                name: &target.name,
                label: rollout.label_of(target),
                hash: rollout.options.template_hash.then_some(target.hash.as_str()),
            };
            let is_labelled = rollout.options.restart_labels || !self.change.restarts();
            let label = if (self.change.takes_time() && is_labelled) || rollout.update_hook().is_some() {
                UpdateLabel::Updating
            } else {
                UpdateLabel::Unchanged
            };
            let (grace, scaling) = (rollout.strategy.grace_seconds, rollout.options.vertical_scaling);
            UpdateSpec::new(self.change.clone(), labels, label, grace, scaling, rollout.now)
        })
    }
}

impl Rollout<'_> {
    /// What separates two revisions, if a live pod can take that step.
    pub fn change_between(&self, old: &Revision, target: &Revision) -> Result<Change, NotInPlace> {
        self.change_from(old.template.canonical(), old, target)
    }

    /// As [`Self::change_between`], for a pod of the old revision that is as this template says.
    pub(super) fn change_from(
        &self,
        template: &Value,
        old: &Revision,
        target: &Revision,
    ) -> Result<Change, NotInPlace> {
        if self.claims_differ(old, target) {
            let path = "volumeClaimTemplates".into();
            return Err(NotInPlace { path });
        }
        // As stored: what their writer dropped is missing on both sides, and no difference.
        let new = self.history.by_label(&target.name).unwrap_or(target);
        let change = diff(template, new.template.canonical(), self.options.vertical_scaling)?;
        if self.options.environment_from_metadata {
            Ok(change)
        } else {
            Ok(change.without_environment())
        }
    }

    /// With the gate, pods made for other claim templates are recreated, unless they may only change in place.
    fn claims_differ(&self, old: &Revision, target: &Revision) -> bool {
        let heeded = self.options.recreate_for_claims && self.strategy.policy != Policy::InPlaceOnly;
        let (old, new) = (&old.claims_hash, &target.claims_hash);
        heeded && old.is_some() && new.is_some() && old != new
    }
}

fn describe(change: &Change) -> String {
    let images: Vec<String> = change
        .images
        .iter()
        .map(|(name, image)| format!("{name} to {image}"))
        .collect();
    let images = images.join(", ");
    let resized: Vec<&str> = change.resources.keys().map(String::as_str).collect();
    let resized = resized.join(", ");
    match (images.is_empty(), resized.is_empty(), !change.read.is_empty()) {
        (false, true, _) => format!("image of {images}"),
        (false, false, _) => format!("image of {images}; resources of {resized}"),
        (true, false, _) => format!("resources of {resized}"),
        (true, true, true) => "labels or annotations that the environment reads".into(),
        (true, true, false) => "labels or annotations".into(),
    }
}
