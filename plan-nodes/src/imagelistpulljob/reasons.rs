//! Reasons of events of an ImageListPullJob, beside those that kinds share.

kruise_api::reasons! {
    CREATED_LISTED_JOB = "Successful create ImagePullJob", Normal, "A job was created for an image of the list.";
    DELETED_LISTED_JOB = "Successful delete ImagePullJob", Normal, "A job whose image left the list, or whose template changed, was deleted.";
}
