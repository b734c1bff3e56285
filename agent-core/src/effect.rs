//! What an agent wants done.

use std::sync::Arc;
use std::time::Duration;

use kruise_api::names::events::Reason;
use serde_json::Value;

use crate::{AttemptId, ContainerId, Handler, ObjectRef, ProbedContainers, RunId, Sandbox, SecretRef};

/// Something to be done, in any order and side by side with others. Answers are events.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Look for container runtimes that work. Answer: `RuntimesDetected`.
    DetectRuntimes,
    /// List the images of the first runtime. Answer: `ImagesListed`.
    ListImages,
    /// Measure the file system that holds the images of the first runtime. Answer: `FilesystemRead`.
    ReadFilesystem,
    /// Read secrets from the API server, anew, and keep them for the attempt until it ends. Answer: `SecretsRead`, not
    /// needed after `CancelPull` for the attempt.
    ReadSecrets {
        /// The attempt.
        attempt: AttemptId,
        /// Which secrets.
        secrets: Box<[SecretRef]>,
    },
    /// Pull an image with the first runtime. Answer: `PullEnded`.
    Pull(Pull),
    /// Cancel the call of an attempt, and drop the secrets that were read for it. `PullEnded` still follows if
    /// `Pull` came before.
    CancelPull(AttemptId),
    /// List all containers of a pod, those that ended included. Answer: `ContainersRead`.
    ReadContainers {
        /// UID of the pod.
        pod: Box<str>,
        /// Name of the runtime.
        runtime: Box<str>,
    },
    /// Read a pod from the API server. Answer: `PodRead`.
    ReadPod {
        /// UID of the request that it is for.
        request: Box<str>,
        /// Namespace of the pod.
        namespace: Box<str>,
        /// Name of the pod.
        name: Box<str>,
    },
    /// List all containers of a pod, those that ended included, and find out when some of them started. Answer:
    /// `ContainersInspected`.
    InspectContainers {
        /// UID of the request that it is for.
        request: Box<str>,
        /// UID of the pod.
        pod: Box<str>,
        /// Name of the runtime.
        runtime: Box<str>,
        /// Names of the containers whose start is to be found out, if they run.
        containers: Box<[Box<str>]>,
    },
    /// Run `env` in a container. Answer: `EnvironmentRead`.
    ReadEnvironment {
        /// The container.
        container: ContainerId,
        /// When it is given up.
        timeout: Duration,
    },
    /// Run the preStop hook of a container. Answer: `PreStopEnded`.
    RunPreStop {
        /// The container.
        container: ContainerId,
        /// The hook.
        hook: Handler,
        /// When it is given up.
        timeout: Duration,
    },
    /// Stop a container. Answer: `ContainerStopped`.
    StopContainer {
        /// The container.
        container: ContainerId,
        /// From the first signal to the last one. The call may take longer: until the runtime answers.
        grace: Duration,
    },
    /// Merge patch of the status of the NodeImage. It carries the UID, which makes it fail for another object of
    /// this name. Answer: `StatusWritten`.
    PatchNodeImageStatus {
        /// Name of the NodeImage.
        name: Box<str>,
        /// The patch, in the newest version.
        patch: Value,
    },
    /// Strategic merge patch of the status of a pod; it carries the UID, too. Answer: `ReportWritten`.
    PatchPodStatus {
        /// Namespace.
        namespace: Box<str>,
        /// Name.
        name: Box<str>,
        /// UID, for the answer.
        uid: Box<str>,
        /// The patch.
        patch: Value,
    },
    /// Merge patch of the status of a ContainerRecreateRequest. It carries the UID, and the version if an unseen
    /// change would make it wrong. Answer: `RequestWritten`.
    PatchRequestStatus {
        /// Namespace.
        namespace: Box<str>,
        /// Name.
        name: Box<str>,
        /// UID, for the answer.
        uid: Box<str>,
        /// The patch, in the newest version.
        patch: Value,
    },
    /// List the containers of pods that are probed, of all runtimes. Answer: `ProbedContainersListed`.
    ListProbedContainers(Arc<ProbedContainers>),
    /// Run a probe. Answer: `ProbeEnded`, not needed after `CancelProbe` for it.
    RunProbe(ProbeRun),
    /// Cancel a probe that runs.
    CancelProbe(RunId),
    /// JSON patch of the status of the NodePodProbe. It tests the UID, and of each entry that it changes whose it
    /// is. Answer: `ProbesWritten`.
    PatchNodePodProbeStatus {
        /// Name of the NodePodProbe.
        name: Box<str>,
        /// The operations.
        patch: Value,
    },
    /// Emit an event.
    Event(EventNote),
    /// The health of the agent has changed.
    Health(Health),
    /// Write a line to the log.
    Log(Level, String),
}

/// A call that pulls an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// The attempt.
    pub attempt: AttemptId,
    /// Reference of the image, with tag or digest.
    pub image: Box<str>,
    /// Where credentials are taken from, in this order. Those that match the image are tried one after the other;
    /// if none does, the image is pulled without.
    pub credentials: Vec<CredentialSource>,
    /// What the sandbox configuration says.
    pub sandbox: Sandbox,
    /// When the call is given up, all credentials together.
    pub timeout: Duration,
}

/// Where credentials are taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// A secret that was read for this attempt.
    Secret(SecretRef),
    /// Provider plugins, and the configuration files of the agent.
    Keyring,
}

/// A run of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRun {
    /// The run.
    pub run: RunId,
    /// The container. A command runs in it; requests and connections go to its pod.
    pub container: ContainerId,
    /// What is done.
    pub handler: Handler,
    /// When it has failed for taking too long.
    pub timeout: Duration,
}

/// An event for the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    /// What it is about.
    pub about: About,
    /// Severity, and one word for machines.
    pub reason: &'static Reason,
    /// A sentence for people.
    pub message: String,
    /// Who it is from.
    pub component: &'static str,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// The NodeImage of this node.
    NodeImage {
        /// Name.
        name: Box<str>,
        /// UID.
        uid: Box<str>,
    },
    /// Any object.
    Object(ObjectRef),
    /// A pod.
    Pod {
        /// Namespace.
        namespace: Box<str>,
        /// Name.
        name: Box<str>,
        /// UID.
        uid: Box<str>,
    },
    /// A container of a pod (`fieldPath` is `spec.containers{name}`).
    Container {
        /// Namespace of the pod.
        namespace: Box<str>,
        /// Name of the pod.
        pod: Box<str>,
        /// UID of the pod.
        uid: Box<str>,
        /// Name of the container.
        container: Box<str>,
    },
}

/// Can the agent do its work?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It has not found a runtime yet, nor failed to.
    Starting,
    /// It can.
    Ready,
    /// It waits for a container runtime, in plain words why.
    Degraded(Box<str>),
}

/// Level of a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something that an operator may have to look at.
    Warning,
    /// Something that happens now and then.
    Info,
}
