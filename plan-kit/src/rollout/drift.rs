//! Pods that do not run what their revision label says.
//!
//! A label is written with the images of its revision, so it says what a pod runs, but for three cases:
//! - Somebody wrote the whole pod, without the annotations of an update in place that was under way: during its grace
//!   period, or between two batches. The label is new, the images are old, and nothing is left to continue
//!   ([`Drift::Interrupted`]). Once such a pod is back in service it looks like an updated one ([`Drift::Old`]).
//! - The template has a container with the name of an injected sidecar, which took its place ([`Drift::Sidecar`]).
//! - An admission webhook changed the image when the pod was created: another registry, a digest in place of a tag.
//!
//! The last one is none of our business. Such pods count as updated, or they would be rolled for ever: the webhook
//! changes their successors in the same way. So an image that differs from that of the revision proves nothing. It
//! takes more: the label of an update under way without a record of it, or that the image is the one of another
//! stored revision while no record of this revision says that it was written. What an update finds to be old it
//! changes in place, which leaves such a record. So whatever a webhook makes of images, a pod is updated at most
//! once more.

use std::{cell::RefCell, rc::Rc};

use kruise_api::lifecycle::Lifecycle;
use kruise_api::names::{IN_PLACE_UPDATE_READY, INPLACE_GRACE, INPLACE_GRACE_LEGACY, LAST_APPLIED};
use kruise_views::{PodView, Truth};
use serde_json::Value;

use super::policy::Policy;
use crate::{
    history::{History, revision::Revision},
    injected::is_injected,
    inplace::{UpdateState, read_state},
    lifecycle::State,
    sidecars,
};

/// How what a pod runs differs from its revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// Not at all, or only in what webhooks make of new pods.
    None,
    /// Its update in place was begun, and its record is lost.
    Interrupted,
    /// It runs an image of another revision.
    Old,
    /// A sidecar has taken the place of a container of the template.
    Sidecar,
}

/// The revisions that pods are classified against.
pub struct Revisions<'r> {
    update: &'r Revision,
    history: &'r History,
    /// May pods be updated in place? Others are as they were created.
    in_place: bool,
    /// By revision label.
    containers: RefCell<Vec<(Box<str>, Rc<Containers<'r>>)>>,
}

/// What is compared of a revision.
struct Containers<'r> {
    /// Names and images of the regular ones.
    images: Vec<(&'r str, &'r str)>,
    /// Names of init containers that last as long as their pod, as sidecars may, too.
    lasting: Vec<&'r str>,
}

impl<'r> Revisions<'r> {
    /// `update` is what pods are updated to, and `history` what is stored.
    pub fn new(update: &'r Revision, history: &'r History, policy: Policy) -> Self {
        Self {
            update,
            history,
            in_place: policy.is_in_place(),
            containers: RefCell::default(),
        }
    }

    /// Does the label name the update revision?
    pub(super) fn is_update(&self, label: &str) -> bool {
        self.update.labels(label)
    }

    /// How what the pod runs differs from the revision of its label.
    pub(super) fn drift(&self, pod: &PodView, state: State, label: &str) -> Drift {
        if is_injected("LostRecordTrusted") {
            return Drift::None;
        }
        if state == State::Updating && self.is_left_out(pod, label) {
            return Drift::Interrupted;
        }
        let containers = self.containers_of(label);
        let differs = |(name, image): &&(&str, &str)| pod.image_of(name).is_some_and(|have| have != *image);
        let images = containers.images.iter();
        let mut differing = images.filter(differs).map(|(name, _)| *name).peekable();
        if differing.peek().is_none() && containers.lasting.is_empty() {
            return Drift::None;
        }
        let injected = sidecars::injected(pod);
        let (sidecars, own): (Vec<&str>, Vec<&str>) = differing.partition(|name| injected.contains(name));
        match self.of_containers(pod, label, &own) {
            Drift::None if !sidecars.is_empty() => Drift::Sidecar,
            Drift::None if containers.lasting.iter().any(|name| injected.contains(name)) => Drift::Sidecar,
            drift => drift,
        }
    }

    /// Does a pod lack a part of its update, of which it has no record?
    fn is_left_out(&self, pod: &PodView, label: &str) -> bool {
        let lacks = |revision: &Revision| as_it_is(&revision.template, pod, None) != *revision.template;
        matches!(record_of(pod, label), Record::None) && self.revision_of(label).is_some_and(lacks)
    }

    /// As [`Self::drift`], of these containers, whose images are not those of the revision.
    fn of_containers(&self, pod: &PodView, label: &str, differing: &[&str]) -> Drift {
        let is_lost = |name: &str| match record_of(pod, label) {
            Record::None => true,
            Record::Of(record) => !record.writes(name),
            Record::Pending => false,
        };
        let mut lost = differing.iter().filter(|name| is_lost(name));
        if !lost.any(|name| self.is_of_another(pod, label, name)) {
            return Drift::None;
        }
        let is_marked = pod.condition(IN_PLACE_UPDATE_READY);
        if is_marked.is_some_and(|condition| condition.status == Truth::False) {
            Drift::Interrupted
        } else if self.in_place {
            Drift::Old
        } else {
            Drift::None
        }
    }

    /// Is the image of a container what another revision asks for?
    fn is_of_another(&self, pod: &PodView, label: &str, container: &str) -> bool {
        let have = pod.image_of(container);
        let mut others = self.history.templates().filter(|other| !other.labels(label));
        have.is_some()
            && others.any(|other| images(other).any(|(name, image)| name == container && have == Some(image)))
    }

    /// The containers of the revision that a label names; none if it is gone.
    fn containers_of(&self, label: &str) -> Rc<Containers<'r>> {
        let mut all = self.containers.borrow_mut();
        if let Some((_, known)) = all.iter().find(|(known, _)| **known == *label) {
            return Rc::clone(known);
        }
        let revision = self.revision_of(label);
        let found = Rc::new(Containers {
            images: revision.into_iter().flat_map(images).collect(),
            lasting: revision.into_iter().flat_map(lasting).collect(),
        });
        all.push((label.into(), Rc::clone(&found)));
        found
    }

    fn revision_of(&self, label: &str) -> Option<&'r Revision> {
        if self.is_update(label) {
            Some(self.update)
        } else {
            self.history.by_label(label)
        }
    }
}

/// What a pod records of its update to the revision of its label.
enum Record {
    None,
    Of(Box<UpdateState>),
    /// Its grace period runs, or nobody can read the record, which is reported: nothing follows from what the pod runs.
    Pending,
}

fn record_of(pod: &PodView, label: &str) -> Record {
    let waits = |key: &&str| pod.annotations.get(key).is_some_and(|text| !text.is_empty());
    if [INPLACE_GRACE, INPLACE_GRACE_LEGACY].iter().any(waits) {
        return Record::Pending;
    }
    let is_of = |state: &UpdateState| go_compat::revision::label_matches_revision(label, &state.revision);
    match read_state(pod) {
        Ok(state) => state
            .filter(is_of)
            .map_or(Record::None, |state| Record::Of(Box::new(state))),
        Err(_) => Record::Pending,
    }
}

/// The images of the regular containers of a revision.
fn images(revision: &Revision) -> impl Iterator<Item = (&str, &str)> {
    let containers = revision
        .template
        .pointer("/spec/containers")
        .and_then(Value::as_array);
    containers.into_iter().flatten().filter_map(|container| {
        let text = |name: &str| container.get(name).and_then(Value::as_str);
        Some((text("name")?, text("image")?))
    })
}

/// The names of the init containers of a revision that last.
fn lasting(revision: &Revision) -> impl Iterator<Item = &str> {
    let containers = revision.template.pointer("/spec/initContainers");
    let containers = containers.and_then(Value::as_array).into_iter().flatten();
    let lasting = containers.filter(|container| sidecars::is_native(container));
    lasting.filter_map(|container| container.get("name")?.as_str())
}

/// A template as a pod has it: with its images, labels and annotations. The labels of hooks are as the template has
/// them: it is their users who take them away and put them back.
pub(super) fn as_it_is(template: &Value, pod: &PodView, hooks: Option<&Lifecycle>) -> Value {
    let mut template = template.clone();
    let containers = template
        .pointer_mut("/spec/containers")
        .and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
        let image = pod.image_of(name).map(Value::from);
        if let (Some(image), Some(own)) = (image, container.get_mut("image")) {
            *own = image;
        }
    }
    let mut each = |map: &str, as_is: &dyn Fn(&str, &mut Value) -> bool| {
        let map = template.pointer_mut(map).and_then(Value::as_object_mut);
        if let Some(map) = map {
            map.retain(|key, value| as_is(key, value));
        }
    };
    each("/metadata/labels", &|key, value| {
        let have = pod.labels.get(key);
        if let Some(have) = have {
            *value = have.into();
        }
        have.is_some() || hooks.is_some_and(|hooks| hooks.has_label(key))
    });
    each("/metadata/annotations", &|key, value| {
        let is_it = |text: &str| key == LAST_APPLIED || pod.annotation_prints.has(key, text);
        value.as_str().is_some_and(is_it)
    });
    template
}

/// Which sidecar of a pod has taken the place of a container of its revision, in words.
pub(super) fn replaced_container(revision: &Revision, pod: &PodView) -> Option<String> {
    let injected = sidecars::injected(pod);
    let regular = images(revision).map(|(name, _)| name);
    let mut names = regular.chain(lasting(revision));
    let found = names.find_map(|name| Some((name, injected.set_of(name)?)));
    found.map(|(name, set)| {
        format!(
            "container {name} is that of SidecarSet {set}, and not that of the template: rename one of them"
        )
    })
}
