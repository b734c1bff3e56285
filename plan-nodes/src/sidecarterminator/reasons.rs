//! Reasons of events of pods whose sidecars are to end, beside those that kinds share.

kruise_api::reasons! {
    SIDECAR_TERMINATOR = "SidecarTerminator", Normal, ["Pod"], "The main containers of a pod have ended, and its sidecars are terminated; the message says which, and how.";
    SIDECAR_NOT_TERMINATED = "SidecarNotTerminated", Warning, ["Pod"], "A sidecar of a pod that is to end cannot be terminated, or runs again; the message says which, and what helps.";
}
