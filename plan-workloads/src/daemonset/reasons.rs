//! Reasons of events of a DaemonSet, beside those that kinds share.

kruise_api::reasons! {
    FAILED_DAEMON_POD = "FailedDaemonPod", Warning, "A pod has failed on its node and is replaced.";
    SELECTING_ALL = "SelectingAll", Warning, "The selector is empty; nothing is done.";
}
