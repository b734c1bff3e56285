//! Reasons of events of a PodUnavailableBudget, beside those that kinds share.

kruise_api::reasons! {
    NO_PODS = "NoPods", Normal, "The budget covers no active pods.";
    EXPECTED_UNREADABLE = "CalculateExpectedPodCountFailed", Warning, "maxUnavailable or minAvailable cannot be read; the budget is not counted.";
    NOT_DELETED = "NotDeleted", Warning, ["Pod"], "A deletion or an eviction that a budget allowed did not happen within 20 seconds.";
}
