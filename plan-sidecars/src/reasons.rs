//! Reasons of events of a SidecarSet, beside those that kinds share.

kruise_api::reasons! {
    INVALID_POD_METADATA = "InvalidPodMetadata", Warning, "A pod annotation that the SidecarSet patches cannot be merged; the pod is not upgraded.";
    NOT_UPGRADABLE = "NotUpgradablePods", Normal, "Pods cannot be upgraded in place; written when their number changes.";
    UNINJECTED = "UninjectedPods", Warning, "Pods that the SidecarSet matches were created without its sidecars; written when their number changes.";
    RESET_SUCCEED = "ResetContainerSucceed", Normal, "After a hot upgrade the old container was set to the empty image.";
    RESET_FAILED = "ResetContainerFailed", Warning, "After a hot upgrade the old container could not be set to the empty image.";
}
