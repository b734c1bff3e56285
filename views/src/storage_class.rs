//! A storage class: whether volumes of it can grow.

use kube_cache::Cached;
use serde::{Deserialize, Deserializer};

/// Identity of a storage class, and whether its volumes can grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageClassView {
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// Is `allowVolumeExpansion` true?
    pub expands: bool,
}

impl Cached for StorageClassView {
    fn namespace(&self) -> &'static str {
        ""
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wire {
    metadata: Meta,
    allow_volume_expansion: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
}

impl<'de> Deserialize<'de> for StorageClassView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        Ok(Self {
            name: wire.metadata.name,
            uid: wire.metadata.uid,
            resource_version: wire.metadata.resource_version,
            expands: wire.allow_volume_expansion == Some(true),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::StorageClassView;

    #[test]
    fn a_class_expands_only_if_it_says_so() {
        for (member, expands) in [
            (r#","allowVolumeExpansion":true"#, true),
            (r#","allowVolumeExpansion":false"#, false),
            (r#","allowVolumeExpansion":null"#, false),
            ("", false),
        ] {
            let text = format!(r#"{{"metadata":{{"name":"fast","uid":"u"}},"provisioner":"x"{member}}}"#);
            let class: StorageClassView = serde_json::from_str(&text).unwrap();
            assert_eq!((&*class.name, class.expands), ("fast", expands), "{text}");
        }
    }
}
