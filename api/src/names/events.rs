//! Reasons of events. Tools match on reasons and types.
//!
//! Here are those that kinds share. A kind declares its own beside its plan, and its registration says which it writes:
//! the reference in `docs/reference` is generated from them.

use std::fmt;

/// Severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// Information.
    Normal,
    /// A problem.
    Warning,
}

impl EventKind {
    /// The wire form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Why an event is written.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// One word for machines.
    pub name: &'static str,
    /// The type of the event.
    pub kind: EventKind,
    /// The kinds of object that it is about, where these are others than that of its controller.
    pub on: &'static [&'static str],
    /// When it is written.
    pub when: &'static str,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq<str> for Reason {
    fn eq(&self, other: &str) -> bool {
        self.name == other
    }
}

/// A static of type [`Reason`] for each line, and `ALL` of them: name, type, kinds of object where these are not
/// that of the controller, and when it is written.
#[macro_export]
macro_rules! reasons {
    ($($constant:ident = $name:literal, $kind:ident, $([$($on:literal),+],)? $when:literal;)+) => {
        $(
            #[doc = $when]
            pub static $constant: $crate::names::events::Reason = $crate::names::events::Reason {
                name: $name,
                kind: $crate::names::events::EventKind::$kind,
                on: &[$($($on),+)?],
                when: $when,
            };
        )+
        /// Every reason of them.
        pub const ALL: &[&$crate::names::events::Reason] = &[$(&$constant),+];
    };
}

crate::reasons! {
    SUCCESSFUL_CREATE = "SuccessfulCreate", Normal, "A pod, or a job of a schedule, was created.";
    FAILED_CREATE = "FailedCreate", Warning, "A pod, a claim, or a job of a schedule or a list of images could not be created; the message ends with the error of the API server.";
    SUCCESSFUL_DELETE = "SuccessfulDelete", Normal, "A pod, or a job of a schedule, was deleted.";
    FAILED_DELETE = "FailedDelete", Warning, "A pod, a claim or a job of a schedule could not be deleted.";
    FAILED_UPDATE = "FailedUpdate", Warning, "A claim could not be assigned to its owners, or a pod not get its labels back.";
    SUCCESSFUL_IN_PLACE = "SuccessfulUpdatePodInPlace", Normal, "A pod was updated in place; its containers change next.";
    FAILED_IN_PLACE = "FailedUpdatePodInPlace", Warning, "A pod could not be updated in place.";
    INVALID_STATE = "InvalidInPlaceUpdateState", Warning, "The annotation with the state of an in-place update cannot be read.";
    CREATED_PULL_JOB = "CreatedImagePullJob", Normal, "A job that pulls an image ahead of a rollout was created.";
    FAILED_PULL_JOB = "FailedCreateImagePullJob", Warning, "A job that pulls an image ahead of a rollout could not be created.";
    RESIZE_INFEASIBLE = "ResizeInfeasible", Warning, "A node can never give a pod the resources that an update asks for.";
    CONTAINER_REPLACED = "ContainerReplaced", Warning, "A sidecar has the name of a container of the pod template, and has taken its place in the pods; the message says which. Rename one of them.";
    STALLED = "Stalled", Warning, "A rollout is past its deadline or, without a deadline, made no progress for ten minutes, or the API server refuses the new pods; the message says what it waits for.";
    INVALID_SPEC = "InvalidSpec", Warning, "The specification cannot be read; nothing is done.";
    DEADLINE_EXCEEDED = "DeadlineExceeded", Warning, "The job ran longer than activeDeadlineSeconds and has failed.";
    PULL_IMAGE_FAILED = "PullImageFailed", Warning, "A node did not pull an image, and its agent does not respond.";
    WORKLOAD_UNREADABLE = "WorkloadUnreadable", Warning, "The workload is of a kind that is not served, or that the manager may not read; its pods are not recorded or counted.";
}

/// What becomes of the objects that a kind creates and deletes.
pub const OF_CHILDREN: &[&Reason] = &[
    &SUCCESSFUL_CREATE,
    &FAILED_CREATE,
    &SUCCESSFUL_DELETE,
    &FAILED_DELETE,
];
