//! Reasons of events of an AdvancedCronJob, beside those that kinds share.

kruise_api::reasons! {
    MISS_SCHEDULE = "MissSchedule", Warning, "A job was not created, because it could not start within startingDeadlineSeconds.";
    TOO_MANY_MISSED = "TooManyMissedTimes", Warning, "More than a hundred activations had passed; a job is created for the latest one only.";
    JOB_ALREADY_ACTIVE = "JobAlreadyActive", Normal, "A job is due and waits for the one that runs, as concurrencyPolicy Forbid asks.";
    SAW_COMPLETED_JOB = "SawCompletedJob", Normal, "A job has ended; the message says how.";
    MISSING_JOB = "MissingJob", Normal, "A job that ran was deleted by somebody else.";
    UNKNOWN_TIME_ZONE = "UnknownTimeZone", Warning, "The time zone is not known; the schedule follows the zone of the manager.";
}
