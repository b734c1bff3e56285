//! Updating pods to the newest revision where the new pod of a node is created before the old one is deleted.

use std::collections::BTreeSet;

use kruise_plan_kit::{Plan, injected::is_injected};

use super::{create::NewPods, decision::Decision, steps::Steps, update::outdated};

impl<'p> Decision<'p> {
    /// Creates new pods beside old ones. Old pods whose successors are available are deleted where each node is
    /// given the pods that it should have.
    pub(super) fn surge<'d>(
        &'d self,
        allowed: &BTreeSet<&str>,
        new_pods: &NewPods<'_>,
        steps: &mut Steps<'d>,
        plan: &mut Plan,
    ) where
        'p: 'd,
    {
        let (mut broken, mut candidates, mut surging) = (Vec::new(), Vec::new(), 0_i64);
        for place in self.places.eligible().rev() {
            if let Some(outdated) = outdated(place, allowed, steps) {
                let is_ready = outdated.member.pod.service.is_ready();
                if is_ready { &mut candidates } else { &mut broken }.push(outdated);
                continue;
            }
            let (old, new) = place.sides();
            let waits = match (old.as_slice(), new.as_slice()) {
                // An old pod whose successor is available is deleted by now, unless something keeps it.
                ([old], [new]) => {
                    let goes = new.is_available() && steps.has_touched(place.name);
                    !old.is_prepared() && !goes
                }
                (old, new) => old.len() > 1 || new.len() > 1,
            };
            surging += i64::from(waits);
        }
        for outdated in broken {
            let reason = "the template changed, and the pod on its node is not ready";
            self.create(new_pods, outdated.place, reason, steps, plan);
        }
        candidates.sort_by_key(|outdated| self.is_refused(new_pods, outdated.place));
        let mut limit = i64::from(self.limits.max_surge);
        if is_injected("SurgeUnbounded") {
            limit = i64::MAX;
        }
        let room = usize::try_from(limit - surging)
            .unwrap_or(0)
            .min(candidates.len());
        let others = candidates.split_off(room);
        for outdated in candidates {
            let reason = "the template changed";
            self.create(new_pods, outdated.place, reason, steps, plan);
        }
        let held = format!("waits: maxSurge is reached, and {limit} nodes may have an old and a new pod");
        for outdated in others {
            self.rollout.explain(plan, &outdated.member.pod, held.as_str());
        }
    }
}
