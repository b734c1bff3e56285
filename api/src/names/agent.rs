//! What the node agent writes: who its events are from, and their reasons. Tools match on reasons and types.

crate::reasons! {
    PULL_IMAGE_SUCCEED = "PullImageSucceed", Normal, ["NodeImage"], "The node has an image that it was to have.";
    PULL_IMAGE_FAILED = "PullImageFailed", Warning, ["ImagePullJob", "NodeImage"], "An image could not be pulled; the message ends with the last error.";
    PULL_SECRET_UNUSED = "FailedToRetrieveImagePullSecret", Warning, ["ImagePullJob", "NodeImage"], "A pull began without a pull secret that does not exist or cannot be read; the message says why.";
    INSUFFICIENT_DISK = "InsufficientDiskSpace", Warning, ["NodeImage"], "The node is short of disk space; no image is pulled until there is more.";
    RUNTIME_UNAVAILABLE = "ContainerRuntimeUnavailable", Warning, ["NodeImage"], "The agent cannot reach a container runtime; the message says why.";
    KILLING = "Killing", Normal, ["Pod"], "A container is stopped, for it to start with a new environment, or for a ContainerRecreateRequest.";
    PROBE_SUCCEEDED = "KruiseProbeSucceeded", Normal, ["Pod"], "The result of a probe of a PodProbeMarker has become success; the message is what the container answered.";
    PROBE_FAILED = "KruiseProbeFailed", Warning, ["Pod"], "The result of a probe of a PodProbeMarker has become failure; the message is what the container answered, or what went wrong.";
    FAILED_PRE_STOP_HOOK = "FailedPreStopHook", Warning, ["Pod"], "The preStop hook of a container that is stopped has failed; the container is stopped all the same.";
}

/// Label of agents, and its value: OpenKruise's.
pub const LABEL: [&str; 2] = ["control-plane", "daemon"];
/// Label of agents, any value: they read the pods whose containers they stop, so that requests need no copies of hooks.
pub const READS_PODS: &str = "apps.kruise.io/agent-reads-pods";

/// Component of events about images.
pub const IMAGE_PULLER: &str = "kruise-daemon-imagepuller";
/// Component of events about containers that are restarted for their environment.
pub const CONTAINER_META: &str = "kruise-daemon-containermeta";
/// Component of events about containers that are stopped for ContainerRecreateRequests.
pub const CONTAINER_RECREATE: &str = "kruise-daemon-crr";
/// Component of events about probes.
pub const POD_PROBE: &str = "kruise-daemon-podprobe";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_reason_is_one_word_and_listed_once() {
        let names: BTreeSet<&str> = super::ALL.iter().map(|reason| reason.name).collect();
        assert_eq!(names.len(), super::ALL.len());
        let is_word = |name: &&str| name.chars().all(char::is_alphanumeric);
        assert!(names.iter().all(is_word));
    }
}
