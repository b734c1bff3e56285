//! Pods without their sidecars are told, and made again by their owners where the set asks for that.
//!
//! Only pods whose owner makes another one in their place are removed, each for the version of it that was looked at, and
//! no more at once than `maxUnavailable` leaves: every pod of the set that is not ready counts, and so does one that is
//! gone and not made again yet. Until a pod of an owner has come back with its sidecars one is tried at a time, and each
//! try in vain doubles the wait for the next.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use go_compat::{IntOrString, Rounding};
use jiff::Timestamp;
use kruise_api::names::{APPS_GROUP, RECREATE_UNINJECTED, SPECIFIED_DELETE};
use kruise_plan_kit::{
    EventNote, Intent, Part, Plan, Precondition, Resource, Step, Target, Why, Write,
    availability::{Service, service},
    events,
};
use kruise_views::PodView;
use serde_json::json;

use crate::{
    member::{FRESH, Member, left},
    observe::{Explain, Observed},
    repairs::{Owned, Repairs},
    upgrade::{Guard, chain, patch},
};

/// How long a pod without sidecars is left alone if none of its owner's came back with them: an API server may go by an
/// older configuration of webhooks still.
const SETTLE: Duration = Duration::from_secs(30);

/// The pods of each owner that has pods without their sidecars, or had.
pub(crate) fn owners<'p>(
    members: &'p [Member<'_>],
    uninjected: &'p [&Arc<PodView>],
    repairs: &'p Repairs,
) -> BTreeMap<&'p str, Owned<'p>> {
    let uid = |pod: &'p PodView| pod.controller.as_ref().map(|owner| &*owner.uid);
    let of_pods = uninjected.iter().filter_map(|pod| uid(pod));
    let mut owners: BTreeMap<&str, Owned<'_>> = of_pods
        .chain(repairs.owners())
        .map(|owner| (owner, Owned::default()))
        .collect();
    for pod in uninjected {
        if let Some(owned) = uid(pod).and_then(|owner| owners.get_mut(owner)) {
            owned.without.push(pod);
        }
    }
    for member in members {
        if let Some(owned) = uid(member.pod).and_then(|owner| owners.get_mut(owner)) {
            owned.with.push(member.pod);
        }
    }
    owners
}

/// Everything about pods without their sidecars.
pub(crate) struct Repair<'r> {
    pub(crate) members: &'r [Member<'r>],
    pub(crate) uninjected: &'r [&'r Arc<PodView>],
    pub(crate) owners: &'r BTreeMap<&'r str, Owned<'r>>,
    /// Pods in service that the plan upgrades.
    pub(crate) upgraded: usize,
}

/// Pods that are out of service for a repair and that no look at pods in service shows.
pub(crate) fn on_their_way(
    observed: &Observed<'_>,
    owners: &BTreeMap<&str, Owned<'_>>,
    now: Timestamp,
) -> usize {
    let missing = |(owner, owned): (&&str, &Owned<'_>)| observed.repairs.unreplaced(owner, owned, now);
    owners.iter().map(missing).sum()
}

/// Tells of the pods without sidecars, and removes those that may go now.
pub(crate) fn repair(observed: &Observed<'_>, all: &Repair<'_>, plan: &mut Plan, now: Timestamp) {
    if all.uninjected.is_empty() {
        return;
    }
    plan.events.push(EventNote {
        reason: &events::UNINJECTED,
        message: format!(
            "{} pod(s) that this SidecarSet is for were made without its sidecars",
            all.uninjected.len()
        ),
    });
    let mut round = Round {
        observed,
        all,
        now,
        out: out(observed, all, now),
        limit: limit(observed, all),
        tried: Vec::new(),
        requeue: None,
    };
    let mut candidates: Vec<&Arc<PodView>> = all.uninjected.to_vec();
    candidates.sort_by_key(|pod| serves(pod, now));
    for pod in candidates {
        let text = match round.verdict(pod) {
            Ok(()) => {
                round.out += usize::from(serves(pod, now));
                round.tried.push(uid_of_owner(pod));
                plan.chains.push(chain(vec![removal(pod)]));
                continue;
            }
            Err(why) => why,
        };
        if observed.explain == Explain::Yes {
            plan.why.push(Why {
                about: format!("{}/{}", pod.namespace, pod.name),
                text: format!("is without the sidecars: {text}"),
            });
        }
    }
    plan.requeue = plan.requeue.into_iter().chain(round.requeue).min();
}

struct Round<'r> {
    observed: &'r Observed<'r>,
    all: &'r Repair<'r>,
    now: Timestamp,
    /// Pods out of service.
    out: usize,
    limit: usize,
    /// Owners of the pods that go.
    tried: Vec<&'r str>,
    requeue: Option<Duration>,
}

impl<'r> Round<'r> {
    /// May this pod go now? If not, why.
    fn verdict(&mut self, pod: &'r PodView) -> Result<(), String> {
        let set = self.observed.set;
        let Some(owner) = pod.controller.as_ref().filter(|owner| &*owner.kind != "Node") else {
            return Err("nothing would make it again".to_owned());
        };
        if !pod.restarts_always {
            return Err("it runs to an end, and would begin anew".to_owned());
        }
        if set
            .metadata
            .annotations
            .get(RECREATE_UNINJECTED)
            .map(String::as_str)
            != Some("true")
        {
            return Err(format!(
                "annotation {RECREATE_UNINJECTED}: \"true\" of the set would have it made again"
            ));
        }
        if set.spec.update_strategy.paused {
            return Err("upgrades are paused, and this with them".to_owned());
        }
        if is_asked_to_go(pod) {
            return Err("its CloneSet has been asked to replace it".to_owned());
        }
        self.patience(pod, &owner.uid)?;
        if serves(pod, self.now) && self.out >= self.limit {
            return Err(format!(
                "waits: maxUnavailable is reached, {} pods are out of service and {} may be",
                self.out, self.limit
            ));
        }
        Ok(())
    }

    /// Is it of use to try now?
    fn patience(&mut self, pod: &PodView, owner: &'r str) -> Result<(), String> {
        let Some(owned) = self.all.owners.get(owner) else {
            return Err("nothing would make it again".to_owned());
        };
        let since = |pod: &PodView, long| pod.created.and_then(|created| left(created, long, self.now));
        if owned.is_injected_again() {
            return match since(pod, FRESH) {
                Some(left) => self.later(left, "waits: it has just been made"),
                None => Ok(()),
            };
        }
        let asked = owned.without.iter().any(|pod| is_asked_to_go(pod));
        let under_way = asked || self.observed.repairs.unreplaced(owner, owned, self.now) > 0;
        if under_way || self.tried.contains(&owner) {
            return Err("waits until another pod of its owner is back with its sidecars".to_owned());
        }
        let newest = owned.without.iter().max_by_key(|pod| pod.created);
        let settling = newest.and_then(|pod| since(pod, SETTLE));
        let waits = self.observed.repairs.wait(owner, self.now);
        match settling.into_iter().chain(waits).max() {
            Some(left) => self.later(left, "waits: pods of its owner are still made without sidecars"),
            None => Ok(()),
        }
    }

    fn later(&mut self, left: Duration, why: &str) -> Result<(), String> {
        self.requeue = self.requeue.into_iter().chain([left]).min();
        Err(why.to_owned())
    }
}

fn limit(observed: &Observed<'_>, all: &Repair<'_>) -> usize {
    let one = IntOrString::Int(1);
    let limit = observed.set.spec.update_strategy.max_unavailable.as_ref();
    let pods = all.members.len() + all.uninjected.len();
    let limit = limit.unwrap_or(&one).scaled_b(pods as i32, Rounding::Up);
    limit.max(0) as usize
}

/// All pods of the set that are not in service, whoever took them out, and those that are on their way back.
fn out(observed: &Observed<'_>, all: &Repair<'_>, now: Timestamp) -> usize {
    let members = all
        .members
        .iter()
        .filter(|member| !member.ready || !member.consistent);
    let others = all
        .uninjected
        .iter()
        .filter(|pod| !serves(pod, now) || is_asked_to_go(pod));
    members.count() + others.count() + all.upgraded + on_their_way(observed, all.owners, now)
}

fn serves(pod: &PodView, now: Timestamp) -> bool {
    service(pod, 0, now) == Service::Available
}

fn is_asked_to_go(pod: &PodView) -> bool {
    pod.labels.get(SPECIFIED_DELETE).is_some()
}

fn uid_of_owner(pod: &PodView) -> &str {
    pod.controller.as_ref().map_or("", |owner| &*owner.uid)
}

/// A CloneSet is asked to replace its pod, within its own limits and after its hooks; other owners notice.
fn removal(pod: &PodView) -> Step {
    let reason = "it was made without the sidecars that it should have".to_owned();
    let is_of_cloneset =
        |owner: &kruise_views::OwnerView| &*owner.kind == "CloneSet" && &*owner.group == APPS_GROUP;
    if pod.controller.as_deref().is_some_and(is_of_cloneset) {
        let body = json!({"metadata": {"labels": {SPECIFIED_DELETE: "true"}}});
        return patch(pod, Intent::RequestDelete, Part::Main, body, Guard::Seen, reason);
    }
    let write = Write::Delete {
        intent: Intent::DeletePod,
        target: Target {
            resource: Resource::Pods,
            namespace: pod.namespace.to_string(),
            name: pod.name.to_string(),
        },
        precondition: Precondition::UidAndVersion(pod.uid.to_string(), pod.resource_version.to_string()),
    };
    Step {
        write,
        reason,
        done: None,
        failed: None,
    }
}
