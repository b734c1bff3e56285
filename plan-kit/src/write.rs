//! Writes as data. The executor turns them into requests; tests, `--dry-run` and `kruise explain` print them.

use std::{fmt, sync::Arc};

use serde_json::{Value, json};

use crate::ResourceId;

/// One write to the API.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// POST. AlreadyExists counts as done if the existing object is the one that was to be created.
    Create {
        /// What for.
        intent: Intent,
        /// Where; the name is known before the write.
        target: Target,
        /// The object.
        body: Body,
        /// UID of the controller that an already existing object must have to count as ours. `None`: it must have no
        /// controller.
        owner_uid: Option<String>,
    },
    /// PATCH.
    Patch {
        /// What for.
        intent: Intent,
        /// Which object.
        target: Target,
        /// Which part of it.
        part: Part,
        /// The change.
        patch: Patch,
        /// What must still hold for the write to be right.
        precondition: Precondition,
    },
    /// DELETE with the object's own grace period, background propagation.
    Delete {
        /// What for.
        intent: Intent,
        /// Which object.
        target: Target,
        /// What must still hold; at least its uid.
        precondition: Precondition,
    },
}

/// What a write means to the workload: the verb of its text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Intent {
    /// A new revision.
    CreateRevision,
    /// An old revision becomes the newest again.
    RenumberRevision,
    /// A revision gets the version that its author gave it.
    LabelRevision,
    /// A revision's annotation records which template it is for.
    NoteTemplate,
    /// An unused revision is deleted.
    DeleteRevision,
    /// A new pod.
    CreatePod,
    /// A pod is deleted, for good or to be replaced.
    DeletePod,
    /// Readiness off before an in-place change.
    MarkUnready,
    /// Other resources of running containers.
    ResizePod,
    /// The in-place change itself.
    UpdateInPlace,
    /// A condition: whether sidecars of a pod can be upgraded in place.
    TellUpgradable,
    /// The sidecar that has taken over works alone: its twin gets the empty image.
    EmptyTwin,
    /// Readiness on and lifecycle forward, after creation or an in-place change.
    MarkReady,
    /// A lifecycle label alone.
    SetLifecycle,
    /// The specified-delete label: replace this pod when limits allow.
    RequestDelete,
    /// A pod that no longer matches the selector loses our owner reference.
    ReleasePod,
    /// A pod without a controller gets our owner reference.
    AdoptPod,
    /// A pod names the budget that protects it.
    LinkBudget,
    /// A pod that no budget covers any more names none.
    UnlinkBudget,
    /// Pods that are about to become unavailable are charged to their budget.
    ChargeBudget,
    /// A pod gets back the labels that say which of the workload's pods it is.
    RepairIdentity,
    /// Consumed entries of `podsToDelete` go from the spec.
    PrunePodsToDelete,
    /// A new claim, for a pod that is about to be created.
    CreateClaim,
    /// A claim is deleted, with its pod or after it.
    DeleteClaim,
    /// A claim gets the pod that uses it as its owner, and is deleted with it.
    GiveClaim,
    /// A claim gets the owners that the workload's retention policy asks for.
    OwnClaim,
    /// A claim requests more storage.
    ResizeClaim,
    /// A job that pulls an image, ahead of a rollout or as one of a list.
    CreatePullJob,
    /// Such a job is deleted: the rollout is over, another took its place, or its image left the list.
    DeletePullJob,
    /// A job is deleted: it ended long enough ago.
    DeleteJob,
    /// A revision's label records whether its images are pulled ahead of the rollout.
    NoteImages,
    /// The barrier of a pod, with the keys of the containers that start first.
    CreateBarrier,
    /// Further containers of a pod may start.
    OpenBarrier,
    /// A barrier of an earlier pod of the same name is deleted.
    DeleteBarrier,
    /// All containers of a pod may start.
    CompleteLaunch,
    /// A job that a schedule asks for.
    CreateJob,
    /// The status says for which activation a job was created.
    RecordActivation,
    /// A pod gets the ephemeral containers of a job.
    AddContainers,
    /// A job that is being deleted is not held back any more.
    ReleaseJob,
    /// A job that is deleted is held back until what was made for it is gone.
    HoldJob,
    /// The label of a job records which template its jobs have.
    LabelJob,
    /// A node gets the object that lists its images.
    CreateNodeImage,
    /// The list of images of a node that is gone is deleted.
    DeleteNodeImage,
    /// Images that are no longer needed are removed from a node, and labels follow the node's.
    TidyNodeImage,
    /// A node is to pull an image.
    RequestPull,
    /// A pull secret is copied to where node agents can read it.
    CopySecret,
    /// The copy of a pull secret gets the data of the original, or another job that needs it.
    UpdateSecret,
    /// One job less needs the copy of a pull secret.
    ReleaseSecret,
    /// The copy of a pull secret is deleted: no job needs it.
    DeleteSecret,
    /// A namespace gets its copy of a Secret or ConfigMap.
    CreateCopy,
    /// A copy gets the contents that it is to have.
    UpdateCopy,
    /// A copy is deleted: its namespace is to have none.
    DeleteCopy,
    /// A node gets the object that lists its probes.
    CreateNodePodProbe,
    /// The list of probes of a node that is gone is deleted.
    DeleteNodePodProbe,
    /// Pods that are gone, and probes that nobody wants, are removed from a node.
    TidyProbes,
    /// The probes of a marker on a node become those that it wants.
    SetProbes,
    /// A pod gets the conditions, labels and annotations that results of probes stand for.
    MarkPod,
    /// A marker that is deleted is held back until its probes are gone.
    HoldMarker,
    /// A marker that is being deleted is not held back any more.
    ReleaseMarker,
    /// A request to restart containers is deleted only after its pod is back in service.
    HoldRequest,
    /// A request that has ended is of no interest to its node any more, and holds nothing.
    ReleaseRequest,
    /// A workload whose annotations ask for it gets an object that records where its pods are.
    CreatePodState,
    /// Such an object becomes what the annotations say.
    UpdatePodState,
    /// Such an object is deleted: the annotations ask for none any more.
    DeletePodState,
    /// A subset gets its workload.
    CreateSubset,
    /// The workload of a subset gets what its template, its share and its partition say.
    UpdateSubset,
    /// A workload without a controller becomes that of a subset.
    AdoptSubset,
    /// A workload is deleted: its subset has left the topology, or the template is of another kind.
    DeleteSubset,
    /// A pod's label says whether it is reserved.
    ReservePod,
    /// The agent of a node is asked to stop sidecars of a pod whose main containers have ended.
    RequestTermination,
    /// Such a request is ended: it has done what it could, and another one is needed.
    EndRequest,
    /// Sidecars of such a pod get the image of a program that ends at once.
    SwapImages,
    /// Such a pod has ended, whatever its sidecars end with.
    EndPod,
    /// A pod becomes part of a subset.
    AssignPod,
    /// A pod's annotation says when it goes, compared to others of its workload.
    SetDeletionCost,
}

impl Intent {
    /// Stable verb, in kebab case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CreateRevision => "create-revision",
            Self::RenumberRevision => "renumber-revision",
            Self::LabelRevision => "label-revision",
            Self::NoteTemplate => "note-template",
            Self::DeleteRevision => "delete-revision",
            Self::CreatePod => "create-pod",
            Self::DeletePod => "delete-pod",
            Self::MarkUnready => "mark-unready",
            Self::ResizePod => "resize-pod",
            Self::UpdateInPlace => "update-in-place",
            Self::TellUpgradable => "tell-upgradable",
            Self::EmptyTwin => "empty-twin",
            Self::MarkReady => "mark-ready",
            Self::SetLifecycle => "set-lifecycle",
            Self::RequestDelete => "request-delete",
            Self::ReleasePod => "release-pod",
            Self::AdoptPod => "adopt-pod",
            Self::LinkBudget => "link-budget",
            Self::UnlinkBudget => "unlink-budget",
            Self::ChargeBudget => "charge-budget",
            Self::RepairIdentity => "repair-identity",
            Self::PrunePodsToDelete => "prune-pods-to-delete",
            Self::CreateClaim => "create-claim",
            Self::DeleteClaim => "delete-claim",
            Self::GiveClaim => "give-claim",
            Self::OwnClaim => "own-claim",
            Self::ResizeClaim => "resize-claim",
            Self::CreatePullJob => "create-pull-job",
            Self::DeletePullJob => "delete-pull-job",
            Self::DeleteJob => "delete-job",
            Self::NoteImages => "note-images",
            Self::CreateBarrier => "create-barrier",
            Self::OpenBarrier => "open-barrier",
            Self::DeleteBarrier => "delete-barrier",
            Self::CompleteLaunch => "complete-launch",
            Self::CreateJob => "create-job",
            Self::RecordActivation => "record-activation",
            Self::AddContainers => "add-containers",
            Self::ReleaseJob => "release-job",
            Self::HoldJob => "hold-job",
            Self::LabelJob => "label-job",
            Self::CreateNodeImage => "create-node-image",
            Self::DeleteNodeImage => "delete-node-image",
            Self::TidyNodeImage => "tidy-node-image",
            Self::RequestPull => "request-pull",
            Self::CopySecret => "copy-secret",
            Self::UpdateSecret => "update-secret",
            Self::ReleaseSecret => "release-secret",
            Self::DeleteSecret => "delete-secret",
            Self::CreateCopy => "create-copy",
            Self::UpdateCopy => "update-copy",
            Self::DeleteCopy => "delete-copy",
            Self::CreateNodePodProbe => "create-node-pod-probe",
            Self::DeleteNodePodProbe => "delete-node-pod-probe",
            Self::TidyProbes => "tidy-probes",
            Self::SetProbes => "set-probes",
            Self::MarkPod => "mark-pod",
            Self::HoldMarker => "hold-marker",
            Self::ReleaseMarker => "release-marker",
            Self::HoldRequest => "hold-request",
            Self::ReleaseRequest => "release-request",
            Self::CreatePodState => "create-pod-state",
            Self::UpdatePodState => "update-pod-state",
            Self::DeletePodState => "delete-pod-state",
            Self::CreateSubset => "create-subset",
            Self::UpdateSubset => "update-subset",
            Self::AdoptSubset => "adopt-subset",
            Self::DeleteSubset => "delete-subset",
            Self::ReservePod => "reserve-pod",
            Self::RequestTermination => "request-termination",
            Self::EndRequest => "end-request",
            Self::SwapImages => "swap-images",
            Self::EndPod => "end-pod",
            Self::AssignPod => "assign-pod",
            Self::SetDeletionCost => "set-deletion-cost",
        }
    }
}

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Resource.
    pub resource: ResourceId,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.resource.plural, self.name)
    }
}

/// The endpoint of the object that a patch is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The object itself.
    Main,
    /// `/status`. The server also takes label and annotation changes here; where it refuses them, the executor sends
    /// the metadata as a patch of its own.
    Status,
    /// `/resize` of a pod: the resources of its containers, and nothing else.
    Resize,
    /// `/ephemeralcontainers` of a pod: further ephemeral containers, and nothing else.
    EphemeralContainers,
}

impl Part {
    /// What a patch of it does, in words.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Main => "change objects",
            Self::Status => "report a status",
            Self::Resize => "resize pods",
            Self::EphemeralContainers => "add ephemeral containers",
        }
    }
}

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes strategic merge; built-in kinds only.
    Strategic(Body),
    /// RFC 6902 operations.
    Json(Value),
}

/// What must still be true on the server. Version guards only where an unseen change would make the write wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Same object, whatever happened to it.
    Uid(String),
    /// Same object, untouched since.
    UidAndVersion(String, String),
    /// Same object, untouched since the previous step.
    VersionFromPreviousStep(String),
    /// The value at this JSON pointer (JSON patches only).
    Test(String, Value),
    /// Same object, and this other one, which would use it, does not exist: the server is asked first, and if it does the
    /// object is spared (deletions only).
    Unused(String, Target),
    /// Same object, untouched since, and its owner-to-be is still there: the server is asked first, and unless it has an
    /// owner of this uid that is not being deleted the write ends as a conflict (patches of [`Part::Main`] only).
    Owned {
        /// UID of the object.
        uid: String,
        /// Version of the object.
        version: String,
        /// The owner.
        owner: Target,
        /// UID of the owner.
        owner_uid: String,
    },
}

impl Precondition {
    /// The guarded uid, if any.
    pub fn uid(&self) -> Option<&str> {
        match self {
            Self::Uid(uid)
            | Self::UidAndVersion(uid, _)
            | Self::VersionFromPreviousStep(uid)
            | Self::Unused(uid, _)
            | Self::Owned { uid, .. } => Some(uid),
            Self::Test(..) => None,
        }
    }

    /// Another object that decides about the write, and is read before it.
    pub fn related(&self) -> Option<&Target> {
        match self {
            Self::Unused(_, user) => Some(user),
            Self::Owned { owner, .. } => Some(owner),
            Self::Uid(_) | Self::UidAndVersion(..) | Self::VersionFromPreviousStep(_) | Self::Test(..) => {
                None
            }
        }
    }
}

/// An object to create or a patch to send: a shared base and the few members that differ, so that a thousand pods of one
/// plan cost one template.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// What all have in common.
    pub base: Arc<Value>,
    /// JSON pointer and value, applied in order; the parent of each pointer exists in `base`.
    pub set: Vec<(&'static str, Value)>,
}

impl From<Value> for Body {
    fn from(whole: Value) -> Self {
        Self {
            base: Arc::new(whole),
            set: Vec::new(),
        }
    }
}

impl Body {
    /// The whole object.
    pub fn render(&self) -> Value {
        let mut object = (*self.base).clone();
        for (pointer, value) in &self.set {
            let Some((parent, key)) = pointer.rsplit_once('/') else {
                continue;
            };
            let key = key.replace("~1", "/").replace("~0", "~");
            if let Some(Value::Object(parent)) = object.pointer_mut(parent) {
                parent.insert(key, value.clone());
            }
        }
        object
    }
}

impl Write {
    /// Which object.
    pub fn target(&self) -> &Target {
        match self {
            Self::Create { target, .. } | Self::Patch { target, .. } | Self::Delete { target, .. } => target,
        }
    }

    /// What must still hold, if the write is for an object that exists.
    pub fn precondition(&self) -> Option<&Precondition> {
        match self {
            Self::Create { .. } => None,
            Self::Patch { precondition, .. } | Self::Delete { precondition, .. } => Some(precondition),
        }
    }

    /// The uid of the object, if the write is for one that exists and names its uid.
    pub fn uid(&self) -> Option<&str> {
        self.precondition()?.uid()
    }

    /// What for.
    pub fn intent(&self) -> Intent {
        match self {
            Self::Create { intent, .. } | Self::Patch { intent, .. } | Self::Delete { intent, .. } => *intent,
        }
    }
}

impl fmt::Display for Write {
    /// `verb resource/name`: stable, used by tests, dry runs and explanations.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.intent().as_str(), self.target())
    }
}

impl Patch {
    /// `Content-Type` of merge patches.
    pub const MERGE: &'static str = "application/merge-patch+json";

    /// `Content-Type` of the request.
    pub fn content_type(&self) -> &'static str {
        match self {
            Self::Merge(_) => Self::MERGE,
            Self::Strategic(_) => "application/strategic-merge-patch+json",
            Self::Json(_) => "application/json-patch+json",
        }
    }

    /// The change itself, without a precondition.
    pub fn body(&self) -> Value {
        match self {
            Self::Merge(patch) | Self::Json(patch) => patch.clone(),
            Self::Strategic(body) => body.render(),
        }
    }

    /// The request body with the precondition written into it: as `metadata.uid` and `metadata.resourceVersion`, which
    /// the server compares and answers 409, or as a `test` operation. `previous_version` is the version the previous
    /// step of the object returned.
    pub fn guarded(&self, precondition: &Precondition, previous_version: Option<&str>) -> Value {
        let (uid, version) = match precondition {
            Precondition::Uid(uid) | Precondition::Unused(uid, _) => (Some(uid.as_str()), None),
            Precondition::UidAndVersion(uid, version) | Precondition::Owned { uid, version, .. } => {
                (Some(uid.as_str()), Some(version.as_str()))
            }
            Precondition::VersionFromPreviousStep(uid) => (Some(uid.as_str()), previous_version),
            Precondition::Test(..) => (None, None),
        };
        match self {
            Self::Merge(_) | Self::Strategic(_) => {
                let mut patch = self.body();
                if let Some(object) = patch.as_object_mut() {
                    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
                    if let Some(metadata) = metadata.as_object_mut() {
                        if let Some(uid) = uid {
                            metadata.insert("uid".into(), uid.into());
                        }
                        if let Some(version) = version {
                            metadata.insert("resourceVersion".into(), version.into());
                        }
                    }
                }
                patch
            }
            Self::Json(operations) => {
                let mut guards = Vec::new();
                if let Some(uid) = uid {
                    guards.push(json!({"op": "test", "path": "/metadata/uid", "value": uid}));
                }
                if let Some(version) = version {
                    guards.push(json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}));
                }
                if let Precondition::Test(path, value) = precondition {
                    guards.push(json!({"op": "test", "path": path, "value": value}));
                }
                guards.extend(operations.as_array().cloned().unwrap_or_default());
                Value::Array(guards)
            }
        }
    }
}
