//! The leader's settings: gates and flags that plans depend on, in an annotation of the leader lease.
//!
//! `kruise explain` reads them, so that it plans as the leader does. The annotation names its holder: OpenKruise
//! does not remove the annotation when it takes the lease over, and the settings of another holder do not count.

use anyhow::{anyhow, bail};
use kruise_api::{names::LEADER_SETTINGS, path::segment};
use kruise_runtime::Client;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{config::Config, gates::Gates};

/// The flag of [`LeaderSettings::exclude_preparing_delete`].
pub const EXCLUDE_PREPARING_DELETE: &str = "cloneset-scaling-exclude-preparing-delete";

/// Name of the leader lease, by default.
pub const LEASE: &str = "kruise-manager";

/// Gates and flags that plans depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderSettings {
    /// Feature gates after their dependencies.
    pub gates: Gates,
    /// Flag `--cloneset-scaling-exclude-preparing-delete`.
    pub exclude_preparing_delete: bool,
}

/// The annotation's JSON.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Annotation {
    holder: String,
    /// The gates that differ from their defaults.
    #[serde(default)]
    feature_gates: String,
    #[serde(default)]
    exclude_preparing_delete: bool,
}

impl LeaderSettings {
    /// The settings of a manager.
    pub fn of(config: &Config) -> Self {
        Self {
            gates: config.gates.clone(),
            exclude_preparing_delete: config.bool_flag(EXCLUDE_PREPARING_DELETE),
        }
    }

    /// Key and value of the annotation, for a lease of this holder.
    pub fn annotation(&self, holder: &str) -> (String, String) {
        let annotation = Annotation {
            holder: holder.to_owned(),
            feature_gates: self.gates.changed(),
            exclude_preparing_delete: self.exclude_preparing_delete,
        };
        // Serializing strings and booleans cannot fail.
        let text = serde_json::to_string(&annotation).unwrap_or_default();
        (LEADER_SETTINGS.to_owned(), text)
    }

    /// The settings of the holder of a lease.
    fn from_lease(lease: &Value) -> anyhow::Result<Self> {
        let annotations = lease.pointer("/metadata/annotations");
        let text = annotations.and_then(|all| all.get(LEADER_SETTINGS)?.as_str());
        let holder = lease.pointer("/spec/holderIdentity").and_then(Value::as_str);
        let annotation: Annotation = match text.map(serde_json::from_str).transpose() {
            Ok(annotation) => annotation.ok_or_else(|| anyhow!("its holder tells nothing of them"))?,
            Err(error) => bail!("what its holder tells cannot be read: {error}"),
        };
        match holder {
            None | Some("") => bail!("nobody holds it"),
            Some(holder) if holder != annotation.holder => bail!("its holder tells nothing of them"),
            Some(_) => Ok(Self {
                gates: Gates::parse(&annotation.feature_gates, "")?,
                exclude_preparing_delete: annotation.exclude_preparing_delete,
            }),
        }
    }
}

/// Reads the settings from a lease.
pub async fn read(client: &Client, namespace: &str, name: &str) -> anyhow::Result<LeaderSettings> {
    let (namespace, name) = (segment(namespace), segment(name));
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
    let lease: Value = client.get(&path).await?;
    LeaderSettings::from_lease(&lease)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::LeaderSettings;
    use crate::gates::Gates;

    fn settings(gates: &str, exclude_preparing_delete: bool) -> LeaderSettings {
        let gates = Gates::parse(gates, "").unwrap();
        LeaderSettings {
            gates,
            exclude_preparing_delete,
        }
    }

    fn lease(annotation: (String, String), holder: &str) -> Value {
        let (key, text) = annotation;
        json!({"metadata": {"annotations": {key: text}}, "spec": {"holderIdentity": holder}})
    }

    #[test]
    fn leader_settings_are_read_from_the_lease_as_they_were_written() {
        for gates in [
            "",
            "InPlaceWorkloadVerticalScaling=true,CloneSetShortHash=true",
            "KruiseDaemon=false",
            "PodWebhook=false",
            "PreDownloadImageForInPlaceUpdate=true",
            "AllAlpha=true",
            "AllBeta=false",
        ] {
            for flag in [false, true] {
                let ours = settings(gates, flag);
                let read = LeaderSettings::from_lease(&lease(ours.annotation("us"), "us")).unwrap();
                assert_eq!(read, ours, "{gates}");
            }
        }
    }

    #[test]
    fn gates_with_their_defaults_are_left_out() {
        let (_, text) = settings("", false).annotation("us");
        assert_eq!(
            text,
            r#"{"holder":"us","featureGates":"","excludePreparingDelete":false}"#
        );
        assert_eq!(
            settings("CloneSetShortHash=true,PodWebhook=true", false)
                .gates
                .changed(),
            "CloneSetShortHash=true"
        );
    }

    #[test]
    fn settings_of_an_earlier_holder_do_not_count() {
        let annotation = settings("CloneSetShortHash=true", true).annotation("us");
        let error = |lease: &Value| LeaderSettings::from_lease(lease).unwrap_err().to_string();
        assert_eq!(
            error(&lease(annotation.clone(), "another")),
            "its holder tells nothing of them"
        );
        assert_eq!(error(&lease(annotation, "")), "nobody holds it");
        let none = json!({"metadata": {}, "spec": {"holderIdentity": "another"}});
        assert_eq!(error(&none), "its holder tells nothing of them");
    }

    #[test]
    fn an_annotation_that_cannot_be_read_is_an_error() {
        let newer = r#"{"holder":"us","featureGates":"OfTheFuture=true"}"#;
        let garbage = "{";
        for (text, wanted) in [
            (newer, "unrecognized feature gate: OfTheFuture"),
            (garbage, "what its holder tells cannot be read"),
        ] {
            let annotation = ("kruise.io/leader-settings".to_owned(), text.to_owned());
            let error = LeaderSettings::from_lease(&lease(annotation, "us"))
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
