//! Moving single pods to a revision, in place or by recreation: to the update revision, or back to the current one.

use std::{cell::OnceCell, collections::BTreeMap, rc::Rc};

use jiff::Timestamp;
use kruise_api::{
    lifecycle::LifecycleHook,
    names::{INPLACE_STATE, REVISION_HASH},
};
use kruise_plan_kit::{
    Chain, EventNote, Intent, Part, Precondition, Step, Why, Write, events,
    injected::{Bug, is_injected},
    inplace::{self, Change, NotInPlace, Outset, Phase, Resize, RevisionLabels},
    lifecycle::{self, State},
    revision::Revision,
};
use kruise_views::PodView;
use serde_json::{Value, json};

use super::{
    create,
    history::Revisions,
    members::Member,
    numbers::Numbers,
    observe::{Explain, Observed},
    ready, remove,
    templates::Templates,
    unlabelled, writes,
};

/// What updating does.
#[derive(Default)]
pub(super) struct Updated {
    pub(super) chains: Vec<Chain>,
    pub(super) events: Vec<EventNote>,
    pub(super) why: Vec<Why>,
}

/// The way of all pods of one revision to the target.
struct Move {
    change: Change,
    /// What changes, in plain words.
    reason: String,
    /// Prepared for the first pod that goes: often none may yet.
    outset: OnceCell<Outset>,
}

/// Moves pods; the way from each revision is worked out once.
pub(super) struct Mover<'o, 'a> {
    observed: &'o Observed<'a>,
    target: &'o Revision,
    templates: &'o Templates<'o>,
    /// By revision label.
    moves: BTreeMap<String, Rc<Result<Move, NotInPlace>>>,
    now: Timestamp,
}

/// The moves that a plan may make.
pub(super) struct Movers<'o, 'a> {
    /// To the update revision.
    pub(super) forward: Mover<'o, 'a>,
    /// To the current one.
    pub(super) back: Mover<'o, 'a>,
}

impl<'o, 'a> Movers<'o, 'a> {
    pub(super) fn new(
        observed: &'o Observed<'a>,
        revisions: &'o Revisions,
        templates: &'o Templates<'o>,
        now: Timestamp,
    ) -> Self {
        let to = |target| Mover::new(observed, target, templates, now);
        Self {
            forward: to(&revisions.update),
            back: to(&revisions.current),
        }
    }
}

impl<'o, 'a> Mover<'o, 'a> {
    pub(super) fn new(
        observed: &'o Observed<'a>,
        target: &'o Revision,
        templates: &'o Templates<'o>,
        now: Timestamp,
    ) -> Self {
        Self {
            observed,
            target,
            templates,
            moves: BTreeMap::new(),
            now,
        }
    }

    /// Where pods are moved.
    pub(super) fn target(&self) -> &'o Revision {
        self.target
    }

    fn policy(&self) -> &str {
        let rolling = self.observed.set.spec.update_strategy.rolling_update.as_ref();
        rolling.map_or("", |rolling| rolling.pod_update_policy.as_str())
    }

    /// Can each of these pods, if there is any, change in place?
    pub(super) fn all_in_place<'m, 'p: 'm>(
        &mut self,
        mut members: impl Iterator<Item = &'m Member<'p>>,
    ) -> bool {
        matches!(self.policy(), "InPlaceIfPossible" | "InPlaceOnly")
            && members.all(|member| self.way(member).is_ok())
    }

    /// Leaves out the candidates that cannot move, so that they take nobody's turn. The first is reported.
    pub(super) fn able<'m, 'p>(
        &mut self,
        candidates: Vec<&'m Member<'p>>,
        numbers: Numbers,
        updated: &mut Updated,
    ) -> Vec<&'m Member<'p>> {
        if numbers.update == 0 || !matches!(self.policy(), "InPlaceIfPossible" | "InPlaceOnly") {
            return candidates;
        }
        let mut able = Vec::with_capacity(candidates.len());
        for member in candidates {
            match self.obstacle(member) {
                None => able.push(member),
                Some(text) => {
                    self.warn(member, text, updated);
                    call_off(self.observed, std::iter::once(member), self.now, updated);
                }
            }
        }
        able
    }

    fn obstacle(&mut self, member: &Member<'_>) -> Option<String> {
        match &*self.way(member) {
            Ok(_) if member.state == State::Foreign => {
                Some("its lifecycle state is unknown to this build".into())
            }
            Err(blocked) if self.policy() == "InPlaceOnly" => Some(format!(
                "cannot be updated in place, and the policy is InPlaceOnly: {}",
                blocked.path
            )),
            _ => None,
        }
    }

    pub(super) fn run(&mut self, chosen: Vec<&Member<'_>>, updated: &mut Updated) {
        let in_place = matches!(self.policy(), "InPlaceIfPossible" | "InPlaceOnly");
        for member in chosen {
            if !in_place {
                self.recreate(member, "the template changed and the policy is ReCreate", updated);
                continue;
            }
            match &*self.way(member) {
                Ok(way) => self.change_in_place(member, way, updated),
                Err(blocked) => {
                    let reason = format!("{} cannot change in place", blocked.path);
                    self.recreate(member, &reason, updated);
                }
            }
        }
    }

    /// The way of a pod's revision.
    fn way(&mut self, member: &Member<'_>) -> Rc<Result<Move, NotInPlace>> {
        let label = member.pod.labels.get(REVISION_HASH).unwrap_or_default();
        if let Some(known) = self.moves.get(label) {
            return Rc::clone(known);
        }
        let way = Rc::new(self.work_out(label));
        self.moves.insert(label.to_owned(), Rc::clone(&way));
        way
    }

    fn work_out(&self, label: &str) -> Result<Move, NotInPlace> {
        let Some(old) = self.templates.by_label(label) else {
            return Err(NotInPlace {
                path: "its revision is gone, so the difference".into(),
            });
        };
        Ok(Self::to(self.change_from(old)?))
    }

    /// The way that makes this change.
    fn to(change: Change) -> Move {
        Move {
            reason: describe(&change),
            change,
            outset: OnceCell::new(),
        }
    }

    /// The patches of a way.
    fn outset<'m>(&self, way: &'m Move) -> &'m Outset {
        let prepare = || {
            let revision = self.target;
            let labels = RevisionLabels {
                name: &revision.name,
                label: create::revision_label(self.observed, revision),
                hash: &revision.hash,
            };
            let phase = if way.change.takes_time() || self.hook().is_some() {
                Phase::Updating
            } else {
                Phase::Unchanged
            };
            let scaling = self.observed.options.vertical_scaling;
            let grace = self.grace_seconds();
            Outset::new(way.change.clone(), labels, phase, grace, scaling, self.now)
        };
        way.outset.get_or_init(prepare)
    }

    /// Gives a pod of the target the resources back that it should have. Not where that restarts what a hook asks to be
    /// drained before: the hook is about moves from one revision to another.
    pub(super) fn give_back(
        &self,
        member: &Member<'_>,
        resources: BTreeMap<String, Resize>,
    ) -> Option<Chain> {
        let change = Change {
            resources,
            metadata: json!({}),
            ..Change::default()
        };
        let asks_first = change.restarts() && self.hook().is_some();
        let way = Move {
            reason: "an update broke off: resources of its revision".into(),
            ..Self::to(change)
        };
        (!asks_first).then(|| self.start(member, &way))
    }

    /// The way of a pod that asks for what an update left behind when it broke off, if this is one.
    fn with_what_it_lacks(&self, member: &Member<'_>, way: &Move) -> Option<Move> {
        let resources = unlabelled::on_its_way(self.observed, self.templates, member.pod, self.target);
        if resources.is_empty() {
            return None;
        }
        let lacking = Change {
            resources,
            metadata: json!({}),
            ..Change::default()
        };
        let change = way.change.clone().over(lacking);
        (change != way.change).then(|| Self::to(change))
    }

    /// What separates a revision from the target, if a live pod can take that step.
    pub(super) fn change_from(&self, old: &Revision) -> Result<Change, NotInPlace> {
        if self.claims_differ(old) {
            let path = "volumeClaimTemplates".into();
            return Err(NotInPlace { path });
        }
        let revision = self.target;
        // As stored: what their writer dropped is missing on both sides, and no difference.
        let new = self.templates.by_label(&revision.name).unwrap_or(revision);
        let change = inplace::diff(
            old.template.canonical(),
            new.template.canonical(),
            self.observed.options.vertical_scaling,
        )?;
        if self.observed.options.environment_from_metadata {
            Ok(change)
        } else {
            Ok(change.without_environment())
        }
    }

    /// What pods get between readiness off and the change.
    fn grace_seconds(&self) -> i32 {
        let rolling = self.observed.set.spec.update_strategy.rolling_update.as_ref();
        let strategy = rolling.and_then(|rolling| rolling.in_place_update_strategy.as_ref());
        strategy.map_or(0, |strategy| strategy.grace_period_seconds.max(0))
    }

    /// With the gate, pods made for other claim templates are recreated, unless they may only change in place.
    fn claims_differ(&self, old: &Revision) -> bool {
        let heeded = self.observed.options.recreate_for_claims && self.policy() != "InPlaceOnly";
        let (old, new) = (&old.claims_hash, &self.target.claims_hash);
        heeded && old.is_some() && new.is_some() && old != new
    }

    fn hook(&self) -> Option<&'a LifecycleHook> {
        let lifecycle = self.observed.set.spec.lifecycle.as_ref()?;
        lifecycle.in_place_update.as_ref()
    }

    fn change_in_place(&self, member: &Member<'_>, way: &Move, updated: &mut Updated) {
        let hook = self.hook();
        let held = lifecycle::holds(hook, member.pod);
        match member.state {
            State::None | State::PreparingNormal | State::Normal if held => {
                updated
                    .chains
                    .push(self.hold(member, None, "its inPlaceUpdate hook is asked first"));
            }
            State::PreparingUpdate if held => {
                let text = "waits: its inPlaceUpdate hook holds it".to_owned();
                updated.why.push(Why {
                    about: member.pod.name.to_string(),
                    text,
                });
            }
            State::Updated => {
                if let Some(hook) = hook {
                    updated.chains.push(self.hold(
                        member,
                        Some(hook),
                        "updated again: its hook is asked anew",
                    ));
                }
            }
            State::None
            | State::PreparingNormal
            | State::Normal
            | State::PreparingUpdate
            | State::Updating => {
                let own = self.with_what_it_lacks(member, way);
                updated
                    .chains
                    .push(self.start(member, own.as_ref().unwrap_or(way)));
            }
            State::PreparingDelete | State::Foreign => {}
        }
    }

    /// Moves a pod to `PreparingUpdate`, putting the hook back on it if asked.
    fn hold(&self, member: &Member<'_>, rehook: Option<&LifecycleHook>, reason: &str) -> Chain {
        let labels: Vec<[&str; 2]> = rehook
            .iter()
            .flat_map(|hook| hook.labels_handler.keys().map(|key| ["labels", key.as_str()]))
            .collect();
        let values = rehook.iter().flat_map(|hook| hook.labels_handler.values());
        let mut further: Vec<(&[&str], Value)> = labels
            .iter()
            .map(<[&str; 2]>::as_slice)
            .zip(values.map(|value| value.as_str().into()))
            .collect();
        let finalizers = rehook.map_or(&[][..], |hook| &hook.finalizers_handler);
        if !finalizers.is_empty() {
            further.push((&["finalizers"], json!(finalizers)));
        }
        let next = (Intent::SetLifecycle, State::PreparingUpdate);
        let step = writes::turn(self.observed, member.pod, next, &further, reason.into(), self.now);
        writes::chain(vec![step])
    }

    fn start(&self, member: &Member<'_>, way: &Move) -> Chain {
        let pod = member.pod;
        let revision = self.target;
        let departure = self.outset(way).depart(pod);
        let reason = way.reason.clone();
        let mut steps = Vec::new();
        if let Some(unready) = departure.unready {
            let (intent, part, reason) = (Intent::MarkUnready, Part::Status, reason.clone());
            // The pod's own condition is the kubelet's: it is lowered only where nothing is newer than what was seen.
            steps.push(if unready.set.is_empty() {
                writes::patch(pod, intent, part, unready, reason)
            } else {
                writes::patch_exact(pod, intent, part, unready, reason)
            });
        }
        let named = format!("update pod {} in-place(revision {})", pod.name, revision.name);
        let failed = || writes::failure(&events::FAILED_IN_PLACE, format!("failed to {named}: "));
        // A resize and the write that tells of it are two: late ones, of a manager that leads no more, must not take apart
        // what another one has done since.
        let resizes = departure.resize.is_some() || !way.change.resources.is_empty();
        let resize = departure.resize.map(|resize| {
            let mut step = writes::patch(pod, Intent::ResizePod, Part::Resize, resize, reason.clone());
            step.failed = Some(failed());
            step
        });
        let mut step = writes::patch(pod, Intent::UpdateInPlace, Part::Main, departure.update, reason);
        step.done = Some(writes::event(
            &events::SUCCESSFUL_IN_PLACE,
            format!("successfully {named}"),
        ));
        step.failed = Some(failed());
        let mut change: Vec<Step> = resize.into_iter().chain([step]).collect();
        if is_injected(Bug::ResizeAfterPodWrite) {
            change.reverse();
        }
        steps.extend(change);
        // What containers run is recorded as the snapshot has it, and a new container is the sign that they changed: one
        // that crashed in between would be taken for it.
        let changing = member.state == State::Updating && pod.annotations.get(INPLACE_STATE).is_some();
        if changing || resizes || !way.change.images.is_empty() {
            guard_by_version(&mut steps, pod);
        }
        writes::chain(steps)
    }

    fn recreate(&self, member: &Member<'_>, reason: &str, updated: &mut Updated) {
        let revision = &self.target.name;
        updated.chains.push(remove::recreate(
            self.observed,
            member,
            revision,
            reason,
            self.now,
        ));
    }

    fn warn(&self, member: &Member<'_>, text: String, updated: &mut Updated) {
        let name = &member.pod.name;
        let reason = &events::FAILED_IN_PLACE;
        if !updated.events.iter().any(|event| event.reason == reason) {
            let revision = &self.target.name;
            let message = format!("failed to update pod {name} in-place(revision {revision}): {text}");
            updated.events.push(EventNote { reason, message });
        }
        if self.observed.explain == Explain::Yes {
            let about = name.to_string();
            updated.why.push(Why { about, text });
        }
    }
}

/// A pod held before an update that is no longer wanted (the partition grew, a neighbour took its place) would stay out
/// of service for good: it goes back the way an updated pod does.
pub(super) fn call_off<'m, 'a: 'm>(
    observed: &Observed<'_>,
    spared: impl Iterator<Item = &'m Member<'a>>,
    now: Timestamp,
    updated: &mut Updated,
) {
    for member in spared.filter(|member| member.state == State::PreparingUpdate) {
        let next = ready::after_update(member, observed.set.spec.lifecycle.as_ref());
        let reason = "its update is no longer wanted".to_owned();
        let step = writes::turn(
            observed,
            member.pod,
            (Intent::SetLifecycle, next),
            &[],
            reason,
            now,
        );
        updated.chains.push(writes::chain(vec![step]));
    }
}

/// The first write is right for this version of the pod only, the others for what the one before made of it.
pub(super) fn guard_by_version(steps: &mut [Step], pod: &PodView) {
    let mut guard = Precondition::UidAndVersion(pod.uid.to_string(), pod.resource_version.to_string());
    for step in steps {
        if let Write::Patch { precondition, .. } = &mut step.write {
            *precondition = guard;
        }
        guard = Precondition::VersionFromPreviousStep(pod.uid.to_string());
    }
}

fn describe(change: &Change) -> String {
    let images: Vec<String> = change
        .images
        .iter()
        .map(|(name, image)| format!("{name} to {image}"))
        .collect();
    let resized: Vec<&str> = change.resources.keys().map(String::as_str).collect();
    match (images.is_empty(), resized.is_empty(), !change.read.is_empty()) {
        (false, true, _) => format!("image of {}", images.join(", ")),
        (false, false, _) => format!(
            "image of {}; resources of {}",
            images.join(", "),
            resized.join(", ")
        ),
        (true, false, _) => format!("resources of {}", resized.join(", ")),
        (true, true, true) => "labels or annotations that the environment reads".into(),
        (true, true, false) => "labels or annotations".into(),
    }
}
