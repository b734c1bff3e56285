//! Messages of the container runtime interface, as a runtime reads and writes them. Field numbers are those of
//! `runtime.v1`.

use std::collections::BTreeMap;

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct About {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
    #[prost(string, tag = "2")]
    pub(crate) runtime_name: String,
    #[prost(string, tag = "3")]
    pub(crate) runtime_version: String,
    #[prost(string, tag = "4")]
    pub(crate) runtime_api_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ImageSpec {
    #[prost(string, tag = "1")]
    pub(crate) image: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Image {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) repo_tags: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Images {
    #[prost(message, repeated, tag = "1")]
    pub(crate) images: Vec<Image>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Auth {
    #[prost(string, tag = "1")]
    pub(crate) username: String,
    #[prost(string, tag = "2")]
    pub(crate) password: String,
    #[prost(string, tag = "5")]
    pub(crate) identity_token: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Sandbox {
    #[prost(btree_map = "string, string", tag = "6")]
    pub(crate) labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "7")]
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PullRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) image: Option<ImageSpec>,
    #[prost(message, optional, tag = "2")]
    pub(crate) auth: Option<Auth>,
    #[prost(message, optional, tag = "3")]
    pub(crate) sandbox_config: Option<Sandbox>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PullResponse {
    #[prost(string, tag = "1")]
    pub(crate) image_ref: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Mountpoint {
    #[prost(string, tag = "1")]
    pub(crate) mountpoint: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FilesystemUsage {
    #[prost(message, optional, tag = "2")]
    pub(crate) fs_id: Option<Mountpoint>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Filesystems {
    #[prost(message, repeated, tag = "1")]
    pub(crate) image_filesystems: Vec<FilesystemUsage>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Filter {
    #[prost(btree_map = "string, string", tag = "4")]
    pub(crate) label_selector: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListContainersRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) filter: Option<Filter>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ContainerMetadata {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Container {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) metadata: Option<ContainerMetadata>,
    /// 1 for a running one.
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
pub(crate) struct Containers {
    #[prost(message, repeated, tag = "1")]
    pub(crate) containers: Vec<Container>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ContainerStatus {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(int32, tag = "3")]
    pub(crate) state: i32,
    #[prost(int64, tag = "4")]
    pub(crate) created_at: i64,
    #[prost(int64, tag = "5")]
    pub(crate) started_at: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<ContainerStatus>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExecRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) cmd: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExecResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) stdout: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) stderr: Vec<u8>,
    #[prost(int32, tag = "3")]
    pub(crate) exit_code: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StopRequest {
    #[prost(string, tag = "1")]
    pub(crate) container_id: String,
    #[prost(int64, tag = "2")]
    pub(crate) timeout: i64,
}
