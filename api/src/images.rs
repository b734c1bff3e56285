//! Images on nodes ahead of need: NodeImage, ImagePullJob, ImageListPullJob.

mod crd;
pub(crate) mod template;

pub(crate) use crd::image_list_spec;
pub use crd::{IMAGE_LIST_PULL_JOB, IMAGE_PULL_JOB, NODE_IMAGE};
