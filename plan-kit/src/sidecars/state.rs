//! A pod's annotation about upgrades of its sidecars: what each container ran when its image was changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::inplace::ImageStatus;

/// One set's entry in the annotation [`super::names::INPLACE_STATE`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpgradeState {
    /// Hash of the set at the first upgrade.
    pub revision: String,
    /// When that was, RFC 3339.
    pub update_timestamp: Option<String>,
    /// What each container ran when it was last changed; `None` is written `null`.
    pub last_container_statuses: Option<BTreeMap<String, ImageStatus>>,
    /// Members of a later version, kept.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// The entries, by set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpgradeStates(pub BTreeMap<String, UpgradeState>);

impl UpgradeStates {
    /// Reads an annotation; an empty one has no entries. The error has the parser's words.
    pub fn read(annotation: &str) -> Result<Self, String> {
        if annotation.is_empty() {
            return Ok(Self::default());
        }
        let entries: Option<BTreeMap<String, UpgradeState>> =
            serde_json::from_str(annotation).map_err(|error| error.to_string())?;
        Ok(Self(entries.unwrap_or_default()))
    }

    /// The text of the annotation.
    pub fn write(&self) -> String {
        // Maps and structs of strings always serialize.
        serde_json::to_string(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::UpgradeStates;

    #[test]
    fn a_stored_state_reads_and_writes_back_byte_for_byte() {
        let stored = r#"{"logs":{"revision":"d9xcc5db75w2","updateTimestamp":"2026-11-21T03:54:26Z","lastContainerStatuses":{"log-agent":{"imageID":"fake://busybox:1.35"}},"later":[1]}}"#;
        assert_eq!(UpgradeStates::read(stored).unwrap().write(), stored);
        assert!(UpgradeStates::read("").unwrap().0.is_empty());
        assert!(UpgradeStates::read("{").is_err());
    }
}
