//! Writes to one pod.

use kruise_views::PodView;
use serde_json::json;

use crate::{
    Intent, Owner, ResourceId,
    plan::{ObjectWrites, Step},
    write::{Body, Part, Patch, Precondition, Target, Write},
};

/// What must still be so when a write arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// It is the same pod, whatever happened to it.
    SamePod,
    /// The pod is as it was read: for changes that would be wrong if it changed unseen.
    Unchanged,
    /// The pod is as the step before left it.
    AfterPrevious,
}

impl Guard {
    fn precondition(self, pod: &PodView) -> Precondition {
        let uid = pod.uid.to_string();
        match self {
            Self::SamePod => Precondition::Uid(uid),
            Self::Unchanged => Precondition::UidAndVersion(uid, pod.resource_version.to_string()),
            Self::AfterPrevious => Precondition::VersionFromPreviousStep(uid),
        }
    }
}

/// A pod as a target.
pub fn target(pod: &PodView) -> Target {
    Target {
        resource: ResourceId::PODS,
        namespace: pod.namespace.to_string(),
        name: pod.name.to_string(),
    }
}

/// A strategic merge patch of a pod.
pub fn patch(
    pod: &PodView,
    intent: Intent,
    part: Part,
    body: impl Into<Body>,
    guard: Guard,
    reason: impl Into<String>,
) -> Step {
    let write = Write::Patch {
        intent,
        target: target(pod),
        part,
        patch: Patch::Strategic(body.into()),
        precondition: guard.precondition(pod),
    };
    Step::new(write, reason)
}

/// Deletion of a pod.
pub fn delete(pod: &PodView, guard: Guard, reason: impl Into<String>) -> Step {
    let write = Write::Delete {
        intent: Intent::DELETE_POD,
        target: target(pod),
        precondition: guard.precondition(pod),
    };
    Step::new(write, reason)
}

/// Removes the owner reference of this uid.
pub fn release(pod: &PodView, owner_uid: &str, reason: &str) -> ObjectWrites {
    let body = json!({"metadata": {"ownerReferences": [{"$patch": "delete", "uid": owner_uid}]}});
    let step = patch(pod, Intent::RELEASE_POD, Part::Main, body, Guard::SamePod, reason);
    ObjectWrites::of_pod(vec![step])
}

/// Makes the owner the controller of a pod without one. Not if the owner was deleted meanwhile: the pod would be
/// deleted with it.
pub fn adopt(pod: &PodView, owner: &Owner<'_>, resource: ResourceId, reason: &str) -> ObjectWrites {
    let body = json!({"metadata": {"ownerReferences": [owner.reference()]}});
    let write = Write::Patch {
        intent: Intent::ADOPT_POD,
        target: target(pod),
        part: Part::Main,
        patch: Patch::Strategic(body.into()),
        precondition: Precondition::Owned {
            uid: pod.uid.to_string(),
            version: pod.resource_version.to_string(),
            owner: owner.target(resource, owner.name),
            owner_uid: owner.uid.to_owned(),
        },
    };
    ObjectWrites::of_pod(vec![Step::new(write, reason)])
}

/// The first write is right for this version of the pod only, the others for what the one before made of it.
pub fn guard_by_version(steps: &mut [Step], pod: &PodView) {
    let mut guard = Guard::Unchanged;
    for step in steps {
        if let Write::Patch { precondition, .. } = &mut step.write {
            *precondition = guard.precondition(pod);
        }
        guard = Guard::AfterPrevious;
    }
}
