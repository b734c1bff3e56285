//! What a node reports of a pod's containers, in the annotation
//! [`RUNTIME_CONTAINERS_META`](crate::names::RUNTIME_CONTAINERS_META): the node agent writes it, in-place updates
//! wait for it.

use serde::{Deserialize, Serialize};

use crate::meta::null_as_default;

/// The annotation. Members are written in this order, without spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ContainersMeta {
    /// One entry for each container that runs or ran, in the order of the pod's status.
    #[serde(deserialize_with = "null_as_default")]
    pub containers: Vec<ContainerMeta>,
}

/// One container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerMeta {
    /// Name in the specification.
    pub name: String,
    /// Id, after the name of its runtime.
    #[serde(rename = "containerID")]
    pub container_id: String,
    /// Restarts before this container.
    pub restart_count: i32,
    /// Hashes of what it runs with.
    #[serde(deserialize_with = "null_as_default")]
    pub hashes: ContainerHashes,
}

/// Hashes of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerHashes {
    /// What the kubelet recorded of its specification.
    pub plain_hash: u64,
    /// Of the environment variables that read labels and annotations of the pod; 0 if that is not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub extracted_env_from_metadata_hash: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ContainersMeta {
    /// The entry of a container.
    pub fn entry(&self, name: &str) -> Option<&ContainerMeta> {
        self.containers.iter().find(|entry| entry.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_the_go_struct() {
        let entry = |name: &str, hash| ContainerMeta {
            name: name.into(),
            container_id: format!("containerd://{name}"),
            restart_count: 1,
            hashes: ContainerHashes {
                plain_hash: 436_018_172,
                extracted_env_from_metadata_hash: hash,
            },
        };
        let meta = ContainersMeta {
            containers: vec![entry("main", 86_995_377), entry("log", 0)],
        };
        let text = concat!(
            r#"{"containers":[{"name":"main","containerID":"containerd://main","restartCount":1,"#,
            r#""hashes":{"plainHash":436018172,"extractedEnvFromMetadataHash":86995377}},"#,
            r#"{"name":"log","containerID":"containerd://log","restartCount":1,"hashes":{"plainHash":436018172}}]}"#,
        );
        assert_eq!(serde_json::to_string(&meta).unwrap(), text);
        assert_eq!(serde_json::from_str::<ContainersMeta>(text).unwrap(), meta);
    }

    #[test]
    fn what_is_missing_or_null_is_read_as_nothing() {
        for text in ["{}", r#"{"containers":null}"#] {
            assert_eq!(
                serde_json::from_str::<ContainersMeta>(text).unwrap(),
                ContainersMeta::default()
            );
        }
        let meta: ContainersMeta =
            serde_json::from_str(r#"{"containers":[{"name":"a","hashes":null}]}"#).unwrap();
        assert_eq!(
            meta.entry("a").map(|entry| entry.hashes),
            Some(ContainerHashes::default())
        );
    }
}
