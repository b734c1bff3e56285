//! Updating pods, and replacing those whose deletion is asked for by label.
//!
//! A place counts as out of service if its pod is missing, ended, about to go or not available, and while a claim of it
//! grows. Nothing takes an available pod out of service while as many places are as `maxUnavailable` allows. A pod
//! that is out of service does not wait for one that does not go for that reason: it may be what keeps that pod
//! waiting.

use std::collections::BTreeSet;

use kruise_plan_kit::{
    EventNote, Explain, Intent, ObjectWrites, Plan, Why, events,
    lifecycle::State,
    priority,
    rollout::{Pod, Policy, Updater, interrupted, worth_waiting},
};

use super::{decision::Decision, members::Member, resize::Progress};

/// Why a pod that is not among those to be updated stays.
const PARTITION: &str = "stays on its revision: the partition holds it";
/// Why a pod waits that comes after one that its budget keeps.
const KEPT: &str = "waits: a PodUnavailableBudget holds a pod that comes before it";
/// Why a pod waits that comes after one whose successor the API server has not taken.
const UNTRIED: &str = "waits: a pod comes before it whose successor the API server has not said to take";

/// The places that are out of service.
struct Unavailable {
    /// Ordinals of the pods among them.
    pods: BTreeSet<i32>,
    /// Places without a pod.
    missing: i64,
    limit: i64,
    /// Pods that are on their way to the update revision, or begin it in this plan.
    moving: i64,
}

impl Unavailable {
    /// May a pod be updated that others come before, which may not? It has to be out of service, and not more may
    /// change at a time than else: a pod that is starting is not hurried, and a broken revision spreads no faster.
    fn overtakes(&self, member: &Member<'_>) -> bool {
        self.pods.contains(&member.ordinal) && self.moving < self.limit
    }

    fn count(&self) -> i64 {
        self.pods.len() as i64 + self.missing
    }

    /// May this pod be taken out of service, or is it?
    fn allows(&self, member: &Member<'_>) -> bool {
        self.pods.contains(&member.ordinal) || self.count() < self.limit
    }

    fn held(&self) -> String {
        let (count, limit) = (self.count(), self.limit);
        format!("waits: maxUnavailable is reached, {count} pods are out of service and {limit} may be")
    }
}

impl Decision<'_> {
    fn unavailable(&self) -> Unavailable {
        let out =
            |member: &&Member<'_>| !member.is_available() || self.resize.holds(&self.claims, member.ordinal);
        let pods = self.members.slots.iter().filter(out);
        let moving = pods.clone().filter(|member| !self.is_outdated(member));
        Unavailable {
            moving: moving.count() as i64,
            pods: pods.map(|member| member.ordinal).collect(),
            missing: self.members.missing(&self.ordinals),
            limit: i64::from(self.limits.max_unavailable),
        }
    }

    /// Does the pod differ from what a new one would be?
    pub(super) fn is_outdated(&self, member: &Member<'_>) -> bool {
        !member.pod.updated || self.lacks_volume(member)
    }

    /// Is there a claim template that the pod has no volume for? Volumes of a pod cannot change.
    fn lacks_volume(&self, member: &Member<'_>) -> bool {
        self.lacking(member).is_some()
    }

    /// The first such template.
    fn lacking(&self, member: &Member<'_>) -> Option<&str> {
        let has = |name: &str| {
            let mut claims = member.pod.view.claims.iter();
            claims.any(|claim| *claim.volume == *name)
        };
        let mut names = self.claims.templates.iter().map(|template| template.name);
        names.find(|name| !has(name))
    }

    /// Is there a pod to be updated that lacks a volume, or whose claims are not as their templates ask? No
    /// revision says so.
    pub(super) fn is_claim_open(&self) -> bool {
        let open = |member: &&Member<'_>| {
            self.lacks_volume(member) || self.resize.stage(&self.claims, member).is_some()
        };
        let mut candidates = self.candidates().into_iter();
        self.rollout.strategy.held().is_none() && candidates.any(|member| member.is_active() && open(&member))
    }

    /// Replaces pods that are asked to go, and updates those whose turn it is.
    pub(super) fn update(&self, plan: &mut Plan) {
        let rollout = &self.rollout;
        let candidates = self.candidates();
        if let Some(held) = rollout.strategy.held() {
            let outdated = self.members.slots.iter();
            for member in outdated.filter(|member| member.is_active() && self.is_outdated(member)) {
                rollout.explain(plan, &member.pod, held);
                if rollout.strategy.on_delete {
                    plan.writes.extend(rollout.cancel(&member.pod));
                }
            }
            self.return_prepared(&[], plan);
            return;
        }
        let mut unavailable = self.unavailable();
        self.replace_specified(&mut unavailable, plan);
        self.return_prepared(&candidates, plan);
        let changed = self.run(&candidates, &mut unavailable, plan);
        self.leave_others(&candidates, plan);
        if !changed {
            let pods: Vec<Pod<'_>> = self.active_slots().map(|member| member.pod.clone()).collect();
            plan.writes.extend(interrupted::repair(rollout, &pods));
        }
    }

    /// Carries on the pods of an ordered set that wait in a lifecycle state that only an update or a deletion ends.
    /// They are out of service, so nothing new begins.
    pub(super) fn carry_on(&self, plan: &mut Plan) {
        let waits = |member: &&Member<'_>| {
            matches!(
                member.pod.state,
                State::PreparingDelete | State::PreparingUpdate | State::Updated
            )
        };
        let waiting: Vec<&Member<'_>> = self.active_slots().filter(waits).collect();
        if waiting.is_empty() {
            return;
        }
        let rollout = &self.rollout;
        let held = rollout.strategy.held().is_some();
        let candidates = self.candidates();
        let chosen = ordinals_of(if held { &[] } else { &candidates });
        let mut updater = Updater::new(rollout, &rollout.update);
        for member in waiting {
            let settled = member.pod.updated || member.pod.specified;
            match member.pod.state {
                State::PreparingDelete => self.return_one(member, &chosen, &mut updater, plan),
                _ if rollout.strategy.on_delete => plan.writes.extend(rollout.cancel(&member.pod)),
                _ if settled => {}
                _ if rollout.strategy.paused => {
                    if let Some(held) = rollout.strategy.held() {
                        rollout.explain(plan, &member.pod, held);
                    }
                }
                _ if chosen.contains(&member.ordinal) => {
                    self.update_pod(&mut updater, member, plan);
                }
                State::PreparingUpdate => plan.writes.extend(rollout.cancel(&member.pod)),
                _ => {}
            }
        }
    }

    /// Deletes the one pod of an ordered set that everything waits for, if its label asks for it.
    pub(super) fn replace_asked(&self, member: &Member<'_>, plan: &mut Plan) {
        let asked = member.pod.specified && self.rollout.strategy.held().is_none();
        let asked = asked && member.pod.state != State::PreparingDelete;
        if asked && self.rollout.may_remove(&member.pod, plan) {
            let reason = "its deletion is asked for by label";
            plan.writes.extend(self.rollout.remove(&member.pod, reason));
        }
    }

    /// Updates the one pod of an ordered set that everything waits for, if it can change in place, is to be
    /// updated, and nothing is gained by waiting for it: nothing else would ever bring the revision to it that
    /// repairs it. One that would have to be deleted is left to its users, as OpenKruise does.
    pub(super) fn repair_in_place(&self, member: &Member<'_>, plan: &mut Plan) {
        let rollout = &self.rollout;
        let waits = matches!(
            member.pod.state,
            State::PreparingDelete | State::PreparingUpdate | State::Updated | State::Foreign
        );
        let is_due = self.is_outdated(member) && ordinals_of(&self.candidates()).contains(&member.ordinal);
        if waits || member.pod.specified || rollout.strategy.held().is_some() || !is_due {
            return;
        }
        let Some(left) = worth_waiting(&member.pod, rollout.now) else {
            return;
        };
        let mut updater = Updater::new(rollout, &rollout.update);
        let in_place = !self.lacks_volume(member) && updater.is_in_place(&member.pod);
        if !in_place {
            rollout.explain(plan, &member.pod, self.deletion_advice(member));
            return;
        }
        if !left.is_zero() {
            plan.requeue_after([left]);
            let text =
                "is not up to date, and is updated in place if it is not ready within ten minutes, or fails";
            rollout.explain(plan, &member.pod, text);
            return;
        }
        let grows = !self.resize.fits(&self.claims, member.ordinal);
        if !grows && updater.may_update(&member.pod, plan) {
            self.update_pod(&mut updater, member, plan);
        }
    }

    /// What helps where an ordered set waits for a pod that only a deletion updates.
    fn deletion_advice(&self, member: &Member<'_>) -> String {
        let name = &member.pod.view.name;
        if self.rollout.strategy.policy == Policy::InPlaceOnly {
            return "is not in service, and cannot be updated in place: the policy is InPlaceOnly".to_owned();
        }
        format!(
            "is not in service, and an OrderedReady set waits for it: if it does not become ready, delete {name}, and it \
             comes back up to date"
        )
    }

    fn active_slots(&self) -> impl Iterator<Item = &Member<'_>> {
        self.members.slots.iter().filter(|member| member.is_active())
    }

    /// Deletes pods that carry the label that asks for it, the highest first.
    fn replace_specified(&self, unavailable: &mut Unavailable, plan: &mut Plan) {
        let asked = self.members.slots.iter().rev();
        for member in asked.filter(|member| member.is_active() && member.pod.specified) {
            if !unavailable.allows(member) {
                self.rollout.explain(plan, &member.pod, unavailable.held());
                continue;
            }
            if !self.rollout.may_remove(&member.pod, plan) {
                continue;
            }
            let reason = "its deletion is asked for by label";
            plan.writes.extend(self.rollout.remove(&member.pod, reason));
            unavailable.pods.insert(member.ordinal);
        }
    }

    /// Pods held before deletion whose places stay.
    fn return_prepared(&self, candidates: &[&Member<'_>], plan: &mut Plan) {
        let prepared = |member: &&Member<'_>| {
            member.pod.state == State::PreparingDelete
                && !(member.pod.specified && self.rollout.strategy.held().is_none())
        };
        let chosen = ordinals_of(candidates);
        let mut updater = Updater::new(&self.rollout, &self.rollout.update);
        for member in self.active_slots().filter(prepared) {
            self.return_one(member, &chosen, &mut updater, plan);
        }
    }

    /// Deletes a pod whose hook lets it go: its place is refilled. One that is held returns to service, unless it
    /// is still to be replaced.
    fn return_one(
        &self,
        member: &Member<'_>,
        chosen: &BTreeSet<i32>,
        updater: &mut Updater<'_>,
        plan: &mut Plan,
    ) {
        let rollout = &self.rollout;
        let asked = member.pod.specified && rollout.strategy.held().is_none();
        if !rollout.is_held(&member.pod) {
            if rollout.may_remove(&member.pod, plan) {
                let reason = "its preDelete hook let it go";
                plan.writes.extend(rollout.remove(&member.pod, reason));
            }
        } else if asked || (chosen.contains(&member.ordinal) && self.is_to_be_recreated(member, updater)) {
            let text = "leaves as soon as its preDelete hook lets it";
            rollout.explain(plan, &member.pod, text);
        } else {
            let next = (Intent::SET_LIFECYCLE, State::Normal);
            let step = rollout.enter(&member.pod, next, &[], "its deletion is no longer wanted");
            plan.writes.push(ObjectWrites::of_pod(vec![step]));
        }
    }

    fn is_to_be_recreated(&self, member: &Member<'_>, updater: &mut Updater<'_>) -> bool {
        self.rollout.strategy.policy != Policy::InPlaceOnly
            && self.is_outdated(member)
            && (self.lacks_volume(member) || !updater.is_in_place(&member.pod))
    }

    /// The pods that are to be on the update revision, in the order in which they change.
    pub(super) fn candidates(&self) -> Vec<&Member<'_>> {
        let partition = i64::from(self.limits.partition);
        let descending = self.members.slots.iter().rev();
        let rolling = self.set.spec.update_strategy.rolling_update.as_ref();
        let unordered = rolling.and_then(|rolling| rolling.unordered_update.as_ref());
        let Some(unordered) = unordered else {
            let is_in = |member: &&Member<'_>| member.rank.is_some_and(|rank| rank >= partition);
            return descending.filter(is_in).collect();
        };
        let held_counts = self.options.preparing_update_as_update;
        let done = |member: &&Member<'_>| {
            member.is_leaving()
                || member.pod.updated
                || (held_counts && member.pod.state == State::PreparingUpdate)
        };
        let (mut chosen, mut rest): (Vec<&Member<'_>>, Vec<&Member<'_>>) = descending.partition(done);
        if let Some(strategy) = &unordered.priority_strategy {
            priority::prioritise(&mut rest, |member| &member.pod.view.labels, strategy);
        }
        let first = chosen.len();
        chosen.append(&mut rest);
        let wanted = i64::from(self.limits.replicas) - partition - self.missing_updated();
        chosen.truncate(usize::try_from(wanted).unwrap_or(0));
        // Which pods the partition keeps does not depend on refusals, which may be old.
        if let Some(rest) = chosen.get_mut(first..) {
            self.rollout.put_refused_last(rest, |member| member.pod.view);
        }
        chosen
    }

    /// Updates candidates while the limit allows. Says whether anything was changed.
    fn run(&self, candidates: &[&Member<'_>], unavailable: &mut Unavailable, plan: &mut Plan) -> bool {
        let before = plan.writes.len();
        let mut updater = Updater::new(&self.rollout, &self.rollout.update);
        let (mut held, mut is_kept) = (None, false);
        // One event of each kind is enough: what keeps one pod keeps the others.
        let (mut told, mut stuck) = (false, false);
        for &member in candidates {
            let outdated = self.is_outdated(member);
            if !outdated && self.resize.fits(&self.claims, member.ordinal) {
                continue;
            }
            if held.is_none() && !unavailable.allows(member) {
                held = Some(unavailable.held());
            }
            // One that was prepared is out of service, and only its update ends that: others may wait for it.
            let prepared = member.is_active() && member.pod.state == State::PreparingUpdate;
            let goes = prepared || unavailable.overtakes(member);
            if let Some(held) = held.as_ref().filter(|_| !goes) {
                self.rollout.explain(plan, &member.pod, held.as_str());
                continue;
            }
            let events = plan.events.len();
            if !self.claims_follow(member, unavailable, plan) {
                if stuck {
                    plan.events.truncate(events);
                }
                stuck |= plan.events.len() > events;
                continue;
            }
            let settled = member.pod.specified || !member.is_active();
            if !outdated || settled || member.pod.state == State::PreparingDelete {
                continue;
            }
            // A pod that its budget keeps is waited for, but not by those that are out of service: they may be what
            // the budget waits for.
            if is_kept && !unavailable.pods.contains(&member.ordinal) {
                let untried = self.rollout.trying.holds();
                self.rollout
                    .explain(plan, &member.pod, if untried { UNTRIED } else { KEPT });
                continue;
            }
            if !self.may_update(&mut updater, member, plan) {
                is_kept = true;
                continue;
            }
            let events = plan.events.len();
            if self.update_pod(&mut updater, member, plan) {
                unavailable.pods.insert(member.ordinal);
                unavailable.moving += 1;
            } else {
                if told {
                    plan.events.truncate(events);
                }
                told = true;
            }
        }
        plan.writes.len() > before
    }

    /// Are the claims of a pod as their templates ask? They grow before the pod is updated.
    fn claims_follow(&self, member: &Member<'_>, unavailable: &mut Unavailable, plan: &mut Plan) -> bool {
        match self.resize.progress(&self.claims, member) {
            Progress::Complete => return true,
            Progress::Grows(steps) => {
                let objects = steps.into_iter().map(|step| ObjectWrites::of_pod(vec![step]));
                plan.writes.extend(objects);
                self.rollout
                    .explain(plan, &member.pod, "waits until its claims have grown");
            }
            Progress::Stuck(note) => {
                plan.why
                    .push(Why::new(&*member.pod.view.name, note.message.clone()));
                plan.events.push(note);
                return false;
            }
        }
        unavailable.pods.insert(member.ordinal);
        false
    }

    /// May a pod be updated: does its budget let it, and does the server take what comes in its place?
    fn may_update(&self, updater: &mut Updater<'_>, member: &Member<'_>, plan: &mut Plan) -> bool {
        if self.lacks_volume(member) {
            let is_recreated = self.rollout.strategy.policy != Policy::InPlaceOnly;
            let revision = &self.rollout.update.name;
            return !is_recreated || self.rollout.may_recreate(&member.pod, revision, plan);
        }
        updater.may_update(&member.pod, plan)
    }

    /// Updates a pod, in place where the change allows; false if it cannot be updated.
    fn update_pod(&self, updater: &mut Updater<'_>, member: &Member<'_>, plan: &mut Plan) -> bool {
        let rollout = &self.rollout;
        let pod = &member.pod;
        let Some(lacking) = self.lacking(member) else {
            let able = updater.able(vec![pod], plan);
            let is_able = !able.is_empty();
            updater.run(able, plan);
            return is_able;
        };
        let name = &pod.view.name;
        if rollout.strategy.policy == Policy::InPlaceOnly {
            let text =
                format!("it lacks the volume of claim template {lacking}, and the policy is InPlaceOnly");
            let message = format!(
                "failed to update pod {name} in-place(revision {}): {text}",
                rollout.update.name
            );
            plan.events
                .push(EventNote::new(&events::FAILED_IN_PLACE, message));
            rollout.explain(plan, pod, text);
            return false;
        }
        let reason = format!("it lacks the volume of claim template {lacking}, and volumes cannot change");
        plan.writes
            .extend(rollout.recreate(pod, &rollout.update.name, &reason));
        true
    }

    /// Takes pods that are not to be updated any more out of the state before an update, and explains them.
    fn leave_others(&self, candidates: &[&Member<'_>], plan: &mut Plan) {
        let chosen = ordinals_of(candidates);
        for member in self
            .active_slots()
            .filter(|member| !chosen.contains(&member.ordinal))
        {
            if !member.pod.updated && !member.pod.specified {
                plan.writes.extend(self.rollout.cancel(&member.pod));
                if self.rollout.explain == Explain::Yes {
                    self.rollout.explain(plan, &member.pod, PARTITION);
                }
            }
        }
    }
}

pub(super) fn ordinals_of(members: &[&Member<'_>]) -> BTreeSet<i32> {
    members.iter().map(|member| member.ordinal).collect()
}
