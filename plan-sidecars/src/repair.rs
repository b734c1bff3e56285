//! Uninjected pods: an event reports them, and their owners recreate them where the set asks for that.
//!
//! Only pods whose owner makes another one in their place are removed, each in the version that was read, and
//! no more at once than `maxUnavailable` leaves: every pod of the set that is not ready counts, and so does one that is
//! gone and not made again yet. Until a pod of an owner has come back with its sidecars one is tried at a time, each
//! try in vain doubles the wait for the next, and after [`TRIES`] of them the owner is left alone until the set is
//! edited. An owner that did not make a pod again in time is left alone until it makes one.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use go_compat::{IntOrString, Rounding};
use jiff::Timestamp;
use kruise_api::names::sidecarset::RECREATE_UNINJECTED;
use kruise_api::names::{APPS_GROUP, SPECIFIED_DELETE};
use kruise_plan_kit::{
    EventNote, Explain, Intent, ObjectWrites, Part, Plan, Step, Why,
    availability::{Service, service},
    ledger::{Ask, Operation},
    pod_writes::{self, Guard},
    sidecars::{is_in_list, names},
};
use kruise_views::{OwnerView, PodView};
use serde_json::{Value, json};

use crate::reasons;
use crate::{
    pod::{FRESH, Pod, left},
    repairs::{Owned, Repairs, SETTLE, is_asked_to_go},
    snapshot::Snapshot,
    uninjected,
    upgrade::patch,
};

/// So many tries in vain are enough: something keeps the owner's pods away from the webhook.
const TRIES: u32 = 5;

/// The pods of each owner that has pods without their sidecars, or had.
pub(crate) fn owners<'p>(
    snapshot: &Snapshot<'p>,
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
    if owners.is_empty() {
        return owners;
    }
    // Pods that were injected by the set as it was count, too, whatever it would inject now.
    let name = &snapshot.set.metadata.name;
    let has = |pod: &PodView| {
        let list = pod.annotations.get(names::INJECTED_LIST).unwrap_or_default();
        pod.is_active() && is_in_list(list, name)
    };
    let injected: &'p [Arc<PodView>] = snapshot.pods;
    for pod in injected.iter().filter(|pod| has(pod)) {
        if let Some(owned) = uid(pod).and_then(|owner| owners.get_mut(owner)) {
            owned.with.push(pod);
        }
    }
    owners
}

/// Everything about pods without their sidecars.
pub(crate) struct Repair<'r> {
    pub(crate) pods: &'r [Pod<'r>],
    pub(crate) uninjected: &'r [&'r Arc<PodView>],
    pub(crate) owners: &'r BTreeMap<&'r str, Owned<'r>>,
    /// Pods in service that the plan upgrades.
    pub(crate) upgraded: usize,
    /// Pods that are [`on_their_way`].
    pub(crate) gone: usize,
    /// What the plan charges to budgets.
    pub(crate) charges: &'r dyn Ask,
}

/// Pods that are out of service for a repair and that are not among the pods of the snapshot: those that an owner
/// is yet to make again, and those that were on their way out already when this memory of repairs began.
pub(crate) fn on_their_way(
    snapshot: &Snapshot<'_>,
    owners: &BTreeMap<&str, Owned<'_>>,
    spec: &Value,
    now: Timestamp,
) -> usize {
    let repairs = snapshot.repairs;
    let missing = |(owner, owned): (&&str, &Owned<'_>)| repairs.unreplaced(owner, owned, now).lately;
    let leaving = if repairs.knows_those_leaving(now) {
        0
    } else {
        let leaving = uninjected::leaving(snapshot, spec);
        leaving.iter().filter(|uid| repairs.was_leaving(uid)).count()
    };
    leaving + owners.iter().map(missing).sum::<usize>()
}

/// Reports the uninjected pods, and removes those that may be recreated now.
pub(crate) fn repair(snapshot: &Snapshot<'_>, all: &Repair<'_>, plan: &mut Plan, now: Timestamp) {
    if all.uninjected.is_empty() {
        return;
    }
    plan.events
        .push(EventNote::new(&reasons::UNINJECTED, summary(snapshot, all)));
    let mut round = Round {
        snapshot,
        all,
        now,
        out: out(all, now),
        gone: all.gone + all.uninjected.iter().filter(|pod| is_asked_to_go(pod)).count(),
        limit: limit(snapshot, all),
        tried: Vec::new(),
        requeue: None,
    };
    let mut candidates: Vec<&Arc<PodView>> = all.uninjected.to_vec();
    candidates.sort_by_key(|pod| serves(pod, now));
    for pod in candidates {
        let text = match round.verdict(pod) {
            Ok(()) => {
                round.out += usize::from(serves(pod, now));
                round.gone += 1;
                round.tried.push(uid_of_owner(pod));
                plan.writes.push(ObjectWrites::of_pod(vec![removal(pod)]));
                continue;
            }
            Err(why) => why,
        };
        if snapshot.explain == Explain::Yes {
            let about = format!("{}/{}", pod.namespace, pod.name);
            plan.why
                .push(Why::new(about, format!("is without the sidecars: {text}")));
        }
    }
    plan.requeue_after(round.requeue);
}

/// Text of the event.
fn summary(snapshot: &Snapshot<'_>, all: &Repair<'_>) -> String {
    let generation = snapshot.set.metadata.generation;
    let is_given_up = |owner: &&&str| snapshot.repairs.tries(owner, generation) >= TRIES;
    let given_up = all.owners.keys().filter(is_given_up).count();
    let mut text = format!(
        "{} pod(s) that this SidecarSet is for were made without its sidecars",
        all.uninjected.len()
    );
    if given_up > 0 {
        let more = format!(
            "; {given_up} owner(s) made them without again and again, and are left alone until the set is edited"
        );
        text.push_str(&more);
    }
    text
}

struct Round<'r> {
    snapshot: &'r Snapshot<'r>,
    all: &'r Repair<'r>,
    now: Timestamp,
    /// Pods out of service.
    out: usize,
    /// Those of them that are being made again, or were asked to go.
    gone: usize,
    limit: usize,
    /// Owners of the pods that go.
    tried: Vec<&'r str>,
    requeue: Option<Duration>,
}

impl<'r> Round<'r> {
    /// May this pod go now? If not, why.
    fn verdict(&mut self, pod: &'r PodView) -> Result<(), String> {
        let set = self.snapshot.set;
        let Some(owner) = pod.controller.as_ref().filter(|owner| makes_pods(owner)) else {
            return Err("nothing would make it again".to_owned());
        };
        if !pod.restarts_always {
            return Err("it runs to an end, and would begin anew".to_owned());
        }
        if !pod.claims.is_empty() && is_cloneset(owner) {
            return Err("its CloneSet would delete its persistent volume claims with it".to_owned());
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
            return Err(format!("its {} has been asked to replace it", owner.kind));
        }
        self.patience(pod, &owner.uid)?;
        if serves(pod, self.now) && self.out >= self.limit {
            return Err(format!(
                "waits: maxUnavailable is reached, {} pods are out of service and {} may be",
                self.out, self.limit
            ));
        }
        if self.gone >= self.limit {
            return Err(format!(
                "waits: maxUnavailable is reached, {} pods are being made again and {} may be",
                self.gone, self.limit
            ));
        }
        if is_deleted(pod) {
            self.all.charges.ask(pod, Operation::Delete)?;
        }
        Ok(())
    }

    /// Is it of use to try now?
    fn patience(&mut self, pod: &PodView, owner: &'r str) -> Result<(), String> {
        let Some(owned) = self.all.owners.get(owner) else {
            return Err("nothing would make it again".to_owned());
        };
        let repairs = self.snapshot.repairs;
        let unreplaced = repairs.unreplaced(owner, owned, self.now);
        if unreplaced.long_ago > 0 {
            return Err("waits: its owner has not made a pod again that was removed before".to_owned());
        }
        let since = |pod: &PodView, long| pod.created.and_then(|created| left(created, long, self.now));
        let begins = repairs.begins(self.now);
        if begins.is_none() && owned.is_injected_again() {
            return match since(pod, FRESH) {
                Some(left) => self.later(left, "waits: it has just been made"),
                None => Ok(()),
            };
        }
        if repairs.tries(owner, self.snapshot.set.metadata.generation) >= TRIES {
            return Err(format!(
                "{TRIES} pods of its owner were made without sidecars again: no more are tried until the set is edited"
            ));
        }
        self.requeue = self.requeue.into_iter().chain(begins).min();
        let asked = owned.without.iter().any(|pod| is_asked_to_go(pod));
        let under_way = asked || unreplaced.lately > 0;
        if under_way || self.tried.contains(&owner) {
            return Err("waits until another pod of its owner is back with its sidecars".to_owned());
        }
        let newest = owned.without.iter().max_by_key(|pod| pod.created);
        let settling = newest.and_then(|pod| since(pod, SETTLE));
        let waits = repairs.wait(owner, self.snapshot.set.metadata.generation, self.now);
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

fn limit(snapshot: &Snapshot<'_>, all: &Repair<'_>) -> usize {
    let one = IntOrString::Int(1);
    let limit = snapshot.set.spec.update_strategy.max_unavailable.as_ref();
    let pods = all.pods.len() + all.uninjected.len();
    let limit = limit.unwrap_or(&one).scaled_b(pods as i32, Rounding::Up);
    limit.max(0) as usize
}

/// All pods of the set that are not in service, whoever took them out, and those that are on their way back.
fn out(all: &Repair<'_>, now: Timestamp) -> usize {
    let pods = all.pods.iter().filter(|pod| !pod.ready || !pod.consistent);
    let others = all
        .uninjected
        .iter()
        .filter(|pod| !serves(pod, now) || is_asked_to_go(pod));
    pods.count() + others.count() + all.upgraded + all.gone
}

fn serves(pod: &PodView, now: Timestamp) -> bool {
    service(pod, 0, now) == Service::Available
}

fn is_cloneset(owner: &OwnerView) -> bool {
    &*owner.kind == "CloneSet" && &*owner.group == APPS_GROUP
}

/// Does it replace pods whose labels ask for it?
fn replaces_on_request(owner: &OwnerView) -> bool {
    is_cloneset(owner) || (&*owner.kind == "StatefulSet" && &*owner.group == APPS_GROUP)
}

/// Would it make a pod again that is gone? Not all kinds of OpenKruise that may own pods are acted on.
fn makes_pods(owner: &OwnerView) -> bool {
    &*owner.kind != "Node" && (&*owner.group != APPS_GROUP || replaces_on_request(owner))
}

fn uid_of_owner(pod: &PodView) -> &str {
    pod.controller.as_ref().map_or("", |owner| &*owner.uid)
}

/// Is the pod deleted, and not its owner asked to do so? That one asks the budget itself.
fn is_deleted(pod: &PodView) -> bool {
    !pod.controller.as_deref().is_some_and(replaces_on_request)
}

/// A CloneSet or StatefulSet of OpenKruise is asked to replace its pod, within its own limits and after its hooks;
/// other owners notice.
fn removal(pod: &PodView) -> Step {
    let reason = "it was made without the sidecars that it should have";
    if !is_deleted(pod) {
        let body = json!({"metadata": {"labels": {SPECIFIED_DELETE: "true"}}});
        let (intent, part) = (Intent::REQUEST_DELETE, Part::Main);
        return patch(pod, intent, part, body, Guard::Unchanged, reason);
    }
    pod_writes::delete(pod, Guard::Unchanged, reason)
}
