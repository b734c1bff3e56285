//! Reasons of events of a StatefulSet, beside those that kinds share.

kruise_api::reasons! {
    SUCCESSFUL_UPDATE = "SuccessfulUpdate", Normal, "A pod got the labels back that name it.";
    SUCCESSFUL_RESIZE = "SuccessfulResize", Normal, "A claim asks for as much storage as its template.";
    FAILED_RESIZE = "FailedResize", Warning, "A claim could not ask for more storage.";
    FAILED_UPDATE_CLAIM = "FailedUpdatePVC", Warning, "A claim cannot follow its template; its pod is not updated.";
}
