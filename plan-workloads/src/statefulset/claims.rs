//! The claims of a pod, found by their names: `<template>-<set>-<ordinal>`.
//!
//! # What it promises
//! - A pod is created only when each of its claims exists and stays, or is created before it.
//! - A claim that goes, with the pod or the set before, is waited for: a pod that took it would lose its data.
//! - A claim of somebody else is left alone. A claim without owners is used: people prepare claims.

use std::sync::Arc;

use kruise_api::statefulset::StatefulSetSpec;
use kruise_plan_kit::{
    Body, Intent, Owner, ResourceId, Step, Write, claims::ClaimTemplate, claims::ClaimTemplates,
};
use kruise_views::ClaimView;
use serde_json::Value;

use super::{events, snapshot::Find};

/// The claims of a set's pods.
pub(super) struct Claims<'a> {
    pub(super) owner: Owner<'a>,
    pub(super) templates: ClaimTemplates<'a>,
    pub(super) find: Find<'a, ClaimView>,
}

/// Why a claim cannot be used.
pub(super) enum Obstacle {
    /// It is being deleted, or about to be. Its deletion brings the next plan.
    Leaves(String),
    /// It belongs to somebody else.
    Foreign(String),
}

impl<'a> Claims<'a> {
    /// Those of a specification. New ones get these owners.
    pub(super) fn new(
        owner: Owner<'a>,
        spec: &'a StatefulSetSpec,
        owners: &[Value],
        find: Find<'a, ClaimView>,
    ) -> Self {
        let (templates, labels) = (&spec.volume_claim_templates, &spec.selector.match_labels);
        Self {
            owner,
            templates: ClaimTemplates::new(templates, owner.namespace, labels, owners),
            find,
        }
    }

    /// The claims that the pod of this ordinal has of the templates, and those that it lacks.
    pub(super) fn of(
        &self,
        ordinal: i32,
    ) -> impl Iterator<Item = (&ClaimTemplate<'a>, String, Option<Arc<ClaimView>>)> {
        let id = ordinal.to_string();
        self.templates.iter().map(move |template| {
            let name = template.claim_of(self.owner.name, &id);
            let claim = (self.find)(&name);
            (template, name, claim)
        })
    }

    /// Those that exist, stay, and are nobody else's.
    pub(super) fn usable(&self, ordinal: i32) -> impl Iterator<Item = Arc<ClaimView>> {
        let found = self.of(ordinal).filter_map(|(_, _, claim)| claim);
        found.filter(|claim| !claim.deleting && self.owned_by_others(claim).is_none())
    }

    /// Creations of the claims that a new pod of this name does not find.
    pub(super) fn for_new_pod(&self, ordinal: i32, pod: &str) -> Result<Vec<Step>, Obstacle> {
        let mut steps = Vec::new();
        for (template, name, claim) in self.of(ordinal) {
            let Some(claim) = claim else {
                steps.push(self.create(template, name, pod));
                continue;
            };
            if let Some(owner) = self.owned_by_others(&claim) {
                return Err(Obstacle::Foreign(format!("claim {name} belongs to {owner}")));
            }
            if let Some(why) = self.leaves(&claim, pod) {
                return Err(Obstacle::Leaves(format!(
                    "waits until claim {name} is gone, {why}"
                )));
            }
        }
        Ok(steps)
    }

    /// Creations of the claims that a pod waits for.
    pub(super) fn for_waiting_pod(&self, ordinal: i32, pod: &str) -> Vec<Step> {
        let missing = self.of(ordinal).filter(|(_, _, claim)| claim.is_none());
        missing
            .map(|(template, name, _)| self.create(template, name, pod))
            .collect()
    }

    /// Who owns the claim, if it is neither the set, nor one of this name before it, nor a pod.
    fn owned_by_others(&self, claim: &ClaimView) -> Option<String> {
        let controller = claim
            .controller
            .as_deref()
            .filter(|owner| *owner.uid != *self.owner.uid);
        let sets = claim.owners.iter();
        let other = controller.or_else(|| {
            sets.into_iter()
                .find(|owner| &*owner.kind == self.owner.kind && *owner.name != *self.owner.name)
        })?;
        Some(format!("{} {}", other.kind, other.name))
    }

    /// Why a claim does not stay, for a pod that does not exist.
    fn leaves(&self, claim: &ClaimView, pod: &str) -> Option<&'static str> {
        let owned = |kind: &str, name: &str| {
            let mut owners = claim.owners.iter();
            owners.any(|owner| &*owner.kind == kind && *owner.name == *name && *owner.uid != *self.owner.uid)
        };
        if claim.deleting {
            return Some("which is being deleted");
        }
        if owned("Pod", pod) {
            return Some("which goes with the pod before");
        }
        owned(self.owner.kind, self.owner.name).then_some("which goes with the set before")
    }

    fn create(&self, template: &ClaimTemplate<'a>, name: String, pod: &str) -> Step {
        let words = events::claim_creation(&self.owner, &name, pod);
        let write = Write::Create {
            intent: Intent::CREATE_CLAIM,
            target: self.owner.target(ResourceId::CLAIMS, name.as_str()),
            body: Body {
                base: Arc::clone(&template.base),
                set: vec![("/metadata/name", name.into())],
            },
            owner_uid: None,
        };
        events::reported(Step::new(write, "its pod mounts it"), words)
    }
}
