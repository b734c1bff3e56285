//! Claims: what each pod of a set keeps its data in, found by the instance id that both share.
//!
//! # What it promises
//! - **A live pod keeps its claims.** A claim is deleted or given away only if no pod that might use it is left,
//!   whoever that pod belongs to by now; where the snapshot may be older than a pod, the server is asked.
//! - **A claim is one pod's.** An id whose claims, or whose pod's name, still exist is never drawn anew.
//! - **What is unclear is left alone.** A claim whose label and name disagree is neither reused nor deleted.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::cloneset::CloneSet;
use kruise_plan_kit::{
    FailureNote, Intent, ObjectWrites, Owner, Part, Patch, Phase, Plan, Precondition, ResourceId, Step,
    Target, Why, Write, events, injected::is_injected,
};
use kruise_views::{ClaimView, PodView};
use serde_json::json;

/// A claim is deleted, with its pod or after it.
const DELETE_CLAIM: Intent = Intent::of_scale("delete-claim");
/// A claim gets the pod that uses it as its owner, and is deleted with it.
const GIVE_CLAIM: Intent = Intent::of_scale("give-claim");

/// How long after its grace period a pod may still keep its successor waiting. A node that is lost never deletes
/// it, and the set would be short of a pod for as long.
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
    /// From the claims that `set` controls. `exists`: is there a pod of this name in its namespace, whoever
    /// controls it?
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

/// The claims of a set as a plan uses them.
pub(super) struct Places<'a> {
    pub(super) owner: Owner<'a>,
    pub(super) claims: &'a Claims,
    /// The set's pods, in any state.
    pub(super) pods: &'a [Arc<PodView>],
    /// Names that objects of others have.
    pub(super) taken_names: &'a BTreeSet<String>,
    /// Objects whose creation may still take effect.
    pub(super) late: &'a BTreeSet<Target>,
    /// Do new pods take the claims of vanished ones?
    pub(super) reuse: bool,
}

/// What vanished pods, or pods that were never made, left behind.
#[derive(Default)]
pub(super) struct Vacant {
    /// Ids whose pod is gone, sorted.
    pub(super) free: Vec<String>,
    /// Pods being deleted, whose successors wait.
    pub(super) leaving: Vec<Leaving>,
}

/// A pod being deleted that has claims.
pub(super) struct Leaving {
    pub(super) pod: String,
    /// How long its place is kept.
    pub(super) left: Duration,
}

impl<'a> Places<'a> {
    /// The id in a pod's name.
    pub(super) fn id_of<'p>(&self, pod: &'p str) -> Option<&'p str> {
        pod.strip_prefix(self.owner.name)?.strip_prefix('-')
    }

    /// The pods by the id in their names; none if there are no claims to look up.
    fn by_id(&self) -> BTreeMap<&'a str, &'a PodView> {
        if self.claims.sorted.is_empty() {
            return BTreeMap::new();
        }
        let pods = self.pods.iter();
        pods.filter_map(|pod| Some((self.id_of(&pod.name)?, &**pod)))
            .collect()
    }

    /// Deletions of a pod's claims, which follow its own: until it is gone it keeps them.
    pub(super) fn deletions(&self, pod: &PodView) -> Vec<Step> {
        let Some(id) = self.id_of(&pod.name) else {
            return Vec::new();
        };
        let live = self.claims.of(id).iter().filter(|claim| !claim.deleting);
        let reason = "its pod is deleted for good";
        live.map(|claim| delete(claim, Precondition::Uid(claim.uid.to_string()), reason))
            .collect()
    }

    /// The ids in names that objects of others have.
    pub(super) fn taken_ids(&self) -> impl Iterator<Item = &'a str> {
        let names = self.taken_names.iter();
        names.filter_map(|name| Some(name.rsplit_once('-')?.1))
    }

    /// The ids in names of pods whose creation may still take effect, sorted.
    pub(super) fn late_ids(&self) -> impl Iterator<Item = &'a str> {
        let pods = self.late.iter().filter(|late| late.resource == ResourceId::PODS);
        pods.filter_map(|pod| self.id_of(&pod.name))
    }

    /// The places that new pods take before others are drawn. Places whose pod ended and is not deleted, or is
    /// overdue, are lost: nobody knows when their names will be free.
    pub(super) fn vacant(&self, now: Timestamp) -> Vacant {
        let mut vacant = Vacant::default();
        let pods = self.by_id();
        let taken: BTreeSet<&str> = self.taken_ids().collect();
        for (id, claims) in self.claims.groups() {
            if claims.iter().any(|claim| claim.deleting) || taken.contains(id) {
                continue;
            }
            match pods.get(id) {
                Some(pod) => vacant.leaving.extend(leaving(pod, now)),
                None if !self.claims.held.contains(id) => vacant.free.push(id.to_owned()),
                None => {}
            }
        }
        vacant
    }

    /// Where claims are not reused: those of pods that others deleted are deleted with them, and those without a
    /// pod now. Pods that the plan creates find theirs.
    pub(super) fn clean_up(&self, plan: &mut Plan) {
        if self.reuse {
            return;
        }
        let pods = self.by_id();
        let writes = plan
            .writes
            .iter()
            .flat_map(|object| &object.steps)
            .map(|step| &step.write);
        let created = writes.filter(|write| write.intent() == Intent::CREATE_POD);
        let created: BTreeSet<&str> = created.map(|write| write.target().name.as_str()).collect();
        let mut writes = Vec::new();
        for (id, claims) in self.claims.groups() {
            let name = format!("{}-{id}", self.owner.name);
            let live = claims.iter().filter(|claim| !claim.deleting);
            match pods.get(id) {
                Some(pod) if pod.is_active() && is_injected("ClaimOfLivePod") => {
                    let same = |claim: &ClaimView| Precondition::Uid(claim.uid.to_string());
                    writes.extend(live.map(|claim| object_writes(delete(claim, same(claim), ""))));
                }
                Some(pod) if pod.is_active() => {}
                Some(pod) => writes.extend(live.map(|claim| self.give(claim, pod))),
                None if self.claims.held.contains(id) => {
                    let text = "is not this set's any more: the claims made for it stay while it does";
                    plan.why.push(Why::new(name, text));
                }
                None if created.contains(name.as_str()) => {}
                None => writes.extend(live.map(|claim| {
                    let pod = self.owner.target(ResourceId::PODS, name.as_str());
                    let unused = Precondition::Unused(claim.uid.to_string(), pod);
                    object_writes(delete(
                        claim,
                        unused,
                        "its pod is gone, and claims are not reused",
                    ))
                })),
            }
        }
        plan.writes.extend(writes);
    }

    /// The pod becomes the owner in the set's place: its claim is deleted when it is. It does not hold up the pod's
    /// deletion: that takes the right to change finalizers of pods where the server checks it.
    fn give(&self, claim: &ClaimView, pod: &PodView) -> ObjectWrites {
        let owners = json!([
            {"$patch": "delete", "uid": self.owner.uid},
            {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": true},
        ]);
        let write = Write::Patch {
            intent: GIVE_CLAIM,
            target: target(claim),
            part: Part::Main,
            patch: Patch::Strategic(json!({"metadata": {"ownerReferences": owners}}).into()),
            precondition: Precondition::Uid(claim.uid.to_string()),
        };
        let mut step = Step::new(write, "its pod is going, and claims are not reused");
        let failed = format!("failed to update PVC {}: ", claim.name);
        step.failed = Some(FailureNote::new(&events::FAILED_UPDATE, failed));
        object_writes(step)
    }
}

fn leaving(pod: &PodView, now: Timestamp) -> Option<Leaving> {
    // Nodes report the end of a pod that is being deleted before they delete it.
    let end = pod.gone_by?.checked_add(PATIENCE).ok()?;
    let left = Duration::try_from(end.duration_since(now)).ok()?;
    let pod = pod.name.to_string();
    (!left.is_zero()).then_some(Leaving { pod, left })
}

fn delete(claim: &ClaimView, precondition: Precondition, reason: &str) -> Step {
    let write = Write::Delete {
        intent: DELETE_CLAIM,
        target: target(claim),
        precondition,
    };
    let failed = format!("failed to delete pvc {}: ", claim.name);
    Step {
        failed: Some(FailureNote::new(&events::FAILED_DELETE, failed)),
        ..Step::new(write, reason)
    }
}

fn target(claim: &ClaimView) -> Target {
    Target {
        resource: ResourceId::CLAIMS,
        namespace: claim.namespace.to_string(),
        name: claim.name.to_string(),
    }
}

fn object_writes(step: Step) -> ObjectWrites {
    ObjectWrites::new(Phase::Cleanup, vec![step])
}
