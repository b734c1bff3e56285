//! The interface's messages: of requests the fields that are sent, of answers the fields that are read. Field
//! numbers are those of `runtime.v1` in Kubernetes' `cri-api`; fields that are not here are skipped.

use std::collections::BTreeMap;

use prost::Message;

pub(crate) const VERSION: &str = "/runtime.v1.RuntimeService/Version";
pub(crate) const LIST_CONTAINERS: &str = "/runtime.v1.RuntimeService/ListContainers";
pub(crate) const CONTAINER_STATUS: &str = "/runtime.v1.RuntimeService/ContainerStatus";
pub(crate) const EXEC_SYNC: &str = "/runtime.v1.RuntimeService/ExecSync";
pub(crate) const STOP_CONTAINER: &str = "/runtime.v1.RuntimeService/StopContainer";
pub(crate) const LIST_IMAGES: &str = "/runtime.v1.ImageService/ListImages";
pub(crate) const IMAGE_STATUS: &str = "/runtime.v1.ImageService/ImageStatus";
pub(crate) const PULL_IMAGE: &str = "/runtime.v1.ImageService/PullImage";
pub(crate) const IMAGE_FS_INFO: &str = "/runtime.v1.ImageService/ImageFsInfo";

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct VersionRequest {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
}

/// Each of its fields says `runtime` before its name.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct VersionResponse {
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(string, tag = "3")]
    pub(crate) version: String,
    #[prost(string, tag = "4")]
    pub(crate) api_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ImageSpec {
    #[prost(string, tag = "1")]
    pub(crate) image: String,
}

/// One of a `ListImagesResponse`, whose field 1 it is.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Image {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) repo_tags: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    pub(crate) repo_digests: Vec<String>,
    #[prost(uint64, tag = "4")]
    pub(crate) size: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ImageStatusRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) image: Option<ImageSpec>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ImageStatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) image: Option<Image>,
}

/// Holds secrets, so it prints nothing.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(crate) struct AuthConfig {
    #[prost(string, tag = "1")]
    pub(crate) username: String,
    #[prost(string, tag = "2")]
    pub(crate) password: String,
    #[prost(string, tag = "5")]
    pub(crate) identity_token: String,
    #[prost(string, tag = "6")]
    pub(crate) registry_token: String,
}

impl std::fmt::Debug for AuthConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuthConfig")
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodSandboxConfig {
    #[prost(btree_map = "string, string", tag = "6")]
    pub(crate) labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "7")]
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PullImageRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) image: Option<ImageSpec>,
    #[prost(message, optional, tag = "2")]
    pub(crate) auth: Option<AuthConfig>,
    #[prost(message, optional, tag = "3")]
    pub(crate) sandbox_config: Option<PodSandboxConfig>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PullImageResponse {
    #[prost(string, tag = "1")]
    pub(crate) image_ref: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FilesystemIdentifier {
    #[prost(string, tag = "1")]
    pub(crate) mountpoint: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Count {
    #[prost(uint64, tag = "1")]
    pub(crate) value: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FilesystemUsage {
    #[prost(message, optional, tag = "2")]
    pub(crate) fs_id: Option<FilesystemIdentifier>,
    #[prost(message, optional, tag = "3")]
    pub(crate) used_bytes: Option<Count>,
    #[prost(message, optional, tag = "4")]
    pub(crate) inodes_used: Option<Count>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ImageFsInfoResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) image_filesystems: Vec<FilesystemUsage>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) container_filesystems: Vec<FilesystemUsage>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ContainerFilter {
    #[prost(btree_map = "string, string", tag = "4")]
    pub(crate) label_selector: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListContainersRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) filter: Option<ContainerFilter>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ContainerMetadata {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(uint32, tag = "2")]
    pub(crate) attempt: u32,
}

/// One of a `ListContainersResponse`, whose field 1 it is.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Container {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) metadata: Option<ContainerMetadata>,
    #[prost(int32, tag = "6")]
    pub(crate) state: i32,
    #[prost(int64, tag = "7")]
    pub(crate) created_at: i64,
    #[prost(btree_map = "string, string", tag = "8")]
    pub(crate) labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "9")]
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ContainerStatusRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ContainerStatus {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) metadata: Option<ContainerMetadata>,
    #[prost(int32, tag = "3")]
    pub(crate) state: i32,
    #[prost(int64, tag = "4")]
    pub(crate) created_at: i64,
    #[prost(int64, tag = "5")]
    pub(crate) started_at: i64,
    #[prost(int64, tag = "6")]
    pub(crate) finished_at: i64,
    #[prost(int32, tag = "7")]
    pub(crate) exit_code: i32,
    #[prost(message, optional, tag = "8")]
    pub(crate) image: Option<ImageSpec>,
    #[prost(string, tag = "9")]
    pub(crate) image_ref: String,
    #[prost(string, tag = "10")]
    pub(crate) reason: String,
    #[prost(string, tag = "11")]
    pub(crate) message: String,
    #[prost(btree_map = "string, string", tag = "12")]
    pub(crate) labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "13")]
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ContainerStatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<ContainerStatus>,
}

/// The answer is read by [`Beginnings`](crate::grpc::Beginnings).
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExecSyncRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) cmd: Vec<String>,
    /// Seconds; 0 for no limit.
    #[prost(int64, tag = "3")]
    pub(crate) timeout: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StopContainerRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    /// Seconds; 0 to kill at once.
    #[prost(int64, tag = "2")]
    pub(crate) timeout: i64,
}
