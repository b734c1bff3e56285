//! Reasons of events of an EphemeralJob, beside those that kinds share.

kruise_api::reasons! {
    ADDED_CONTAINERS = "AddedContainers", Normal, "A pod got the ephemeral containers of the job.";
    CREATE_FAILED = "CreateFailed", Warning, "A pod could not get the ephemeral containers of the job; the message is the error of the API server.";
    EPHEMERAL_SUCCEEDED = "JobSucceeded", Normal, "The containers of all pods have ended with exit code 0.";
    EPHEMERAL_FAILED = "JobFailed", Warning, "The containers of all pods have ended, some of them badly; the message says which.";
}
