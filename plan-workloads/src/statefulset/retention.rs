//! Who owns a claim, so that it is deleted when the retention policy says: nobody, the set, or the pod that is removed.

use kruise_api::statefulset::ClaimRetention;
use kruise_plan_kit::{
    FailureNote, Intent, Part, Patch, Precondition, ResourceId, Step, Target, Write, events,
    injected::is_injected,
};
use kruise_views::{ClaimView, OwnerView};
use serde_json::{Value, json};

use super::{claims::Claims, members::Member};

/// A claim gets the owners that the workload's retention policy asks for.
const OWN_CLAIM: Intent = Intent::of_update("own-claim");

/// What becomes of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retention {
    /// Are they deleted with the set?
    with_set: bool,
    /// Are they deleted with a pod that is scaled away?
    with_pod: bool,
}

impl Retention {
    /// Reads the policy. Values that are not known mean that claims stay.
    pub(super) fn of(policy: &ClaimRetention) -> Self {
        Self {
            with_set: policy.when_deleted == "Delete",
            with_pod: policy.when_scaled == "Delete",
        }
    }

    /// Owners of the claims of a pod that stays, as a claim that is created has them.
    pub(super) fn owners(self, set: &Value) -> Vec<Value> {
        let owner = self.with_set.then(|| set.clone());
        owner.into_iter().collect()
    }

    /// The writes that give the claims of a pod the owners that they should have.
    pub(super) fn repair(self, claims: &Claims<'_>, member: &Member<'_>) -> Vec<Step> {
        let condemned = member.rank.is_none() || is_injected("ClaimOfSlotGiven");
        let of_pod = self.with_pod && condemned;
        let of_set = self.with_set && !of_pod;
        let view = member.pod.view;
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "name": view.name, "uid": view.uid});
        let set = reference(claims);
        let usable = claims.usable(member.ordinal);
        let repaired = usable.filter_map(|claim| {
            let is_set = |owner: &&OwnerView| *owner.uid == *claims.owner.uid;
            let is_pod = |owner: &&OwnerView| &*owner.kind == "Pod" && owner.name == view.name;
            let mut changes = Vec::new();
            let is_for_set = change(&mut changes, &claim, of_set.then_some(&set), &is_set);
            change(&mut changes, &claim, of_pod.then_some(&pod), &is_pod);
            let guard = guard(&claim, is_for_set, claims);
            let reason = match (of_pod, of_set) {
                (true, _) => "it is deleted with its pod, which is removed",
                (_, true) => "it is deleted with the set",
                _ => "it stays",
            };
            (!changes.is_empty()).then(|| own(&claim, (changes, guard), reason, &view.name, claims))
        });
        repaired.collect()
    }
}

/// The reference to the set, which does not control the claim.
pub(super) fn reference(claims: &Claims<'_>) -> Value {
    let owner = &claims.owner;
    owner_of(owner.api_version, owner.kind, owner.name, owner.uid)
}

/// A reference to an owner that does not control.
pub(super) fn owner_of(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid})
}

/// A claim gets no set as its owner that has gone meanwhile: it would be deleted, though the set was to leave it.
fn guard(claim: &ClaimView, is_for_set: bool, claims: &Claims<'_>) -> Precondition {
    let (uid, owner) = (claim.uid.to_string(), &claims.owner);
    if is_for_set {
        Precondition::Owned {
            uid,
            version: claim.resource_version.to_string(),
            owner: owner.target(kruise_api::statefulset::RESOURCE, owner.name),
            owner_uid: owner.uid.to_owned(),
        }
    } else {
        Precondition::Uid(uid)
    }
}

/// Adds what makes `wanted` the only owner among those that are alike. Says whether it becomes an owner.
fn change(
    changes: &mut Vec<Value>,
    claim: &ClaimView,
    wanted: Option<&Value>,
    is_alike: &dyn Fn(&&OwnerView) -> bool,
) -> bool {
    let uid = wanted.and_then(|owner| owner.get("uid")?.as_str());
    let all = || claim.controller.as_deref().into_iter().chain(&claim.owners);
    let alike = || all().filter(is_alike);
    changes.extend(
        alike()
            .filter(|owner| Some(&*owner.uid) != uid)
            .map(|owner| json!({"$patch": "delete", "uid": owner.uid})),
    );
    let is_new = wanted.is_some() && !alike().any(|owner| Some(&*owner.uid) == uid);
    changes.extend(wanted.filter(|_| is_new).cloned());
    is_new
}

fn own(
    claim: &ClaimView,
    (owners, precondition): (Vec<Value>, Precondition),
    reason: &str,
    pod: &str,
    claims: &Claims<'_>,
) -> Step {
    let write = Write::Patch {
        intent: OWN_CLAIM,
        target: target(claim),
        part: Part::Main,
        patch: Patch::Strategic(json!({"metadata": {"ownerReferences": owners}}).into()),
        precondition,
    };
    let failed = format!(
        "update Claim {} for Pod {pod} in StatefulSet {} failed error: ",
        claim.name, claims.owner.name
    );
    Step {
        failed: Some(FailureNote::new(&events::FAILED_UPDATE, failed)),
        ..Step::new(write, reason)
    }
}

/// A claim as a target.
pub(super) fn target(claim: &ClaimView) -> Target {
    Target {
        resource: ResourceId::CLAIMS,
        namespace: claim.namespace.to_string(),
        name: claim.name.to_string(),
    }
}
