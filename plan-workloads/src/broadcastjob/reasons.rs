//! Reasons of events of a BroadcastJob, beside those that kinds share.

kruise_api::reasons! {
    TOO_MANY_ACTIVE = "TooManyActivePods", Warning, "More pods run than parallelism allows; none is created until some have ended.";
    DUPLICATE_POD = "DuplicatePodCreatedOnSameNode", Warning, "A node has two pods of the job.";
    NO_ROOM_FOR_PODS = "UnschedulablePods", Warning, "The scheduler finds no room for pods on their nodes; the job waits for them.";
    UNFIT_PODS = "PodsDoNotFit", Warning, "Pods may not run on their nodes by their own specification, though the template allows it; something changed them when they were created. They are deleted and created again at intervals that double.";
    JOB_CONTINUES = "Continue", Normal, "A paused or ended job continues.";
    JOB_PAUSED = "Paused", Warning, "A pod failed, and the failure policy pauses the job.";
    JOB_FAILED_FAST = "failed pod is found", Warning, "A pod failed, and the failure policy ends the job.";
    JOB_COMPLETE = "JobComplete", Normal, "Every node of the job has a pod that has ended.";
}
