//! Giving each node the pods that it should have, whatever their revisions.

use std::time::Duration;

use kruise_plan_kit::{Explain, Plan, Why, fit::may_be_news, injected::is_injected};

use super::{
    create::NewPods,
    creations::WITHHELD,
    decision::Decision,
    events,
    places::{Member, Place},
    steps::{BURST, Kind, Steps},
};

/// The longest interval between replacements of pods that end on a node.
const LONGEST: Duration = Duration::from_mins(15);

impl Decision<'_> {
    /// Creates and deletes pods. Returns how many nodes get no pod because of the partition.
    pub(super) fn manage<'d>(
        &'d self,
        new_pods: &NewPods<'_>,
        steps: &mut Steps<'d>,
        plan: &mut Plan,
    ) -> usize {
        let mut replaced = Vec::new();
        for place in &self.places.all {
            if place.placed.is_none() {
                self.clear_unknown(place, steps, plan);
            } else if !place.keeps() {
                for member in own(place) {
                    self.remove(
                        place,
                        member,
                        "pods of the set may not run on its node",
                        steps,
                        plan,
                    );
                }
            } else if self.tidy(place, steps, plan) {
                replaced.push(place);
            }
        }
        let creations = self.creations(new_pods);
        let due = creations
            .due
            .into_iter()
            .map(|place| (place, "its node has no pod"));
        let replaced = replaced
            .into_iter()
            .map(|place| (place, "its node has no running pod"));
        let mut missing: Vec<_> = due.chain(replaced).collect();
        // A node whose pod the server refuses keeps no other one waiting.
        missing.sort_by_key(|(place, _)| self.is_refused(new_pods, place));
        for (place, reason) in missing {
            self.create(new_pods, place, reason, steps, plan);
        }
        if self.rollout.explain == Explain::Yes {
            let withheld = creations.withheld.iter();
            plan.why
                .extend(withheld.map(|place| Why::of_node(place.name, WITHHELD)));
        }
        creations.withheld.len()
    }

    /// Creates a pod for a node, unless the plan creates enough.
    pub(super) fn create<'d>(
        &'d self,
        new_pods: &NewPods<'_>,
        place: &Place<'d>,
        reason: &str,
        steps: &mut Steps<'d>,
        plan: &mut Plan,
    ) {
        if steps.has_room(Kind::Create) {
            steps.take(Kind::Create, place.name);
            plan.writes.push(new_pods.create(place.name, reason));
        } else if self.rollout.explain == Explain::Yes {
            plan.why.push(Why::of_node(place.name, BURST));
        }
    }

    /// Deletes a pod, or holds it for its hook, unless the plan deletes enough or the budget of the pod keeps it.
    /// Says whether it did.
    fn remove<'d>(
        &'d self,
        place: &Place<'d>,
        member: &Member<'_>,
        reason: &str,
        steps: &mut Steps<'d>,
        plan: &mut Plan,
    ) -> bool {
        if !steps.has_room(Kind::Delete) {
            self.rollout.explain(plan, &member.pod, BURST);
            return false;
        }
        if !self.rollout.may_remove(&member.pod, plan) {
            return false;
        }
        let Some(object) = self.rollout.remove(&member.pod, reason) else {
            let text = "leaves as soon as its preDelete hook lets it";
            self.rollout.explain(plan, &member.pod, text);
            return false;
        };
        steps.take(Kind::Delete, place.name);
        plan.writes.push(object);
        true
    }

    /// Deletes pods that wait for a node that does not exist. Those that were bound to one are collected with it.
    fn clear_unknown<'d>(&'d self, place: &Place<'d>, steps: &mut Steps<'d>, plan: &mut Plan) {
        let waiting = own(place).filter(|member| member.pod.view.node.is_none());
        for member in waiting {
            if let Some(left) = may_be_news(member.pod.view, self.rollout.now) {
                plan.requeue_after([left]);
                continue;
            }
            self.remove(place, member, "its node does not exist", steps, plan);
        }
    }

    /// Deletes the pods of a node that have ended, that a hook has let go, or that are too many. Says whether the
    /// node needs a new pod beside those that it has.
    fn tidy<'d>(&'d self, place: &Place<'d>, steps: &mut Steps<'d>, plan: &mut Plan) -> bool {
        let mut running = Vec::new();
        let mut blocked = place.members.iter().any(|member| member.orphan);
        for member in own(place) {
            if member.has_ended() {
                blocked = true;
                self.replace_ended(place, member, steps, plan);
            } else if member.is_prepared() {
                self.remove(place, member, "its preDelete hook let it go", steps, plan);
            } else {
                running.push(member);
            }
        }
        if is_injected("SurplusKept") {
            return false;
        }
        if self.limits.max_surge == 0 {
            for member in running.into_iter().skip(1) {
                self.remove(
                    place,
                    member,
                    "another pod of the set is on its node",
                    steps,
                    plan,
                );
            }
            return false;
        }
        if running.is_empty() {
            return place.is_eligible() && !place.members.is_empty() && !blocked;
        }
        self.thin_out(place, &running, steps, plan);
        false
    }

    /// With surge an old and a new pod may be there, until the new one is available.
    fn thin_out<'d>(
        &'d self,
        place: &Place<'d>,
        running: &[&Member<'_>],
        steps: &mut Steps<'d>,
        plan: &mut Plan,
    ) {
        let mut sides = [None, None];
        for &member in running {
            match sides.get_mut(usize::from(member.pod.updated)) {
                Some(side @ None) => *side = Some(member),
                _ => {
                    self.remove(
                        place,
                        member,
                        "another pod of the set is on its node",
                        steps,
                        plan,
                    );
                }
            }
        }
        let [Some(old), Some(new)] = sides else { return };
        if !old.pod.service.is_ready() {
            self.remove(
                place,
                old,
                "it is not ready, and its successor is there",
                steps,
                plan,
            );
        } else if new.is_available() {
            self.remove(place, old, "its successor is available", steps, plan);
        } else {
            let text = "stays until its successor is available";
            self.rollout.explain(plan, &old.pod, text);
        }
    }

    /// Deletes a pod that has ended, at growing intervals.
    fn replace_ended<'d>(
        &'d self,
        place: &Place<'d>,
        member: &Member<'_>,
        steps: &mut Steps<'d>,
        plan: &mut Plan,
    ) {
        // Another specification is another attempt.
        let key = format!("{}/{}", self.set.metadata.generation, place.name);
        if let Some(left) = self.back_off(&key) {
            plan.requeue_after([left]);
            let seconds = left.as_secs_f32().ceil();
            let text =
                format!("has failed, as pods before it on its node did, and is replaced in {seconds} s");
            self.rollout.explain(plan, &member.pod, text);
            return;
        }
        if self.remove(place, member, "it has failed", steps, plan) {
            plan.attempts.push(key);
            plan.events.push(events::failed_pod(member.pod.view, place.name));
        }
    }

    /// How long nothing is tried after the attempts so far.
    fn back_off(&self, key: &str) -> Option<Duration> {
        self.memory.attempts.get(key)?.left(LONGEST, self.rollout.now)
    }
}

/// The set's own pods for a node that are not being deleted.
fn own<'m, 'a>(place: &'m Place<'a>) -> impl Iterator<Item = &'m Member<'a>> {
    let members = place.members.iter();
    members.filter(|member| !member.is_leaving() && !member.orphan)
}
