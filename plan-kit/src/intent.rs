//! What a write means: the verb of its text form, and what its failure blocks.
//!
//! A kind declares the intents of its own beside the code that plans them. Here are those that kinds share.

use std::fmt;

/// What a write means to the object that it is planned for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Intent {
    verb: &'static str,
    blocks: Blocks,
    pod: Option<PodChange>,
    is_copy: bool,
}

/// What cannot go on while a write fails, and so the condition that reports the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Scaling: `FailedScale`.
    Scale,
    /// Updating: `FailedUpdate`.
    Update,
    /// Nothing that a condition reports: an event tells the failure.
    Nothing,
}

/// What becomes of the containers of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodChange {
    /// They come into being.
    Created,
    /// They go, at once or when limits allow.
    Deleted,
    /// They get other resources.
    Resized,
    /// They get other images or metadata.
    Updated,
    /// They end, and are not started again.
    Ended,
}

impl Intent {
    /// An intent whose failure blocks scaling. The verb is in kebab case.
    pub const fn of_scale(verb: &'static str) -> Self {
        Self::new(verb, Blocks::Scale)
    }

    /// An intent whose failure blocks an update.
    pub const fn of_update(verb: &'static str) -> Self {
        Self::new(verb, Blocks::Update)
    }

    /// An intent whose failure blocks nothing that a condition reports.
    pub const fn untold(verb: &'static str) -> Self {
        Self::new(verb, Blocks::Nothing)
    }

    const fn new(verb: &'static str, blocks: Blocks) -> Self {
        Self {
            verb,
            blocks,
            pod: None,
            is_copy: false,
        }
    }

    /// The same, of a write that changes the containers of a pod.
    #[must_use]
    pub const fn of_pod(self, change: PodChange) -> Self {
        Self {
            pod: Some(change),
            ..self
        }
    }

    /// The same, of a write of a copy: its version is remembered, and so is each of its failures, by object.
    #[must_use]
    pub const fn of_copy(self) -> Self {
        Self {
            is_copy: true,
            ..self
        }
    }

    /// Stable verb, in kebab case.
    pub const fn as_str(self) -> &'static str {
        self.verb
    }

    /// What cannot go on while the write fails.
    pub const fn blocks(self) -> Blocks {
        self.blocks
    }

    /// What becomes of the containers of the pod; `None` if it leaves them alone.
    pub const fn pod_change(self) -> Option<PodChange> {
        self.pod
    }

    /// Is a copy written?
    pub const fn is_copy(self) -> bool {
        self.is_copy
    }
}

impl fmt::Debug for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb)
    }
}

/// Intents that kinds share.
impl Intent {
    /// A new revision.
    pub const CREATE_REVISION: Self = Self::of_scale("create-revision");
    /// An old revision becomes the newest again.
    pub const RENUMBER_REVISION: Self = Self::of_update("renumber-revision");
    /// A revision's annotation records which template it is for.
    pub const NOTE_TEMPLATE: Self = Self::untold("note-template");
    /// An unused revision is deleted.
    pub const DELETE_REVISION: Self = Self::of_update("delete-revision");
    /// A new pod.
    pub const CREATE_POD: Self = Self::of_scale("create-pod").of_pod(PodChange::Created);
    /// A pod is deleted, for good or to be replaced.
    pub const DELETE_POD: Self = Self::of_scale("delete-pod").of_pod(PodChange::Deleted);
    /// Readiness off before an in-place change.
    pub const MARK_UNREADY: Self = Self::of_update("mark-unready");
    /// Other resources of running containers.
    pub const RESIZE_POD: Self = Self::of_update("resize-pod").of_pod(PodChange::Resized);
    /// The in-place change itself.
    pub const UPDATE_IN_PLACE: Self = Self::of_update("update-in-place").of_pod(PodChange::Updated);
    /// Readiness on and lifecycle forward, after creation or an in-place change.
    pub const MARK_READY: Self = Self::of_update("mark-ready");
    /// A lifecycle label alone.
    pub const SET_LIFECYCLE: Self = Self::of_update("set-lifecycle");
    /// The specified-delete label: replace this pod when limits allow.
    pub const REQUEST_DELETE: Self = Self::of_update("request-delete").of_pod(PodChange::Deleted);
    /// A pod that no longer matches the selector loses our owner reference.
    pub const RELEASE_POD: Self = Self::of_scale("release-pod");
    /// A pod without a controller gets our owner reference.
    pub const ADOPT_POD: Self = Self::of_scale("adopt-pod");
    /// Pods that are about to become unavailable are charged to their budget.
    pub const CHARGE_BUDGET: Self = Self::of_update("charge-budget");
    /// A pod gets back the labels that say which of the workload's pods it is.
    pub const REPAIR_IDENTITY: Self = Self::of_update("repair-identity");
    /// A new claim, for a pod that is about to be created.
    pub const CREATE_CLAIM: Self = Self::of_scale("create-claim");
    /// A job that pulls an image, ahead of a rollout or as one of a list.
    pub const CREATE_PULL_JOB: Self = Self::untold("create-pull-job");
    /// A job that pulls an image is deleted: the rollout is over, another took its place, or its image left the list.
    pub const DELETE_PULL_JOB: Self = Self::untold("delete-pull-job");
    /// A job is deleted: it ended long enough ago.
    pub const DELETE_JOB: Self = Self::of_update("delete-job");
    /// A job that is being deleted is not held back any more.
    pub const RELEASE_JOB: Self = Self::of_update("release-job");
    /// A revision's label records whether its images are pulled ahead of the rollout.
    pub const NOTE_IMAGES: Self = Self::untold("note-images");
}
