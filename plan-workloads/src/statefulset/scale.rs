//! Filling empty places, and removing pods beyond the ordinals.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kruise_plan_kit::{
    Explain, Intent, ObjectWrites, Plan, Step, Target, Why, injected::is_injected, lifecycle::State,
    pod_writes,
};
use kruise_views::{Phase, PodView};

use super::{
    claims::Obstacle, create::NewPods, decision::Decision, events, identity, members::Member,
    revisions::Returning,
};

/// Most pods that one plan creates, about 5 MB of it: a slip of the pen in `replicas` must not cost the manager its
/// memory. The pods themselves bring the next plan.
const MOST: usize = 5000;

/// A pod that ended is not replaced before it is this old: one that ends at once, on a node that refuses it, would
/// be made anew as fast as the API allows.
const YOUNG: Duration = Duration::from_secs(10);

/// May later steps begin something new?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Yes.
    Go,
    /// Nothing else begins: an ordered set waits for what is under way.
    Wait,
}

impl Decision<'_> {
    /// Gives pods that nothing else is done to what they are known by, pods that wait for claims these, and the
    /// claims of pods that stay their owners. A claim whose place stays must not go with its pod: where that is
    /// deleted, the claim gets its owners first.
    pub(super) fn repair(&self, plan: &mut Plan) {
        let written: BTreeSet<Target> = targets(plan).cloned().collect();
        let mut deleted = deletions(plan);
        let staying = self.members.slots.iter();
        for member in staying.filter(|member| !member.is_leaving() && !member.orphan) {
            let view = member.pod.view;
            let target = pod_writes::target(view);
            if member.is_active() && !written.contains(&target) {
                let with_index = self.options.index_label;
                plan.writes
                    .extend(identity::repair(&self.rollout.owner, member, with_index));
                if view.phase == Phase::Pending {
                    let steps = self.claims.for_waiting_pod(member.ordinal, &view.name);
                    plan.writes.extend(of_claims(steps));
                }
            }
            let Some(retention) = self.retention else {
                continue;
            };
            let mut steps = retention.repair(&self.claims, member);
            // A claim that is about to grow has its turn in the next plan.
            steps.retain(|step| !written.contains(step.write.target()));
            let deletion = deleted.remove(&target);
            match deletion.and_then(|index| plan.writes.get_mut(index)) {
                Some(object) => {
                    steps.append(&mut object.steps);
                    object.steps = steps;
                }
                None => plan.writes.extend(of_claims(steps)),
            }
        }
    }

    /// Fills empty places, and deletes pods that ended.
    pub(super) fn fill(&self, new_pods: &NewPods<'_>, plan: &mut Plan) -> Next {
        let without = i64::from(self.limits.replicas) - self.ordinals.count();
        if without > 0 {
            let text = format!("reserveOrdinals leaves no ordinal for {without} pods");
            plan.events.push(events::no_ordinal(&self.rollout.owner, &text));
            plan.why.push(Why::of_set(text));
        }
        if self.limits.ordered {
            return self.fill_in_order(new_pods, plan);
        }
        for member in self.members.slots.iter().filter(|member| member.has_ended()) {
            self.replace(member, plan);
        }
        let limit = self.limits.scale_max_unavailable;
        let room = limit.filter(|_| !is_injected("ScaleBudgetIgnored")).map(|limit| {
            let charged =
                |member: &&Member<'_>| !member.is_available() && !member.has_ended() && !member.is_leaving();
            let charged = self.members.slots.iter().filter(charged).count();
            usize::try_from(limit).unwrap_or(0).saturating_sub(charged)
        });
        let mut made = 0;
        for (ordinal, old) in self.refused_last() {
            if made >= room.unwrap_or(MOST).min(MOST) {
                break;
            }
            made += usize::from(self.create(new_pods, ordinal, old, plan));
        }
        if let Some(room) = room
            && i64::try_from(room).is_ok_and(|room| self.members.missing(&self.ordinals) > room)
        {
            let text = format!(
                "{} pods are missing, {room} may be created now: scaleStrategy.maxUnavailable",
                self.members.missing(&self.ordinals)
            );
            plan.why.push(Why::of_set(text));
        }
        Next::Go
    }

    /// The places without pods, and whether each comes back on the current revision: lowest first, but last those whose
    /// pods the server refused, so that they keep no other waiting.
    fn refused_last(&self) -> Vec<(i32, bool)> {
        let mut returning = self.returning();
        let missing = self.ordinals.missing(&self.members.taken).take(MOST);
        let mut all: Vec<(i32, bool)> = missing
            .map(|ordinal| (ordinal, returning.takes(ordinal, &self.ordinals)))
            .collect();
        if !self.refused_names.is_empty() {
            let is_refused = |ordinal| {
                self.refused_names
                    .contains(&format!("{}-{ordinal}", self.rollout.owner.name))
            };
            all.sort_by_cached_key(|(ordinal, _)| (is_refused(*ordinal), *ordinal));
        }
        all
    }

    /// The lowest place that is empty or out of service decides what happens in an ordered set.
    fn fill_in_order(&self, new_pods: &NewPods<'_>, plan: &mut Plan) -> Next {
        let unavailable = self.members.slots.iter().find(|member| !member.is_available());
        let missing = self.ordinals.missing(&self.members.taken).next();
        let lowest = unavailable.filter(|member| missing.is_none_or(|missing| member.ordinal < missing));
        if lowest.is_some() || missing.is_some() {
            self.carry_on(plan);
        }
        if let Some(member) = lowest {
            let (name, others) = (&member.pod.view.name, self.members.missing(&self.ordinals));
            if member.has_ended() {
                self.replace(member, plan);
            } else if member.is_active() {
                self.replace_asked(member, plan);
                self.repair_in_place(member, plan);
            }
            if others > 0 {
                let text = format!("{others} pods are missing, and are created in order: {name} comes first");
                plan.why.push(Why::of_set(text));
            }
            return Next::Wait;
        }
        let Some(ordinal) = missing else {
            return Next::Go;
        };
        let old = self.returning().takes(ordinal, &self.ordinals);
        self.create(new_pods, ordinal, old, plan);
        Next::Wait
    }

    fn returning(&self) -> Returning {
        Returning::of(
            self.set,
            self.limits,
            &self.members,
            self.options.preparing_update_as_update,
        )
    }

    /// How many of the missing pods come on the update revision.
    pub(super) fn missing_updated(&self) -> i64 {
        self.returning().updated_of(self.members.missing(&self.ordinals))
    }

    /// Creates the pod of a place, if nothing is in the way.
    fn create(&self, new_pods: &NewPods<'_>, ordinal: i32, old: bool, plan: &mut Plan) -> bool {
        let owner = &self.rollout.owner;
        let name = format!("{}-{ordinal}", owner.name);
        if let Some((other, why)) = self.foreign_pod(&name) {
            if !other.deleting {
                plan.events.push(events::not_created(owner, &name, &why));
            }
            plan.why.push(Why::new(name, format!("is not created: {why}")));
            return false;
        }
        match new_pods.create(ordinal, old) {
            Ok(object) => {
                plan.writes.push(object);
                true
            }
            Err(Obstacle::Leaves(why)) => {
                plan.why.push(Why::new(name, why));
                false
            }
            Err(Obstacle::Foreign(why)) => {
                plan.events.push(events::not_created(owner, &name, &why));
                plan.why.push(Why::new(name, format!("is not created: {why}")));
                false
            }
        }
    }

    /// A pod of somebody else that has this name, and whose it is.
    fn foreign_pod(&self, name: &str) -> Option<(Arc<PodView>, String)> {
        let other = (self.find_pod)(name).filter(|pod| !self.is_own(&pod.uid))?;
        let why = match &other.controller {
            Some(owner) => format!("{} {} has a pod of this name", owner.kind, owner.name),
            None => "there is a pod of this name that is not the set's".to_owned(),
        };
        Some((other, why))
    }

    /// How many places cannot be filled because pods or claims of others have their names, and an example.
    pub(super) fn blocked(&self) -> Option<(usize, String)> {
        let missing = self.ordinals.missing(&self.members.taken).take(MOST);
        let mut blocked = missing.filter_map(|ordinal| {
            let name = format!("{}-{ordinal}", self.rollout.owner.name);
            let pod = self.foreign_pod(&name).map(|(_, why)| why);
            let why = pod.or_else(|| match self.claims.for_new_pod(ordinal, &name) {
                Err(Obstacle::Foreign(why)) => Some(why),
                Err(Obstacle::Leaves(_)) | Ok(_) => None,
            })?;
            Some(format!("{name}: {why}"))
        });
        let first = blocked.next()?;
        Some((1 + blocked.count(), first))
    }

    fn is_own(&self, uid: &str) -> bool {
        self.members.all().any(|member| *member.pod.view.uid == *uid)
    }

    /// Deletes a pod that ended, so that its place is filled again.
    fn replace(&self, member: &Member<'_>, plan: &mut Plan) {
        let view = member.pod.view;
        if member.is_leaving() || member.orphan {
            return;
        }
        let age = view
            .created
            .map(|created| self.rollout.now.duration_since(created));
        let age = age.and_then(|age| Duration::try_from(age).ok()).unwrap_or(YOUNG);
        if let Some(left) = YOUNG.checked_sub(age).filter(|left| !left.is_zero()) {
            plan.requeue_after([left]);
            let text = "has ended, and is replaced a little later: it ended as soon as it was made";
            self.rollout.explain(plan, &member.pod, text);
            return;
        }
        plan.writes.extend(
            self.rollout
                .remove(&member.pod, "it has ended, and its place is refilled"),
        );
    }

    /// Removes the pods whose ordinals are no slots.
    pub(super) fn remove_condemned(&self, plan: &mut Plan) -> Next {
        let mut own: Vec<&Member<'_>> = self.members.condemned.iter().collect();
        own.retain(|member| !member.orphan);
        let busy = self.members.all().any(Member::is_leaving);
        let turn = self.next_condemned(&own);
        for member in &own {
            if member.is_leaving() {
                // It left for another reason: nobody has given it its claims.
                plan.writes.extend(of_claims(self.claims_of_condemned(member)));
                continue;
            }
            let goes = !self.limits.ordered || (!busy && turn == Some(member.ordinal));
            self.remove(member, goes, plan);
        }
        // One that is adopted now goes before any update, too.
        if self.limits.ordered && !self.members.condemned.is_empty() {
            Next::Wait
        } else {
            Next::Go
        }
    }

    /// Whose turn it is in an ordered set: a pod that is prepared, of several one that its hook lets go, else the
    /// highest. Pods become condemned in any order.
    fn next_condemned(&self, own: &[&Member<'_>]) -> Option<i32> {
        let rank = |member: &&&Member<'_>| match member.pod.state {
            State::PreparingDelete if self.rollout.is_held(&member.pod) => 1,
            State::PreparingDelete => 0,
            _ => 2,
        };
        let staying = own.iter().filter(|member| !member.is_leaving());
        staying.min_by_key(rank).map(|member| member.ordinal)
    }

    /// Gives the claims of a condemned pod their owners and, if it `goes` now, deletes it.
    fn remove(&self, member: &Member<'_>, goes: bool, plan: &mut Plan) {
        let mut steps = self.claims_of_condemned(member);
        let reason = "its ordinal is not one of the set's any more";
        let object = if !goes {
            self.rollout
                .explain(plan, &member.pod, "is to go, when the pods before it are gone");
            None
        } else if self.rollout.may_remove(&member.pod, plan) {
            self.rollout.remove(&member.pod, reason)
        } else {
            None
        };
        if goes && object.is_none() && member.pod.state == State::PreparingDelete {
            self.rollout.explain(
                plan,
                &member.pod,
                "is to go as soon as its preDelete hook lets it",
            );
        }
        match object {
            Some(mut object) => {
                steps.append(&mut object.steps);
                plan.writes.push(ObjectWrites { steps, ..object });
            }
            None => plan.writes.extend(of_claims(steps)),
        }
    }

    /// Gives the claims of a pod that is to go the owners that the policy asks for.
    fn claims_of_condemned(&self, member: &Member<'_>) -> Vec<Step> {
        self.retention
            .map_or_else(Vec::new, |retention| retention.repair(&self.claims, member))
    }

    /// One line of explanation for each place that is empty and not filled now, as far as there are pods to explain.
    pub(super) fn explain_missing(&self, plan: &mut Plan) {
        if self.rollout.explain == Explain::No {
            return;
        }
        let created: BTreeSet<String> = targets(plan).map(|target| target.name.clone()).collect();
        let explained: BTreeSet<String> = plan.why.iter().map(|why| why.about.clone()).collect();
        for ordinal in self.ordinals.missing(&self.members.taken).take(MOST) {
            let name = format!("{}-{ordinal}", self.rollout.owner.name);
            if !created.contains(&name) && !explained.contains(&name) {
                plan.why
                    .push(Why::new(name, "is missing, and its turn comes later"));
            }
        }
    }
}

fn targets(plan: &Plan) -> impl Iterator<Item = &Target> {
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    steps.map(|step| step.write.target())
}

/// Where the deletions of pods are among the plan's writes.
fn deletions(plan: &Plan) -> BTreeMap<Target, usize> {
    let objects = plan.writes.iter().enumerate();
    let all = objects.flat_map(|(index, object)| object.steps.iter().map(move |step| (index, &step.write)));
    let deletions = all.filter(|(_, write)| write.intent() == Intent::DELETE_POD);
    deletions
        .map(|(index, write)| (write.target().clone(), index))
        .collect()
}

/// Each claim is an object of its own.
fn of_claims(steps: Vec<Step>) -> impl Iterator<Item = ObjectWrites> {
    steps.into_iter().map(|step| ObjectWrites::of_pod(vec![step]))
}
