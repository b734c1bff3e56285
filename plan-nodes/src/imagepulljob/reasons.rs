//! Reasons of events of an ImagePullJob, beside those that kinds share.

kruise_api::reasons! {
    NO_NODE = "WaitingForNodes", Normal, "No node that the job selects has a NodeImage; the job waits for one.";
    PULL_SECRET_MISSING = "PullSecretMissing", Warning, "A pull secret that the job names does not exist; nodes pull without it.";
    PULL_SECRET_REFUSED = "PullSecretRefused", Warning, "A pull secret that the job names has a type that holds no credentials of images; it is not copied, and nodes pull without it.";
    FAILED_SECRET_COPY = "FailedCopyPullSecret", Warning, "A pull secret could not be copied for the node agents; the job waits for it.";
    CHANGE_IGNORED = "ChangeIgnored", Warning, "The job had ended before its specification was changed; nothing is pulled for the change.";
}
