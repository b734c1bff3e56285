//! Claims: what each pod of a set keeps its data in, found by the instance id that both share.
//!
//! # What it promises
//! - **A live pod keeps its claims.** A claim is deleted or given away only if no pod that might use it is left, whoever
//!   that pod belongs to by now; where the snapshot may be older than a pod, the server is asked.
//! - **A claim is one pod's.** An id whose claims, or whose pod's name, still exist is never drawn anew.
//! - **What cannot be told is left alone.** A claim whose label and name disagree is neither reused nor deleted.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::cloneset::CloneSet;
use kruise_plan_kit::{
    Chain, Intent, Pace, Part, Patch, Precondition, ResourceId, Step, Target, Wave, Why, Write, events,
    injected::{Bug, is_injected},
};
use kruise_views::{ClaimView, PodView};
use serde_json::json;

use super::{observe::Observed, writes};

/// How long after its grace period a pod may still stand in the way of its successor. A node that is lost never lets it
/// go, and the set would be short of a pod for as long.
const PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// The claims that a set controls, by instance id.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Sorted by instance id, then name.
    sorted: Vec<Arc<ClaimView>>,
    /// Ids that a pod's name holds, whoever's the pod is.
    held: BTreeSet<Box<str>>,
}

impl Claims {
    /// From the claims that `set` controls. `exists` says whether its namespace has a pod of a name, whoever's.
    pub fn new(set: &CloneSet, claims: Vec<Arc<ClaimView>>, exists: impl Fn(&str) -> bool) -> Self {
        let set = &set.metadata.name;
        let mut sorted = claims;
        sorted.retain(|claim| {
            let of_name = claim.name.rsplit_once('-').and_then(|(rest, id)| {
                let owned = rest.strip_suffix(set.as_str())?.ends_with('-');
                owned.then_some(id)
            });
            of_name.is_some() && of_name == claim.instance.as_deref()
        });
        sorted.sort_by(|a, b| (&a.instance, &a.name).cmp(&(&b.instance, &b.name)));
        let ids: BTreeSet<&str> = sorted
            .iter()
            .filter_map(|claim| claim.instance.as_deref())
            .collect();
        let held = ids.into_iter().filter(|id| exists(&format!("{set}-{id}")));
        let held = held.map(Box::from).collect();
        Self { sorted, held }
    }

    /// Those of one pod, or of the one before it.
    fn of(&self, id: &str) -> &[Arc<ClaimView>] {
        let start = self
            .sorted
            .partition_point(|claim| claim.instance.as_deref() < Some(id));
        let rest = self.sorted.get(start..).unwrap_or_default();
        let count = rest.partition_point(|claim| claim.instance.as_deref() == Some(id));
        rest.get(..count).unwrap_or_default()
    }

    /// Those of each id.
    fn groups(&self) -> impl Iterator<Item = (&str, &[Arc<ClaimView>])> {
        let groups = self.sorted.chunk_by(|a, b| a.instance == b.instance);
        groups.filter_map(|group| Some((group.first()?.instance.as_deref()?, group)))
    }

    /// Every id that some claim has, sorted.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.groups().map(|(id, _)| id)
    }

    /// Is there a claim of this name?
    pub(super) fn has(&self, id: &str, name: &str) -> bool {
        self.of(id).iter().any(|claim| *claim.name == *name)
    }
}

/// The id in a pod's name.
pub(super) fn id_of<'p>(set: &str, pod: &'p str) -> Option<&'p str> {
    pod.strip_prefix(set)?.strip_prefix('-')
}

/// The id in the name of a pod or a claim: what follows the last dash.
pub(super) fn last_part(name: &str) -> Option<&str> {
    name.rsplit_once('-').map(|(_, id)| id)
}

/// The set's pods, in any state, by the id in their names; none if there are no claims to look up.
fn by_id<'a>(observed: &Observed<'a>) -> BTreeMap<&'a str, &'a PodView> {
    if observed.claims.sorted.is_empty() {
        return BTreeMap::new();
    }
    let set = &observed.set.metadata.name;
    let pods = observed.pods.iter();
    pods.filter_map(|pod| Some((id_of(set, &pod.name)?, &**pod)))
        .collect()
}

/// Deletions of a pod's claims, which follow its own: until it is gone it keeps them.
pub(super) fn deletions(observed: &Observed<'_>, pod: &PodView) -> Vec<Step> {
    let Some(id) = id_of(&observed.set.metadata.name, &pod.name) else {
        return Vec::new();
    };
    let live = observed.claims.of(id).iter().filter(|claim| !claim.deleting);
    let reason = || "its pod is deleted for good".to_owned();
    live.map(|claim| delete(claim, Precondition::Uid(claim.uid.to_string()), reason()))
        .collect()
}

/// What vanished pods, or pods that were never made, left behind.
#[derive(Default)]
pub(super) struct Places {
    /// Ids whose pod is gone, sorted.
    pub(super) free: Vec<String>,
    /// Pods that are going, whose successors wait.
    pub(super) leaving: Vec<Leaving>,
}

/// A pod on its way out that has claims.
pub(super) struct Leaving {
    pub(super) pod: String,
    /// How long its place is kept.
    pub(super) left: Duration,
}

/// The places that new pods take before others are drawn. Places whose pod ended and is not deleted, or is overdue, are lost:
/// nobody knows when their names will be free.
pub(super) fn places(observed: &Observed<'_>, now: Timestamp) -> Places {
    let mut places = Places::default();
    let pods = by_id(observed);
    let taken = &observed.memory.taken_names;
    let taken: BTreeSet<&str> = taken.iter().filter_map(|name| last_part(name)).collect();
    for (id, claims) in observed.claims.groups() {
        if claims.iter().any(|claim| claim.deleting) || taken.contains(id) {
            continue;
        }
        match pods.get(id) {
            Some(pod) => places.leaving.extend(leaving(pod, now)),
            None if !observed.claims.held.contains(id) => places.free.push(id.to_owned()),
            None => {}
        }
    }
    places
}

fn leaving(pod: &PodView, now: Timestamp) -> Option<Leaving> {
    // Nodes report the end of a pod that is being deleted before they let it go.
    let end = pod.gone_by?.checked_add(PATIENCE).ok()?;
    let left = Duration::try_from(end.duration_since(now)).ok()?;
    let pod = pod.name.to_string();
    (!left.is_zero()).then_some(Leaving { pod, left })
}

/// Where claims are not reused: those of pods that went by other hands go with them, and those without a pod go now. Pods
/// that `planned` creates find theirs.
pub(super) fn tend(observed: &Observed<'_>, planned: &[Chain]) -> (Vec<Chain>, Vec<Why>) {
    let (mut chains, mut why) = (Vec::new(), Vec::new());
    if observed.set.spec.scale_strategy.enable_pvc_reuse {
        return (chains, why);
    }
    let pods = by_id(observed);
    let writes = planned
        .iter()
        .flat_map(|chain| &chain.steps)
        .map(|step| &step.write);
    let created = writes.filter(|write| write.intent() == Intent::CreatePod);
    let created: BTreeSet<&str> = created.map(|write| write.target().name.as_str()).collect();
    for (id, claims) in observed.claims.groups() {
        let name = format!("{}-{id}", observed.set.metadata.name);
        let live = claims.iter().filter(|claim| !claim.deleting);
        match pods.get(id) {
            Some(pod) if pod.is_active() && is_injected(Bug::ClaimOfLivePod) => {
                let same = |claim: &ClaimView| Precondition::Uid(claim.uid.to_string());
                chains.extend(live.map(|claim| chain(delete(claim, same(claim), String::new()))));
            }
            Some(pod) if pod.is_active() => {}
            Some(pod) => chains.extend(live.map(|claim| give(observed, claim, pod))),
            None if observed.claims.held.contains(id) => why.push(Why {
                about: name,
                text: "is not this set's any more: the claims made for it stay while it does".into(),
            }),
            None if created.contains(name.as_str()) => {}
            None => chains.extend(live.map(|claim| {
                let unused = Precondition::Unused(claim.uid.to_string(), pod_named(observed, &name));
                let reason = "its pod is gone, and claims are not reused".to_owned();
                chain(delete(claim, unused, reason))
            })),
        }
    }
    (chains, why)
}

fn pod_named(observed: &Observed<'_>, name: &str) -> Target {
    Target {
        resource: ResourceId::PODS,
        namespace: observed.set.metadata.namespace.clone(),
        name: name.to_owned(),
    }
}

/// The pod takes the set's place as owner: its claim goes when it does. It does not hold up the pod's deletion: to ask for
/// that takes the right to change finalizers of pods where the server checks it.
fn give(observed: &Observed<'_>, claim: &ClaimView, pod: &PodView) -> Chain {
    let owners = json!([
        {"$patch": "delete", "uid": observed.set.metadata.uid},
        {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": true},
    ]);
    let write = Write::Patch {
        intent: Intent::GiveClaim,
        target: target(claim),
        part: Part::Main,
        patch: Patch::Strategic(json!({"metadata": {"ownerReferences": owners}}).into()),
        precondition: Precondition::Uid(claim.uid.to_string()),
    };
    let failed = format!("failed to update PVC {}: ", claim.name);
    chain(Step {
        write,
        reason: "its pod is going, and claims are not reused".into(),
        done: None,
        failed: Some(writes::failure(&events::FAILED_UPDATE, failed)),
    })
}

fn delete(claim: &ClaimView, precondition: Precondition, reason: String) -> Step {
    let write = Write::Delete {
        intent: Intent::DeleteClaim,
        target: target(claim),
        precondition,
    };
    let failed = format!("failed to delete pvc {}: ", claim.name);
    Step {
        write,
        reason,
        done: None,
        failed: Some(writes::failure(&events::FAILED_DELETE, failed)),
    }
}

fn target(claim: &ClaimView) -> Target {
    Target {
        resource: ResourceId::CLAIMS,
        namespace: claim.namespace.to_string(),
        name: claim.name.to_string(),
    }
}

fn chain(step: Step) -> Chain {
    Chain {
        wave: Wave::Cleanup,
        pace: Pace::Bounded,
        steps: vec![step],
    }
}
