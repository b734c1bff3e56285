//! A CloneSet's specification as its documentation explains it.

use super::super::draft::CLONESETS;
use crate::rules::belief;
use crate::rules::prelude::*;
use crate::rules::template::same_template;

/// What the sender of a write may have believed of the CloneSet.
pub type Knowledge<'a> = belief::Knowledge<'a, Spec<'a>>;

/// What a version of a CloneSet demands.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec<'a> {
    /// Wanted pods.
    pub replicas: i64,
    /// Pods that stay on old revisions.
    pub partition: i64,
    /// Pods that may be unavailable.
    pub max_unavailable: i64,
    /// Pods beyond the wanted ones.
    pub max_surge: i64,
    /// No updates?
    pub paused: bool,
    /// Updates only where somebody deletes a pod?
    pub on_delete: bool,
    /// `podUpdatePolicy`.
    pub policy: &'a str,
    /// Do pods that a hook holds before their deletion not count?
    pub excludes: bool,
    /// Names to delete.
    pub pods_to_delete: Vec<&'a str>,
    /// Seconds until a ready pod counts.
    pub min_ready_seconds: i64,
    /// The pod template.
    pub template: &'a Value,
}

impl<'a> Spec<'a> {
    /// Reads a CloneSet.
    pub fn of(set: &'a Object) -> Self {
        let spec = set.spec();
        let rolling = &spec["updateStrategy"]["rollingUpdate"];
        let replicas = spec["replicas"].as_i64().unwrap_or(1);
        let paused = rolling["paused"] == true;
        let surge = rounded_up(&rolling["maxSurge"], replicas, 0);
        let max_surge = if paused { 0 } else { surge };
        let round = if max_surge > 0 { rounded_down } else { rounded_up };
        let unavailable = match &rolling["maxUnavailable"] {
            Value::Null => Value::from("20%"),
            given => given.clone(),
        };
        Self {
            replicas,
            partition: kept(&rolling["partition"], replicas),
            max_unavailable: round(&unavailable, replicas, 0),
            max_surge,
            paused,
            on_delete: spec["updateStrategy"]["type"] == "OnDelete",
            excludes: spec["scaleStrategy"]["excludePreparingDelete"] == true,
            policy: rolling["podUpdatePolicy"].as_str().unwrap_or("ReCreate"),
            pods_to_delete: texts(&spec["scaleStrategy"]["podsToDelete"]).collect(),
            min_ready_seconds: number(&spec["minReadySeconds"]),
            template: &spec["template"],
        }
    }

    /// May pods be updated that nobody deletes?
    pub fn updates(&self) -> bool {
        !self.paused && !self.on_delete
    }

    /// Is the pod of this name to be deleted?
    pub fn names(&self, pod: &str) -> bool {
        self.pods_to_delete.contains(&pod)
    }

    /// Does a pod take one of the places?
    pub fn counts(&self, pod: &Object) -> bool {
        pod.is_active() && !(self.excludes && pod.label(STATE) == "PreparingDelete")
    }

    /// Is it an active pod of the revision of this template?
    pub fn is_updated<'m>(&self, mirror: &'m Mirror) -> impl Fn(&Object) -> bool + use<'m> {
        let mut revisions = mirror.of(REVISIONS).now();
        let revision = revisions.find(|one| self.is_revision(one));
        move |pod| pod.is_active() && revision.is_some_and(|revision| pod.label(REVISION) == &*revision.name)
    }

    /// Is this revision one of this template?
    pub fn is_revision(&self, revision: &Object) -> bool {
        same_template(&revision.value()["data"]["spec"]["template"], self.template)
    }
}

/// What the sender of a write may have believed.
pub fn knowledge<'a>(write: &Write<'_>, mirror: &'a Mirror) -> Option<Knowledge<'a>> {
    Knowledge::of(write, mirror, CLONESETS, Spec::of)
}
