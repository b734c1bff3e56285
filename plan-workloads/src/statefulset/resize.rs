//! Claims that follow their templates: they grow when the pods that use them are next to be updated.
//!
//! Claim templates are not versioned: pods of every revision have the claims that the specification says now.

use std::sync::Arc;

use kruise_api::{names::statefulset::CLAIM_OWNER, statefulset::ClaimStatus};
use kruise_plan_kit::{
    EventNote, Intent, Owner, Part, Patch, Precondition, Step, Write, claims::name_of, injected::is_injected,
};
use kruise_views::{ClaimView, StorageClassView, amount};
use serde_json::{Value, json};

use super::reasons;
use super::{claims::Claims, events as words, members::Member, retention, snapshot::Find};

/// A claim requests more storage.
const RESIZE_CLAIM: Intent = Intent::of_update("resize-claim");

/// What templates ask of claims.
pub(super) struct Resize<'a> {
    /// Do claims follow?
    pub(super) follows: bool,
    templates: Vec<Wanted<'a>>,
    class: Find<'a, StorageClassView>,
}

/// What one template asks for.
struct Wanted<'a> {
    name: &'a str,
    access_modes: Vec<&'a str>,
    class: Option<&'a str>,
    /// In thousandths of a byte.
    storage: i64,
    resources: Option<&'a Value>,
}

/// How a claim compares with its template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Fits,
    /// It asks for less storage.
    Smaller,
    /// Another storage class or other access modes, which cannot change.
    Other,
}

/// How far the claims of a pod are.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Progress {
    /// As their templates ask, or about to be once the pod starts anew.
    Complete,
    /// Their volumes grow, after these writes.
    Grows(Vec<Step>),
    /// They cannot follow.
    Stuck(EventNote),
}

/// What the claims of a pod wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// To have what they ask for.
    Grows,
    /// The pod's next start, at which their file systems grow.
    WaitsForStart,
    /// Nothing that would come by itself: their templates ask for what claims cannot become.
    Stuck,
}

impl<'a> Resize<'a> {
    /// Reads the templates.
    pub(super) fn new(templates: &'a [Value], follows: bool, class: Find<'a, StorageClassView>) -> Self {
        let wanted = |template: &'a Value| {
            let modes = template.pointer("/spec/accessModes").and_then(Value::as_array);
            let resources = template.pointer("/spec/resources");
            Wanted {
                name: name_of(template),
                access_modes: modes.into_iter().flatten().filter_map(Value::as_str).collect(),
                class: template.pointer("/spec/storageClassName").and_then(Value::as_str),
                storage: resources
                    .and_then(|resources| amount(resources.pointer("/requests/storage")?))
                    .unwrap_or(0),
                resources,
            }
        };
        Self {
            follows,
            templates: templates.iter().map(wanted).collect(),
            class,
        }
    }

    /// The claims of a pod with what their templates ask for; without those that go or do not exist.
    fn of<'c>(
        &'c self,
        claims: &'c Claims<'_>,
        ordinal: i32,
    ) -> impl Iterator<Item = (&'c Wanted<'a>, Arc<ClaimView>)> {
        let found = claims.of(ordinal);
        found.filter_map(|(template, _, claim)| {
            let claim = claim.filter(|claim| !claim.deleting)?;
            let wanted = self
                .templates
                .iter()
                .find(|wanted| wanted.name == template.name)?;
            Some((wanted, claim))
        })
    }

    /// Does a claim of the pod keep it from counting as available: it has not got what it asks for, or cannot follow?
    pub(super) fn holds(&self, claims: &Claims<'_>, ordinal: i32) -> bool {
        let open = |(wanted, claim): (&Wanted<'_>, Arc<ClaimView>)| {
            if !is_bound(&claim) {
                return false;
            }
            // One whose file system grows when a pod mounts it next has all that it gets before that.
            let grows = !has_capacity(&claim) && !claim.resize_pending;
            grows || wanted.fit(&claim) == Fit::Other
        };
        self.follows && self.of(claims, ordinal).any(open)
    }

    /// Do all claims of the pod fit their templates?
    pub(super) fn fits(&self, claims: &Claims<'_>, ordinal: i32) -> bool {
        !self.follows
            || self
                .of(claims, ordinal)
                .all(|(wanted, claim)| wanted.fit(&claim) == Fit::Fits)
    }

    /// Does a claim of the pod wait until the pod starts anew?
    pub(super) fn waits_for_start(&self, claims: &Claims<'_>, ordinal: i32) -> bool {
        let pending =
            |(_, claim): (&Wanted<'_>, Arc<ClaimView>)| claim.resize_pending && !has_capacity(&claim);
        self.follows && self.of(claims, ordinal).any(pending)
    }

    /// What is left to do until the claims of a pod are as their templates ask; `None` if nothing is.
    pub(super) fn stage(&self, claims: &Claims<'_>, member: &Member<'_>) -> Option<Stage> {
        match self.progress(claims, member) {
            Progress::Complete => self
                .waits_for_start(claims, member.ordinal)
                .then_some(Stage::WaitsForStart),
            Progress::Grows(_) => Some(Stage::Grows),
            Progress::Stuck(_) => Some(Stage::Stuck),
        }
    }

    /// What the claims of a pod need to fit their templates.
    pub(super) fn progress(&self, claims: &Claims<'_>, member: &Member<'_>) -> Progress {
        if !self.follows {
            return Progress::Complete;
        }
        let owner = &claims.owner;
        let pod = &*member.pod.view.name;
        let (mut writes, mut grows) = (Vec::new(), false);
        let bound = self
            .of(claims, member.ordinal)
            .filter(|(_, claim)| is_bound(claim));
        for (wanted, claim) in bound {
            match wanted.fit(&claim) {
                Fit::Fits => grows |= !has_capacity(&claim) && !claim.resize_pending,
                Fit::Smaller => {
                    if let Some(class) = claim.class.as_deref()
                        && !(self.class)(class).is_some_and(|class| class.expands)
                        && !is_injected("ResizeUnchecked")
                    {
                        let text =
                            format!("storage class {class} does not expand volumes, or does not exist");
                        return Progress::Stuck(stuck(owner, &claim, pod, &text));
                    }
                    writes.push(grow(owner, &claim, wanted, pod));
                }
                Fit::Other => {
                    let text =
                        "its template has another storage class or other access modes, which cannot change";
                    return Progress::Stuck(stuck(owner, &claim, pod, text));
                }
            }
        }
        if writes.is_empty() && !grows {
            return Progress::Complete;
        }
        Progress::Grows(writes)
    }

    /// How far the claims of these pods follow, for the status: one entry for each template.
    pub(super) fn status<'m, 'v: 'm>(
        &self,
        claims: &Claims<'_>,
        members: impl Iterator<Item = &'m Member<'v>>,
    ) -> Vec<ClaimStatus> {
        let mut all: Vec<ClaimStatus> = self
            .templates
            .iter()
            .map(|wanted| ClaimStatus {
                volume_claim_name: wanted.name.to_owned(),
                ..ClaimStatus::default()
            })
            .collect();
        for member in members {
            for (wanted, claim) in self.of(claims, member.ordinal) {
                let entry = all
                    .iter_mut()
                    .find(|entry| entry.volume_claim_name == wanted.name);
                if let Some(entry) = entry.filter(|_| wanted.fit(&claim) == Fit::Fits) {
                    entry.compatible_replicas += 1;
                    entry.compatible_ready_replicas += i32::from(has_capacity(&claim));
                }
            }
        }
        all
    }
}

impl Wanted<'_> {
    fn fit(&self, claim: &ClaimView) -> Fit {
        let modes = claim.access_modes.iter().map(|mode| &**mode);
        let conflict = self
            .class
            .zip(claim.class.as_deref())
            .is_some_and(|(a, b)| a != b);
        if conflict || !modes.eq(self.access_modes.iter().copied()) {
            return Fit::Other;
        }
        if claim.requested.unwrap_or(0) < self.storage {
            Fit::Smaller
        } else {
            Fit::Fits
        }
    }
}

/// Has it a volume? A claim without one does not grow, and may wait for its pod.
fn is_bound(claim: &ClaimView) -> bool {
    claim.capacity.is_some()
}

fn has_capacity(claim: &ClaimView) -> bool {
    claim.capacity.unwrap_or(0) >= claim.requested.unwrap_or(0)
}

fn grow(owner: &Owner<'_>, claim: &ClaimView, wanted: &Wanted<'_>, pod: &str) -> Step {
    let patch = json!({
        "metadata": {"annotations": {CLAIM_OWNER: owner.name}},
        "spec": {"resources": wanted.resources},
    });
    let write = Write::Patch {
        intent: RESIZE_CLAIM,
        target: retention::target(claim),
        part: Part::Main,
        patch: Patch::Merge(patch),
        precondition: Precondition::Uid(claim.uid.to_string()),
    };
    let words = words::claim_resize(owner, &claim.name, pod);
    words::reported(Step::new(write, "its template asks for more storage"), words)
}

fn stuck(owner: &Owner<'_>, claim: &ClaimView, pod: &str, why: &str) -> EventNote {
    let text = format!(
        "claim {} of Pod {pod} in StatefulSet {} cannot follow its template: {why}",
        claim.name, owner.name
    );
    EventNote::new(&reasons::FAILED_UPDATE_CLAIM, text)
}
