//! Changing pods to the update revision.

use std::{cell::OnceCell, collections::BTreeMap, rc::Rc, sync::Arc};

use jiff::Timestamp;
use kruise_api::{
    cloneset::LifecycleHook,
    names::{INPLACE_GRACE, INPLACE_STATE, REVISION_HASH},
};
use kruise_plan_kit::{
    Chain, EventKind, EventNote, Intent, Part, Precondition, Step, Why, Write,
    inplace::{self, Change, NotInPlace, RevisionLabels},
    lifecycle::{self, State},
    order::{Candidate, sort_for_update},
    put,
    revision::Revision,
};
use kruise_views::{PodView, RevisionView};
use serde_json::{Value, json};

use super::{
    create,
    history::Revisions,
    members::{Member, Side},
    numbers::Numbers,
    observe::{Explain, Observed},
    priority, ready, remove, writes,
};

/// What updating does.
#[derive(Default)]
pub(super) struct Updated {
    pub(super) chains: Vec<Chain>,
    pub(super) events: Vec<EventNote>,
    pub(super) why: Vec<Why>,
}

pub(super) fn update(
    observed: &Observed<'_>,
    revisions: &Revisions,
    history: &[Arc<RevisionView>],
    members: &[Member<'_>],
    numbers: Numbers,
    now: Timestamp,
) -> Updated {
    let mut updated = Updated::default();
    let waiting = members.iter().filter(|member| member.side == Side::Old);
    if let Some(held) = strategy_holds(observed) {
        explain(observed, waiting, held, &mut updated);
        if observed.set.spec.update_strategy.kind == "OnDelete" {
            let spared = members.iter().filter(|member| member.side == Side::Old);
            call_off(observed, spared, now, &mut updated);
        }
        return updated;
    }
    let mut mover = Mover {
        observed,
        revisions,
        history,
        diffs: BTreeMap::new(),
        now,
    };
    let candidates = candidates(observed, members);
    let spared = candidates
        .iter()
        .skip(usize::try_from(numbers.update).unwrap_or(0));
    call_off(observed, spared.copied(), now, &mut updated);
    let able = mover.able(candidates, numbers, &mut updated);
    let (chosen, limit) = choose(&able, members, numbers);
    if observed.explain == Explain::Yes {
        let rest = able
            .iter()
            .copied()
            .filter(|member| !chosen.iter().any(|chosen| chosen.pod.name == member.pod.name));
        explain(observed, rest, &limit, &mut updated);
    }
    mover.run(chosen, &mut updated);
    updated
}

/// A pod held before an update that is no longer wanted (the partition grew, a neighbour took its place) would stay out
/// of service for good: it goes back the way an updated pod does.
fn call_off<'m, 'a: 'm>(
    observed: &Observed<'_>,
    spared: impl Iterator<Item = &'m Member<'a>>,
    now: Timestamp,
    updated: &mut Updated,
) {
    for member in spared.filter(|member| member.state == State::PreparingUpdate) {
        let next = ready::after_update(member, observed.set.spec.lifecycle.as_ref());
        let patch = json!({"metadata": next.metadata(now)});
        let reason = "its update is no longer wanted".to_owned();
        let step = writes::patch(member.pod, Intent::SetLifecycle, Part::Main, patch, reason);
        updated.chains.push(writes::chain(vec![step]));
    }
}

fn strategy_holds(observed: &Observed<'_>) -> Option<&'static str> {
    let strategy = &observed.set.spec.update_strategy;
    if strategy.kind == "OnDelete" {
        return Some("not updated: the strategy is OnDelete");
    }
    strategy
        .rolling_update
        .as_ref()
        .is_some_and(|rolling| rolling.paused)
        .then_some("not updated: the update is paused")
}

fn explain<'m>(
    observed: &Observed<'_>,
    members: impl Iterator<Item = &'m Member<'m>>,
    text: &str,
    updated: &mut Updated,
) {
    if observed.explain == Explain::Yes {
        updated.why.extend(members.map(|m| Why {
            about: m.pod.name.to_string(),
            text: text.to_owned(),
        }));
    }
}

/// Old pods that may change, in the order in which they should.
fn candidates<'m, 'a>(observed: &Observed<'_>, members: &'m [Member<'a>]) -> Vec<&'m Member<'a>> {
    let eligible: Vec<&Member<'_>> = members
        .iter()
        .filter(|member| {
            member.side == Side::Old && member.state != State::PreparingDelete && !member.specified
        })
        .filter(|member| {
            member.state == State::Updated || member.pod.annotations.get(INPLACE_GRACE).is_none()
        })
        .collect();
    let mut order: Vec<Candidate<'_>> = eligible
        .iter()
        .map(|member| Candidate {
            pod: member.pod,
            service: member.service,
        })
        .collect();
    sort_for_update(&mut order);
    let by_name: BTreeMap<&str, &Member<'_>> = eligible
        .iter()
        .map(|member| (&*member.pod.name, *member))
        .collect();
    let mut sorted: Vec<&Member<'_>> = order
        .iter()
        .filter_map(|candidate| by_name.get(&*candidate.pod.name).copied())
        .collect();
    if let Some(rolling) = &observed.set.spec.update_strategy.rolling_update {
        if let Some(strategy) = &rolling.priority_strategy {
            priority::prioritise(&mut sorted, strategy);
        }
        sorted = priority::scatter(sorted, members, &rolling.scatter_strategy);
    }
    sorted.sort_by_key(|member| member.state != State::PreparingUpdate);
    sorted
}

/// Takes candidates while the limits allow; says in plain words which limit ended it.
fn choose<'m, 'a>(
    candidates: &[&'m Member<'a>],
    members: &[Member<'_>],
    numbers: Numbers,
) -> (Vec<&'m Member<'a>>, String) {
    let limit = numbers.update_max_unavailable;
    let unavailable = |side: Option<Side>| {
        let out = |m: &&Member<'_>| !m.service.is_available() && side.is_none_or(|side| m.side == side);
        members.iter().filter(out).count() as i32
    };
    let on_target = unavailable(Some(Side::New));
    let mut out = unavailable(None);
    let mut chosen: Vec<&Member<'_>> = Vec::new();
    for member in candidates
        .iter()
        .take(usize::try_from(numbers.update).unwrap_or(0))
    {
        let spent = on_target + chosen.len() as i32 >= limit;
        if spent || (member.service.is_available() && out >= limit) {
            let text =
                format!("waits: maxUnavailable is reached, {out} pods are out of service and {limit} may be");
            return (chosen, text);
        }
        out += i32::from(member.service.is_available());
        chosen.push(member);
    }
    (chosen, "stays on its revision: the partition holds it".to_owned())
}

struct Mover<'o, 'a> {
    observed: &'o Observed<'a>,
    revisions: &'o Revisions,
    history: &'o [Arc<RevisionView>],
    diffs: BTreeMap<String, Rc<Result<Change, NotInPlace>>>,
    now: Timestamp,
}

impl Mover<'_, '_> {
    fn policy(&self) -> &str {
        let rolling = self.observed.set.spec.update_strategy.rolling_update.as_ref();
        rolling.map_or("", |rolling| rolling.pod_update_policy.as_str())
    }

    /// Leaves out the candidates that cannot move, so that they take nobody's turn. The first is reported.
    fn able<'m, 'a>(
        &mut self,
        candidates: Vec<&'m Member<'a>>,
        numbers: Numbers,
        updated: &mut Updated,
    ) -> Vec<&'m Member<'a>> {
        if numbers.update <= 0 || !matches!(self.policy(), "InPlaceIfPossible" | "InPlaceOnly") {
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
        match &*self.change(member) {
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

    fn run(mut self, chosen: Vec<&Member<'_>>, updated: &mut Updated) {
        let in_place = matches!(self.policy(), "InPlaceIfPossible" | "InPlaceOnly");
        for member in chosen {
            if !in_place {
                self.recreate(member, "the template changed and the policy is ReCreate", updated);
                continue;
            }
            match &*self.change(member) {
                Ok(change) => self.change_in_place(member, change, updated),
                Err(blocked) => {
                    let reason = format!("{} cannot change in place", blocked.path);
                    self.recreate(member, &reason, updated);
                }
            }
        }
    }

    fn change(&mut self, member: &Member<'_>) -> Rc<Result<Change, NotInPlace>> {
        let label = member.pod.labels.get(REVISION_HASH).unwrap_or_default();
        if let Some(known) = self.diffs.get(label) {
            return Rc::clone(known);
        }
        let old = self
            .history
            .iter()
            .find(|view| writes::on_revision(member.pod, &view.name));
        let result = match old.and_then(|view| Revision::stored(view)) {
            None => Err(NotInPlace {
                path: "its revision is gone, so the difference".into(),
            }),
            Some(old) => inplace::diff(
                &go_compat::pod_template::canonical_pod_template(&old.template),
                &go_compat::pod_template::canonical_pod_template(&self.revisions.update.template),
            ),
        };
        let result = Rc::new(result);
        self.diffs.insert(label.to_owned(), Rc::clone(&result));
        result
    }

    fn change_in_place(&self, member: &Member<'_>, change: &Change, updated: &mut Updated) {
        let hook = self
            .observed
            .set
            .spec
            .lifecycle
            .as_ref()
            .and_then(|l| l.in_place_update.as_ref());
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
                updated.chains.push(self.start(member, change, hook.is_some()));
            }
            State::PreparingDelete | State::Foreign => {}
        }
    }

    /// Moves a pod to `PreparingUpdate`, putting the hook back on it if asked.
    fn hold(&self, member: &Member<'_>, rehook: Option<&LifecycleHook>, reason: &str) -> Chain {
        let mut metadata = State::PreparingUpdate.metadata(self.now);
        if let Some(hook) = rehook {
            for (key, value) in &hook.labels_handler {
                put(&mut metadata, &["labels", key], value.as_str().into());
            }
            if !hook.finalizers_handler.is_empty() {
                put(&mut metadata, &["finalizers"], json!(hook.finalizers_handler));
            }
        }
        let patch = json!({"metadata": metadata});
        let step = writes::patch(member.pod, Intent::SetLifecycle, Part::Main, patch, reason.into());
        writes::chain(vec![step])
    }

    fn start(&self, member: &Member<'_>, change: &Change, hooked: bool) -> Chain {
        let pod = member.pod;
        let revision = &self.revisions.update;
        let labels = RevisionLabels {
            name: &revision.name,
            label: create::revision_label(self.observed, revision),
            hash: &revision.hash,
        };
        let mut departure = inplace::start(pod, change, labels, self.now);
        if !change.restarts() && !hooked {
            stay_in_service(&mut departure.update);
        }
        let reason = describe(change);
        let mut steps = Vec::new();
        if let Some(unready) = departure.unready {
            steps.push(writes::patch(
                pod,
                Intent::MarkUnready,
                Part::Status,
                unready,
                reason.clone(),
            ));
        }
        let mut step = writes::patch(pod, Intent::UpdateInPlace, Part::Main, departure.update, reason);
        step.done = Some(writes::normal(
            "SuccessfulUpdatePodInPlace",
            format!(
                "successfully update pod {} in-place(revision {})",
                pod.name, revision.name
            ),
        ));
        step.failed = Some(writes::failure(
            "FailedUpdatePodInPlace",
            format!(
                "failed to update pod {} in-place(revision {}): ",
                pod.name, revision.name
            ),
        ));
        steps.push(step);
        // The image ids recorded are those of the snapshot. While an earlier update may still be changing them, a
        // change in between would make the record a lie.
        if member.state == State::Updating && pod.annotations.get(INPLACE_STATE).is_some() {
            guard_by_version(&mut steps, pod);
        }
        writes::chain(steps)
    }

    fn recreate(&self, member: &Member<'_>, reason: &str, updated: &mut Updated) {
        let revision = &self.revisions.update.name;
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
        let reason = "FailedUpdatePodInPlace";
        if !updated.events.iter().any(|event| event.reason == reason) {
            let revision = &self.revisions.update.name;
            let message = format!("failed to update pod {name} in-place(revision {revision}): {text}");
            let kind = EventKind::Warning;
            updated.events.push(EventNote {
                kind,
                reason,
                message,
            });
        }
        if self.observed.explain == Explain::Yes {
            let about = name.to_string();
            updated.why.push(Why { about, text });
        }
    }
}

fn guard_by_version(steps: &mut [Step], pod: &PodView) {
    let mut guard = Precondition::UidAndVersion(pod.uid.to_string(), pod.resource_version.to_string());
    for step in steps {
        if let Write::Patch { precondition, .. } = &mut step.write {
            *precondition = guard;
        }
        guard = Precondition::VersionFromPreviousStep(pod.uid.to_string());
    }
}

/// A change that restarts nothing needs no `Updating` phase: the pod never leaves service.
fn stay_in_service(update: &mut Value) {
    use kruise_api::names::{LIFECYCLE_STATE, LIFECYCLE_TIMESTAMP};
    for (map, key) in [("labels", LIFECYCLE_STATE), ("annotations", LIFECYCLE_TIMESTAMP)] {
        if let Some(map) = update
            .pointer_mut(&format!("/metadata/{map}"))
            .and_then(Value::as_object_mut)
        {
            map.remove(key);
        }
    }
}

fn describe(change: &Change) -> String {
    let images: Vec<String> = change
        .images
        .iter()
        .map(|(name, image)| format!("{name} to {image}"))
        .collect();
    match (images.is_empty(), change.environment) {
        (false, _) => format!("image of {}", images.join(", ")),
        (true, true) => "labels or annotations that the environment reads".into(),
        (true, false) => "labels or annotations".into(),
    }
}

/// Parses each revision once, when first asked for.
pub(super) struct Templates<'a> {
    history: &'a [Arc<RevisionView>],
    parsed: Vec<OnceCell<Option<Revision>>>,
}

impl<'a> Templates<'a> {
    pub(super) fn new(history: &'a [Arc<RevisionView>]) -> Self {
        Self {
            history,
            parsed: history.iter().map(|_| OnceCell::new()).collect(),
        }
    }

    /// The revision that a pod's label names.
    pub(super) fn by_label(&self, label: &str) -> Option<&Revision> {
        let index = self
            .history
            .iter()
            .position(|view| go_compat::revision::label_matches_revision(label, &view.name))?;
        let view = self.history.get(index)?;
        self.parsed
            .get(index)?
            .get_or_init(|| Revision::stored(view))
            .as_ref()
    }
}
