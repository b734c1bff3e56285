//! What becomes of pods: what a plan would do to them, and what a watch shows to have been done.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kruise_api::names::{IN_PLACE_UPDATE_READY, KRUISE_POD_READY, LIFECYCLE_STATE, REVISION_HASH};
use kruise_kinds::pod_marks::{OWN_NAME, injectors, upgraded_by};
use kruise_plan_kit::{Body, Intent, Patch, Plan, PodChange, ResourceId, Step, Write};
use kruise_views::PodView;
use kube_cache::Version;
use serde_json::Value;

/// The condition of a pod that is deleted by an eviction, a taint, a preemption or for want of its node.
const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// What becomes of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    /// It is new.
    Created,
    /// It stays, and gets another image or another revision.
    Updated,
    /// Its deletion begins.
    Deleted,
}

impl Fate {
    /// In words, after "pod NAME".
    pub(super) fn told(self) -> &'static str {
        match self {
            Self::Created => "was created",
            Self::Updated => "was updated in place",
            Self::Deleted => "was deleted",
        }
    }
}

/// What is to be said of something that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was planned.
    Agrees,
    /// It was not planned, unless what the cache gets later says that this cannot be told.
    Differs,
    /// It is a deletion that no manager of ours makes: an eviction, or one that follows the deletion of the owner.
    ByOthers,
    /// What the manager had when it did this is not known.
    NotCompared,
}

/// What pods are alike by: which of two such pods comes first says nothing about a manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Traits {
    revision: Option<String>,
    is_ready: bool,
    /// Kubernetes stores seconds.
    created: Option<Timestamp>,
}

impl Traits {
    pub(super) fn of(pod: &PodView) -> Self {
        Self {
            revision: revision_of(pod),
            is_ready: pod.is_true("Ready"),
            created: pod.created,
        }
    }
}

/// What a plan would do to a pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wish {
    pub(super) fate: Fate,
    /// Namespace of the pod.
    pub(super) namespace: String,
    /// Name of the pod.
    pub(super) pod: String,
    /// Is the name of a new pod part of what it is? Otherwise another manager gives it another one.
    pub(super) is_named: bool,
    /// The revision that it gets.
    pub(super) revision: Option<String>,
    /// The images that it gets, by container; `None` if any may be meant.
    pub(super) images: Option<BTreeMap<String, String>>,
    /// Of a pod that exists.
    pub(super) traits: Option<Traits>,
    /// The write and its reason.
    pub(super) text: String,
}

/// What a watch shows to have been done to a pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) fate: Fate,
    /// Namespace of the pod.
    pub(super) namespace: String,
    /// Name of the pod.
    pub(super) pod: String,
    /// The revision of a new pod, or the other one that it got.
    pub(super) revision: Option<String>,
    /// The other images that it got, by container.
    pub(super) images: BTreeMap<String, String>,
    /// Before it was done.
    pub(super) traits: Option<Traits>,
    /// Version of the pod afterwards.
    pub(super) version: Option<Version>,
    /// Is the deletion marked as one by a node, a scheduler or an eviction?
    pub(super) is_disruption: bool,
    /// May it have been done for injected sidecars, not for the workload?
    pub(super) is_of_sidecars: bool,
    /// The only one of those that inject sidecars that has recorded an upgrade with it.
    pub(super) injector: Option<String>,
}

impl Wish {
    /// Is it this that was done?
    pub(super) fn is(&self, seen: &Seen) -> bool {
        if self.fate != seen.fate {
            return false;
        }
        let is_alike = self.traits.is_some() && self.traits == seen.traits;
        match self.fate {
            Fate::Created => self.revision == seen.revision && (!self.is_named || self.is_of(seen)),
            Fate::Deleted => self.is_of(seen) || is_alike,
            Fate::Updated => (self.is_of(seen) || is_alike) && self.gives(seen),
        }
    }

    /// Is it for this very pod?
    pub(super) fn is_of(&self, seen: &Seen) -> bool {
        self.pod == seen.pod && self.namespace == seen.namespace
    }

    /// What remains of this wish after a write that it [is](Wish::is): the revision and images of an update that
    /// were not written yet. They remain for the pod that was written.
    pub(super) fn rest(&self, seen: &Seen) -> Option<Self> {
        if self.fate != Fate::Updated {
            return None;
        }
        let revision = self.revision.clone().filter(|_| seen.revision.is_none());
        let mut images = self.images.clone()?;
        images.retain(|container, _| !seen.images.contains_key(container));
        (revision.is_some() || !images.is_empty()).then(|| Self {
            namespace: seen.namespace.clone(),
            pod: seen.pod.clone(),
            revision,
            images: Some(images),
            traits: None,
            ..self.clone()
        })
    }

    /// Does it give what the pod got? An update may be made in parts.
    pub(super) fn gives(&self, seen: &Seen) -> bool {
        let gives_revision = seen.revision.is_none() || self.revision == seen.revision;
        let gives_images = self.images.as_ref().is_none_or(|images| {
            let mut changed = seen.images.iter();
            changed.all(|(container, image)| images.get(container) == Some(image))
        });
        gives_revision && gives_images
    }
}

/// What a plan would do to pods. `traits` are those of a pod, by namespace and name.
pub(super) fn wishes(plan: &Plan, traits: impl Fn(&str, &str) -> Option<Traits>) -> Vec<Wish> {
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    let of_pods = steps.filter(|step| step.write.target().resource == ResourceId::PODS);
    of_pods.filter_map(|step| wish(step, &traits)).collect()
}

fn wish(step: &Step, traits: impl Fn(&str, &str) -> Option<Traits>) -> Option<Wish> {
    let target = step.write.target();
    let of = |fate| Wish {
        fate,
        namespace: target.namespace.clone(),
        pod: target.name.clone(),
        is_named: true,
        revision: None,
        images: None,
        traits: traits(&target.namespace, &target.name),
        text: format!("{}: {}", step.write, step.reason),
    };
    match (&step.write, step.write.intent()) {
        (Write::Create { body, .. }, Intent::CREATE_POD) => Some(Wish {
            is_named: label(body, OWN_NAME).is_some(),
            revision: label(body, REVISION_HASH),
            traits: None,
            ..of(Fate::Created)
        }),
        (Write::Delete { .. }, _) => Some(of(Fate::Deleted)),
        (Write::Patch { patch, .. }, Intent::UPDATE_IN_PLACE) => {
            let Patch::Strategic(body) = patch else {
                return Some(of(Fate::Updated));
            };
            let patch = body.render();
            Some(Wish {
                revision: patch.pointer(&label_pointer(REVISION_HASH)).and_then(text_at),
                images: Some(images_in(&patch)),
                ..of(Fate::Updated)
            })
        }
        (Write::Patch { .. }, other) if other.pod_change() == Some(PodChange::Updated) => {
            Some(of(Fate::Updated))
        }
        _ => None,
    }
}

fn text_at(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Where an object has a label.
fn label_pointer(key: &str) -> String {
    format!("/metadata/labels/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// A label of a pod that is to be created. Its own labels come before those that it shares.
fn label(body: &Body, key: &str) -> Option<String> {
    let pointer = label_pointer(key);
    let own = body.set.iter().rev().find(|(at, _)| *at == pointer);
    own.map(|(_, value)| value)
        .or_else(|| body.base.pointer(&pointer))
        .and_then(text_at)
}

/// The images that a patch of a pod sets, by container.
fn images_in(patch: &Value) -> BTreeMap<String, String> {
    let kinds = ["containers", "initContainers"];
    let containers = kinds
        .iter()
        .filter_map(|kind| patch.get("spec")?.get(*kind)?.as_array())
        .flatten();
    containers
        .filter_map(|container| {
            Some((
                text_at(container.get("name")?)?,
                text_at(container.get("image")?)?,
            ))
        })
        .collect()
}

fn revision_of(pod: &PodView) -> Option<String> {
    pod.labels.get(REVISION_HASH).map(str::to_owned)
}

/// Does an event take a pod out of service, or to another state of its lifecycle? A manager that goes on to update
/// or delete the pod has decided that before: a plan of the state after it may have to put it back first.
pub(super) fn is_first_step(old: &PodView, new: &PodView) -> bool {
    let gates = [IN_PLACE_UPDATE_READY, KRUISE_POD_READY];
    let lost = gates.iter().any(|gate| old.is_true(gate) && !new.is_true(gate));
    lost || old.labels.get(LIFECYCLE_STATE) != new.labels.get(LIFECYCLE_STATE)
}

/// What an event does to a pod, given the pod before it, if anything becomes of it. `is_gone` says that the pod is
/// removed.
pub(super) fn seen(old: Option<&PodView>, new: &PodView, is_gone: bool) -> Option<Seen> {
    let of = |fate| Seen {
        fate,
        namespace: new.namespace.to_string(),
        pod: new.name.to_string(),
        revision: None,
        images: BTreeMap::new(),
        traits: old.map(Traits::of),
        version: Version::of(new),
        is_disruption: new.is_true(DISRUPTION_TARGET),
        is_of_sidecars: false,
        injector: None,
    };
    let Some(old) = old else {
        return (!is_gone).then(|| Seen {
            revision: revision_of(new),
            ..of(Fate::Created)
        });
    };
    if old.deleting {
        return None;
    }
    if is_gone || new.deleting {
        return Some(of(Fate::Deleted));
    }
    let revision = revision_of(new).filter(|revision| Some(revision) != revision_of(old).as_ref());
    let before: BTreeSet<_> = (old.containers.iter())
        .map(|container| (&container.name, &container.image))
        .collect();
    let changed = (new.containers.iter())
        .filter(|container| !before.contains(&(&container.name, &container.image)))
        .map(|container| (container.name.to_string(), container.image.to_string()));
    let images: BTreeMap<String, String> = changed.collect();
    if revision.is_none() && images.is_empty() {
        return None;
    }
    let is_of_sidecars = revision.is_none() && injectors(new).next().is_some();
    let mut upgraded_by = upgraded_by(old, new);
    let injector = upgraded_by.pop_first();
    let injector = injector.filter(|_| is_of_sidecars && upgraded_by.is_empty());
    Some(Seen {
        revision,
        images,
        is_of_sidecars,
        injector,
        ..of(Fate::Updated)
    })
}
