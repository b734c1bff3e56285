//! Environment variables that read a label or an annotation of their pod.

use kruise_api::names::sidecarset::{ENV_VERSION, ENV_VERSION_ALT};

/// The two maps of a pod that a variable can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataMap {
    /// `metadata.labels`.
    Labels,
    /// `metadata.annotations`.
    Annotations,
}

impl MetadataMap {
    /// Its name in `metadata`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::Annotations => "annotations",
        }
    }
}

/// A variable of a container that reads one label or annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataVariable {
    /// Name of the variable.
    pub name: Box<str>,
    /// Which map it reads.
    pub map: MetadataMap,
    /// Which key of it.
    pub key: Box<str>,
}

impl MetadataVariable {
    /// Reads name and `fieldPath` of a variable; none for other paths, and for the versions that sidecar injection
    /// sets, for which no container restarts.
    pub fn of(name: &str, path: &str) -> Option<Self> {
        if [ENV_VERSION, ENV_VERSION_ALT].contains(&name) {
            return None;
        }
        let (map, key) = path.strip_prefix("metadata.")?.split_once("['")?;
        let map = match map {
            "labels" => MetadataMap::Labels,
            "annotations" => MetadataMap::Annotations,
            _ => return None,
        };
        Some(Self {
            name: name.into(),
            map,
            key: key.strip_suffix("']")?.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_single_labels_and_annotations_are_read() {
        let of = |name: &str, path: &str| {
            let variable = MetadataVariable::of(name, path)?;
            Some(format!("{} {}", variable.map.as_str(), variable.key))
        };
        assert_eq!(of("A", "metadata.labels['app']").as_deref(), Some("labels app"));
        let key = "metadata.annotations['example.com/a']";
        assert_eq!(of("A", key).as_deref(), Some("annotations example.com/a"));
        for path in [
            "metadata.labels",
            "metadata.name",
            "status.podIP",
            "metadata.uid['x']",
        ] {
            assert_eq!(of("A", path), None, "{path}");
        }
        for version in ["SIDECARSET_VERSION", "SIDECARSET_VERSION_ALT"] {
            assert_eq!(of(version, key), None, "{version}");
        }
    }
}
