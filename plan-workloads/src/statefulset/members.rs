//! Which pods are the set's, and which ordinals they have.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::statefulset::StatefulSet;
use kruise_plan_kit::{
    Memory, ObjectWrites, Owner, Plan, pod_writes,
    rollout::{
        Pod, Revisions,
        released::{self, Hold},
    },
};
use kruise_views::{Phase, PodView};

use super::Ordinals;

/// A pod of the set.
#[derive(Clone, Debug)]
pub(super) struct Member<'a> {
    /// The number in its name.
    pub(super) ordinal: i32,
    /// Its place among the slots; `None` if its ordinal is no slot: the pod is *condemned*.
    pub(super) rank: Option<i64>,
    /// The pod, in any state.
    pub(super) pod: Pod<'a>,
    /// Nobody controls it yet: it is adopted first, and acted on from the next plan on.
    pub(super) orphan: bool,
}

impl Member<'_> {
    /// Has it failed or succeeded?
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.pod.view.phase, Phase::Failed | Phase::Succeeded)
    }

    /// Is it being deleted?
    pub(super) fn is_leaving(&self) -> bool {
        self.pod.view.deleting
    }

    /// Is it in service, and stays there?
    pub(super) fn is_available(&self) -> bool {
        self.is_active() && self.pod.service.is_available()
    }

    /// Can it be acted on: the set's own, neither ended nor being deleted?
    pub(super) fn is_active(&self) -> bool {
        !self.orphan && self.pod.view.is_active()
    }
}

/// The pods of a set.
pub(super) struct Members<'a> {
    /// Those whose ordinals are slots, lowest first.
    pub(super) slots: Vec<Member<'a>>,
    /// The others, highest first.
    pub(super) condemned: Vec<Member<'a>>,
    /// Ordinals of `slots`.
    pub(super) taken: Vec<i32>,
    /// Pods that the set controls and that are not its own: their labels no longer match, or their names are not
    /// such as its pods have. Sorted by name.
    released: Vec<&'a Arc<PodView>>,
}

impl<'a> Members<'a> {
    /// Splits the pods, and classifies them against the revisions.
    pub(super) fn new(
        set: &StatefulSet,
        pods: &'a [Arc<PodView>],
        ordinals: &Ordinals,
        (revisions, min_ready_seconds): (&Revisions<'_>, i32),
        now: Timestamp,
    ) -> Self {
        let mut members = Self {
            slots: Vec::with_capacity(pods.len()),
            condemned: Vec::new(),
            taken: Vec::new(),
            released: Vec::new(),
        };
        for view in pods {
            let orphan = view.controller.is_none();
            let matches = set.spec.selector.matches_by(|key| view.labels.get(key));
            let Some(ordinal) = ordinal_of(&set.metadata.name, &view.name).filter(|_| matches) else {
                if !orphan && !view.deleting {
                    members.released.push(view);
                }
                continue;
            };
            if orphan && view.deleting {
                continue;
            }
            let rank = ordinals.rank(ordinal);
            let member = Member {
                ordinal,
                rank,
                pod: Pod::of(view, revisions, false, min_ready_seconds, now),
                orphan,
            };
            if rank.is_some() {
                members.slots.push(member);
            } else {
                members.condemned.push(member);
            }
        }
        members.slots.sort_by_key(|member| member.ordinal);
        members
            .condemned
            .sort_by_key(|member| std::cmp::Reverse(member.ordinal));
        members.taken = members.slots.iter().map(|member| member.ordinal).collect();
        members.released.sort_by(|a, b| a.name.cmp(&b.name));
        members
    }

    /// All of them, those in slots first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Member<'a>> + Clone {
        self.slots.iter().chain(&self.condemned)
    }

    /// How many slots have no pod.
    pub(super) fn missing(&self, ordinals: &Ordinals) -> i64 {
        ordinals.count() - self.taken.len() as i64
    }

    /// Lets the pods go that are not its own.
    pub(super) fn release(
        &self,
        owner_uid: &str,
        memory: &Memory,
        now: Timestamp,
        plan: &mut Plan,
    ) -> Option<Hold> {
        let reason = "its labels no longer match the selector, or its name is not that of a pod of the set";
        released::release(&self.released, (owner_uid, reason), memory, now, plan)
    }

    /// Makes the set the controller of the pods that nobody controls. Not if the set has gone meanwhile: they would be
    /// deleted with it.
    pub(super) fn adopt(&self, owner: &Owner<'_>) -> impl Iterator<Item = ObjectWrites> {
        let orphans = self.all().filter(|member| member.orphan);
        let reason = "nobody controls it, and it is what the set would create";
        orphans.map(move |member| {
            pod_writes::adopt(member.pod.view, owner, kruise_api::statefulset::RESOURCE, reason)
        })
    }
}

/// The ordinal in the name of a pod of this set; `None` if the set would not name a pod so: `web-01` is not its pod.
pub(super) fn ordinal_of(set: &str, pod: &str) -> Option<i32> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    let canonical = digits.bytes().all(|c| c.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|_| canonical)
}

#[cfg(test)]
mod tests {
    use super::ordinal_of;

    #[test]
    fn only_names_that_the_set_would_give_have_an_ordinal() {
        for (pod, ordinal) in [
            ("web-0", Some(0)),
            ("web-12", Some(12)),
            ("web-2147483647", Some(i32::MAX)),
            ("web-2147483648", None),
            ("web-01", None),
            ("web-+1", None),
            ("web-", None),
            ("web", None),
            ("web-a", None),
            ("web-1-2", None),
            ("web1-2", None),
        ] {
            assert_eq!(ordinal_of("web", pod), ordinal, "{pod}");
        }
    }
}
