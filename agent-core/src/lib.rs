//! The agent of a node as a state machine: from events of the API server and of the container runtime to calls of the
//! runtime, writes and events.
//!
//! [`Agent::handle`] takes an [`Event`] and returns [`Effect`]s; [`Agent::next_timer`] says when to call again if
//! nothing happens. The caller carries the effects out and reports their ends.
//!
//! * **Images**: a NodeImage lists what the node is to have. Each tag is pulled in a round of attempts, and its
//!   state is reported in the status.
//! * **Metadata of containers**: what the containers of a pod run with is reported on the pod, which in-place
//!   updates wait for, and containers whose environment is outdated are stopped.
//! * **ContainerRecreateRequests**: containers of running pods are stopped, for the kubelet to start them anew, and
//!   how that goes is reported in the status of the request.
//! * **Probes**: a NodePodProbe lists probes of containers. They are run, and their results are reported in the status.
//!
//! Invariants: no I/O, no clock, no randomness, ordered containers only. Secrets are named, and never seen. Memory
//! grows with what the NodeImage lists, with the pods that are reported and with the requests, not with what the
//! runtime has.

mod agent;
mod annotations;
mod call;
mod config;
mod effect;
mod event;
mod hook;
mod images;
mod names;
mod node_image;
mod node_pod_probe;
mod probe;
mod recreate;
mod reports;
mod request;
mod runtime;
mod status_writer;
mod stop;

pub use agent::Agent;
pub use config::Config;
pub use effect::{About, CredentialSource, Effect, EventNote, Health, Level, ProbeRun, Pull};
pub use event::{
    Event, Failure, Filesystem, Life, ProbeResult, ProbedContainer, ProbedContainers, PullError,
    RuntimeContainer, RuntimeImage, SecretState, WriteError,
};
pub use names::{AttemptId, ContainerId, Handler, RunId, Sandbox, SecretRef};
pub use node_image::{
    FirstSync, ImageSpec, ImageStatus, NodeImageStatus, NodeImageView, ObjectRef, Phase, TagSpec, TagStatus,
};
pub use node_pod_probe::{ContainerProbe, NodePodProbeView, PodProbeStatus, Probe, ProbeState, ProbedPod};
pub use request::{
    ContainerHook, ContainerPhase, ContainerState, PodHooks, RequestStatus, RequestView, RequestedContainer,
    Restarts, SnapshotEntry, StatusContext, Strategy,
};
