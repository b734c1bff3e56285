//! Updating pods to the newest revision where an old pod makes room for the new one.

use std::collections::BTreeSet;

use kruise_api::{meta::LabelSelector, names::IN_PLACE_UPDATE_READY};
use kruise_plan_kit::{
    EventNote, Plan, Why, events,
    injected::is_injected,
    rollout::{Pod, Updater, interrupted},
};

use super::{
    create::NewPods,
    decision::Decision,
    places::{Member, Place},
    steps::{BURST, Kind, Steps},
};

/// Why an old pod stays.
const PARTITION: &str = "stays on its revision: the partition holds it";
/// Why an old pod stays.
const NOT_SELECTED: &str = "stays on its revision: rollingUpdate.selector does not match its node";
/// Why an old pod stays.
const NO_SUCCESSOR: &str = "stays on its revision: a new pod could not be created on its node";

/// A node whose only living pod is an old one that may be updated, and that pod.
#[derive(Clone, Copy)]
pub(super) struct Outdated<'d> {
    pub(super) place: &'d Place<'d>,
    pub(super) member: &'d Member<'d>,
}

impl<'p> Decision<'p> {
    /// Updates old pods as far as the limits allow.
    pub(super) fn update<'d>(&'d self, new_pods: &NewPods<'_>, steps: &mut Steps<'d>, plan: &mut Plan)
    where
        'p: 'd,
    {
        if let Some(held) = self.rollout.strategy.held() {
            for (_, member) in self.old() {
                self.rollout.explain(plan, &member.pod, held);
            }
            return;
        }
        if let Some(problem) = self.selector_problem() {
            plan.why
                .push(Why::of_set(format!("no pod is updated: {problem}")));
            plan.events.push(EventNote::new(&events::INVALID_SPEC, problem));
            return;
        }
        let before = plan.writes.len();
        let allowed = self.allowed();
        if self.limits.max_surge > 0 {
            self.surge(&allowed, new_pods, steps, plan);
        } else {
            self.replace_old(&allowed, steps, plan);
        }
        self.explain_others(&allowed, plan);
        if plan.writes.len() == before {
            let pods: Vec<Pod<'_>> = self.active().collect();
            plan.writes.extend(interrupted::repair(&self.rollout, &pods));
        }
    }

    /// The living pods of older revisions, with their nodes.
    pub(super) fn old(&self) -> impl Iterator<Item = (&Place<'p>, &Member<'p>)> {
        self.places.all.iter().flat_map(|place| {
            let old = place.living().filter(|member| !member.pod.updated);
            old.map(move |member| (place, member))
        })
    }

    fn selector(&self) -> Option<&'p LabelSelector> {
        self.set
            .spec
            .update_strategy
            .rolling_update
            .as_ref()?
            .selector
            .as_ref()
    }

    /// Why the selector of nodes is of no use.
    pub(super) fn selector_problem(&self) -> Option<String> {
        let value = serde_json::to_value(self.selector()?).unwrap_or_default();
        let found = kube_schema::validate::selector(&value, "rollingUpdate.selector");
        let error = found.first()?;
        Some(format!("the selector of nodes cannot be read: {error}"))
    }

    fn is_selected(&self, place: &Place<'_>) -> bool {
        if is_injected("NodeSelectorIgnored") {
            return true;
        }
        let labels = place.placed.map(|placed| &placed.node.labels);
        self.selector()
            .is_none_or(|selector| selector.matches_by(|key| labels?.get(key)))
    }

    /// The nodes whose pods may be updated: those that are or are becoming up to date, then others from the last
    /// name on, but for as many as the partition keeps.
    pub(super) fn allowed(&self) -> BTreeSet<&str> {
        let (mut updated, mut updating, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for place in self.places.eligible().rev() {
            let (old, new) = place.sides();
            if !new.is_empty() || old.len() > 1 {
                updated.push(place.name);
            } else if old.iter().all(|member| member.is_prepared()) {
                updating.push(place.name);
            } else if self.is_selected(place) {
                others.push(place.name);
            }
        }
        let mut count = self.limits.desired.saturating_sub(self.limits.partition);
        if is_injected("NodePartitionOffByOne") {
            count = count.saturating_add(1);
        }
        let all = updated.into_iter().chain(updating).chain(others);
        all.take(usize::try_from(count).unwrap_or(0)).collect()
    }

    /// Replaces old pods, or updates them in place. Pods that their budgets keep do not take the place of others.
    fn replace_old<'d>(&'d self, allowed: &BTreeSet<&str>, steps: &mut Steps<'d>, plan: &mut Plan)
    where
        'p: 'd,
    {
        // Those that are not ready serve nobody. Those that became Ready lately may be all there are.
        let (mut broken, mut young, mut available) = (Vec::new(), Vec::new(), Vec::new());
        let mut unavailable: i64 = self.uncounted_elsewhere();
        for place in self.places.eligible().rev() {
            match outdated(place, allowed, steps) {
                Some(outdated) if outdated.member.is_young() => young.push(outdated),
                Some(outdated) if outdated.member.is_available() => available.push(outdated),
                Some(outdated) => {
                    unavailable += 1;
                    broken.push(outdated);
                }
                None => unavailable += i64::from(!place.is_served() || place.living().count() > 1),
            }
        }
        for outdated in [&mut broken, &mut young, &mut available] {
            self.rollout
                .put_refused_last(outdated, |outdated| outdated.member.pod.view);
        }
        let mut limit = i64::from(self.limits.max_unavailable);
        if is_injected("NodesUnavailableOffByOne") {
            limit += 1;
        }
        let mut updater = Updater::new(&self.rollout, &self.rollout.update);
        for outdated in broken {
            self.change(outdated, &mut updater, steps, plan);
        }
        let mut waiting = Vec::new();
        let mut room = limit - unavailable;
        unavailable += young.len() as i64;
        for outdated in young {
            if room <= 0 {
                waiting.push(outdated);
            } else if self.change(outdated, &mut updater, steps, plan) {
                room -= 1;
            }
        }
        for outdated in available {
            if unavailable >= limit {
                waiting.push(outdated);
            } else if self.change(outdated, &mut updater, steps, plan) {
                unavailable += 1;
            }
        }
        let held = format!(
            "waits: maxUnavailable is reached, {unavailable} nodes lack an available pod and {limit} may"
        );
        for outdated in waiting {
            self.rollout.explain(plan, &outdated.member.pod, held.as_str());
        }
    }

    /// Nodes that should have no pod, have one nevertheless, and lack an available one. Unless they are left out.
    fn uncounted_elsewhere(&self) -> i64 {
        let is_counted = |place: &&Place<'_>| {
            place.placed.is_some() && !place.is_eligible() && !place.members.is_empty() && !place.is_served()
        };
        if self.options.prune_ineligible {
            return 0;
        }
        self.places.all.iter().filter(is_counted).count() as i64
    }

    /// Updates a pod in place where that is asked for and possible, or else deletes it, unless the plan does
    /// enough. False if its budget keeps the pod, or the server takes no successor.
    fn change<'d>(
        &'d self,
        Outdated { place, member }: Outdated<'d>,
        updater: &mut Updater<'_>,
        steps: &mut Steps<'d>,
        plan: &mut Plan,
    ) -> bool {
        let (rollout, pod) = (&self.rollout, &member.pod);
        let has_gate = pod.view.has_gate(IN_PLACE_UPDATE_READY);
        let in_place = has_gate && updater.is_in_place(pod) && !is_injected("InPlaceForgotten");
        let kind = if in_place { Kind::Update } else { Kind::Delete };
        if !steps.has_room(kind) {
            rollout.explain(plan, pod, BURST);
            return true;
        }
        let may_go = if in_place {
            updater.may_update(pod, plan)
        } else {
            rollout.may_recreate(pod, &rollout.update.name, plan)
        };
        if !may_go {
            return false;
        }
        let before = plan.writes.len();
        if in_place {
            let able = updater.able(vec![pod], plan);
            updater.run(able, plan);
        } else {
            let reason = match rollout.strategy.policy.is_in_place() {
                true if !has_gate => {
                    "the template changed, and it lacks the readiness gate of updates in place"
                }
                true => "the template changed in a way that needs a new pod",
                false => "the template changed",
            };
            plan.writes
                .extend(rollout.recreate(pod, &rollout.update.name, reason));
        }
        if plan.writes.len() > before {
            steps.take(kind, place.name);
        }
        true
    }

    /// Explains the old pods that are not among those to be updated.
    fn explain_others(&self, allowed: &BTreeSet<&str>, plan: &mut Plan) {
        for (place, member) in self.old() {
            let text = if !place.is_eligible() {
                NO_SUCCESSOR
            } else if allowed.contains(place.name) {
                continue;
            } else if self.is_selected(place) {
                PARTITION
            } else {
                NOT_SELECTED
            };
            self.rollout.explain(plan, &member.pod, text);
        }
    }
}

/// The only living pod of a node, if that is an old one of the set's own that may be updated.
pub(super) fn outdated<'d>(
    place: &'d Place<'d>,
    allowed: &BTreeSet<&str>,
    steps: &Steps<'_>,
) -> Option<Outdated<'d>> {
    let (old, new) = place.sides();
    let [member] = old.as_slice() else { return None };
    let may = new.is_empty() && !member.is_prepared() && !member.orphan;
    (may && allowed.contains(place.name) && !steps.has_touched(place.name))
        .then_some(Outdated { place, member })
}
