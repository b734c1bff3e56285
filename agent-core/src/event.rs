//! What happens to an agent.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kruise_views::{Labels, NodePodView};

use crate::{
    AttemptId, ContainerId, NodeImageView, NodePodProbeView, PodHooks, RequestView, RunId, SecretRef,
};

/// Something that an agent has to know. Answers to effects are marked as such: each of these effects is answered once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The process has started.
    Started,
    /// Nothing but time has passed: [`Agent::next_timer`](crate::Agent::next_timer) is due.
    Timer,
    /// The NodeImage of this node was listed, created or changed.
    NodeImage(Arc<NodeImageView>),
    /// The NodeImage of this node was deleted, or there is none.
    NodeImageDeleted,
    /// A pod of this node was listed, created or changed.
    Pod {
        /// The pod.
        pod: Arc<NodePodView>,
        /// Is it part of the first list after the start?
        initial: bool,
    },
    /// A pod of this node is gone.
    PodDeleted {
        /// Its UID.
        uid: Box<str>,
    },
    /// A ContainerRecreateRequest for a pod of this node was listed, created or changed.
    Request(Arc<RequestView>),
    /// A ContainerRecreateRequest is gone, or no longer active.
    RequestDeleted {
        /// Its UID.
        uid: Box<str>,
    },
    /// The NodePodProbe of this node was listed, created or changed.
    NodePodProbe(Arc<NodePodProbeView>),
    /// The NodePodProbe of this node was deleted, or there is none.
    NodePodProbeDeleted,
    /// A runtime that was detected cannot be reached any more, in plain words. Calls that fail say so themselves;
    /// this is for times without calls.
    RuntimeLost(Box<str>),
    /// Answer to [`Effect::DetectRuntimes`](crate::Effect::DetectRuntimes): the names of the runtimes that work, in
    /// the order of their preference, or why none does.
    RuntimesDetected(Result<Box<[Box<str>]>, Box<str>>),
    /// Answer to [`Effect::ListImages`](crate::Effect::ListImages).
    ImagesListed(Result<Vec<RuntimeImage>, Failure>),
    /// Answer to [`Effect::ReadFilesystem`](crate::Effect::ReadFilesystem).
    FilesystemRead(Result<Filesystem, Failure>),
    /// Answer to [`Effect::ReadSecrets`](crate::Effect::ReadSecrets).
    SecretsRead {
        /// The attempt that they are for.
        attempt: AttemptId,
        /// What is known of each of them.
        secrets: Vec<(SecretRef, SecretState)>,
    },
    /// Answer to [`Effect::Pull`](crate::Effect::Pull), also after
    /// [`Effect::CancelPull`](crate::Effect::CancelPull): the reference of the image that the runtime returned.
    PullEnded {
        /// The attempt.
        attempt: AttemptId,
        /// How it ended.
        result: Result<Box<str>, PullError>,
    },
    /// Answer to [`Effect::ReadContainers`](crate::Effect::ReadContainers).
    ContainersRead {
        /// UID of the pod.
        pod: Box<str>,
        /// All containers of the pod, those that ended included.
        result: Result<Vec<RuntimeContainer>, Failure>,
    },
    /// Answer to [`Effect::ReadPod`](crate::Effect::ReadPod): the pod; `None` if there is none.
    PodRead {
        /// UID of the request.
        request: Box<str>,
        /// Why it could not be read, in plain words.
        result: Result<Option<PodHooks>, Box<str>>,
    },
    /// Answer to [`Effect::InspectContainers`](crate::Effect::InspectContainers).
    ContainersInspected {
        /// UID of the request.
        request: Box<str>,
        /// As in [`ContainersRead`](Self::ContainersRead); of those that run and were asked for, with their start.
        result: Result<Vec<RuntimeContainer>, Failure>,
    },
    /// Answer to [`Effect::ReadEnvironment`](crate::Effect::ReadEnvironment): what `env` printed.
    EnvironmentRead {
        /// The container.
        container: ContainerId,
        /// Its standard output. A program that ended badly is a failure.
        result: Result<Box<str>, Failure>,
    },
    /// Answer to [`Effect::RunPreStop`](crate::Effect::RunPreStop).
    PreStopEnded {
        /// The container.
        container: ContainerId,
        /// Why it failed, if it did. Being out of time is a failure.
        result: Result<(), Box<str>>,
    },
    /// Answer to [`Effect::StopContainer`](crate::Effect::StopContainer).
    ContainerStopped {
        /// The container.
        container: ContainerId,
        /// Whether the runtime stopped it.
        result: Result<(), Failure>,
    },
    /// Answer to [`Effect::PatchNodeImageStatus`](crate::Effect::PatchNodeImageStatus): the version of the object
    /// after the write.
    StatusWritten(Result<Box<str>, WriteError>),
    /// Answer to [`Effect::PatchPodStatus`](crate::Effect::PatchPodStatus): the version of the pod after the write.
    ReportWritten {
        /// UID of the pod.
        pod: Box<str>,
        /// How it ended.
        result: Result<Box<str>, WriteError>,
    },
    /// Answer to [`Effect::PatchRequestStatus`](crate::Effect::PatchRequestStatus): the version of the request
    /// after the write.
    RequestWritten {
        /// UID of the request.
        request: Box<str>,
        /// How it ended.
        result: Result<Box<str>, WriteError>,
    },
    /// Answer to [`Effect::ListProbedContainers`](crate::Effect::ListProbedContainers): the newest container of
    /// each name in these pods.
    ProbedContainersListed(Result<Vec<ProbedContainer>, Failure>),
    /// Answer to [`Effect::RunProbe`](crate::Effect::RunProbe).
    ProbeEnded {
        /// The run.
        run: RunId,
        /// How it ended.
        result: ProbeResult,
    },
    /// Answer to [`Effect::PatchNodePodProbeStatus`](crate::Effect::PatchNodePodProbeStatus): the version of the
    /// object after the write.
    ProbesWritten(Result<Box<str>, WriteError>),
}

/// What is known of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretState {
    /// It exists.
    Found {
        /// Version of the stored object.
        version: Box<str>,
        /// Its annotation `imagepulljobs.kruise.io/references`: the jobs that it is for.
        references: Option<Box<str>>,
    },
    /// There is none.
    Missing,
    /// The agent may not read it, in plain words.
    Forbidden(Box<str>),
    /// It could not be read just now, in plain words. It may exist.
    Unreadable(Box<str>),
}

/// An image of the runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeImage {
    /// Its id, such as `sha256:…`.
    pub id: Box<str>,
    /// References with a tag.
    pub tags: Vec<Box<str>>,
    /// References with a digest.
    pub digests: Vec<Box<str>>,
}

/// The file system that holds the images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filesystem {
    /// Bytes that are free.
    pub free: u64,
    /// All of its bytes.
    pub size: u64,
}

/// A container of the runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeContainer {
    /// Its id, without the name of the runtime.
    pub id: Box<str>,
    /// Name in the specification of the pod.
    pub name: Box<str>,
    /// When it was created, in nanoseconds since 1970.
    pub created: i64,
    /// When it started, in nanoseconds since 1970, if that was asked for.
    pub started: Option<i64>,
    /// Is it running?
    pub is_running: bool,
    /// What it ended with, if it has ended and that was asked for.
    pub exit_code: Option<i32>,
    /// Its annotations, as the kubelet wrote them.
    pub annotations: Labels,
}

/// The pods whose containers are listed for their probes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbedContainers {
    /// UIDs of the pods.
    pub pods: BTreeSet<Box<str>>,
    /// Containers whose start is known, and is not to be found out again.
    pub known: BTreeSet<ContainerId>,
}

/// A container of a pod that is probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbedContainer {
    /// UID of the pod.
    pub pod: Box<str>,
    /// Name in the specification of the pod.
    pub name: Box<str>,
    /// Which one it is.
    pub container: ContainerId,
    /// When it was created.
    pub created: Timestamp,
    /// When it started, if it runs and that was to be found out.
    pub started: Option<Timestamp>,
    /// Where it is in its life.
    pub life: Life,
}

/// Where a container is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It has not started yet, or the runtime does not say.
    Created,
    /// It runs.
    Running,
    /// It has ended.
    Ended,
}

/// How a run of a probe ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// The container is as the probe wants it: what it answered.
    Succeeded(Box<str>),
    /// It is not: what it answered, or what went wrong.
    Failed(Box<str>),
    /// The probe could not be run, and says nothing of the container.
    NotRun(Failure),
}

/// A call of the runtime failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The runtime cannot be reached, in plain words.
    Unavailable(Box<str>),
    /// The runtime answered with an error, or with something that cannot be read.
    Failed(Box<str>),
}

/// A pull did not end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullError {
    /// The time of [`Pull::timeout`](crate::Pull::timeout) was over.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// As for any call.
    Failure(Failure),
}

/// A write was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// Another object has the name by now, or the object changed meanwhile.
    Conflict,
    /// There is no such object.
    NotFound,
    /// Anything else, in plain words.
    Failed(Box<str>),
}
