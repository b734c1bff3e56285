//! How the leader decides: its gates and flags, told on its lease, so that others can plan as it does.
//!
//! What is told counts for the holder that told it. Whoever takes the lease over and tells nothing, as OpenKruise does,
//! leaves the annotation where it is.

use anyhow::{anyhow, bail};
use kruise_api::names::LEADER_SETTINGS;
use kruise_runtime::Client;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{controllers::cloneset::EXCLUDE_PREPARING_DELETE, gates::Gates, manager::Config};

/// What decisions depend on beside the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decides {
    /// Feature gates after their dependencies.
    pub gates: Gates,
    /// Flag `--cloneset-scaling-exclude-preparing-delete`.
    pub exclude_preparing_delete: bool,
}

/// The annotation's JSON.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    holder: String,
    /// Those that differ from their defaults.
    #[serde(default)]
    feature_gates: String,
    #[serde(default)]
    exclude_preparing_delete: bool,
}

impl Decides {
    /// What a manager decides by.
    pub fn of(config: &Config) -> Self {
        Self {
            gates: config.gates.clone(),
            exclude_preparing_delete: config.bool_flag(EXCLUDE_PREPARING_DELETE),
        }
    }

    /// The annotation of a lease that this holder has.
    pub fn annotation(&self, holder: &str) -> (String, String) {
        let told = Told {
            holder: holder.to_owned(),
            feature_gates: self.gates.changed(),
            exclude_preparing_delete: self.exclude_preparing_delete,
        };
        // Text and truth values always have a JSON form.
        let text = serde_json::to_string(&told).unwrap_or_default();
        (LEADER_SETTINGS.to_owned(), text)
    }

    /// What the holder of a lease told.
    fn told(lease: &Value) -> anyhow::Result<Self> {
        let annotations = lease.pointer("/metadata/annotations");
        let text = annotations.and_then(|all| all.get(LEADER_SETTINGS)?.as_str());
        let holder = lease.pointer("/spec/holderIdentity").and_then(Value::as_str);
        let told: Told = match text.map(serde_json::from_str).transpose() {
            Ok(told) => told.ok_or_else(|| anyhow!("its holder tells nothing of them"))?,
            Err(error) => bail!("what its holder tells cannot be read: {error}"),
        };
        match holder {
            None | Some("") => bail!("nobody holds it"),
            Some(holder) if holder != told.holder => bail!("its holder tells nothing of them"),
            Some(_) => Ok(Self {
                gates: Gates::parse(&told.feature_gates, "")?,
                exclude_preparing_delete: told.exclude_preparing_delete,
            }),
        }
    }
}

/// Reads what the leader tells on a lease.
pub async fn ask(client: &Client, namespace: &str, name: &str) -> anyhow::Result<Decides> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
    let lease: Value = client.get(&path).await?;
    Decides::told(&lease)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Decides;
    use crate::gates::Gates;

    fn decides(gates: &str, exclude_preparing_delete: bool) -> Decides {
        let gates = Gates::parse(gates, "").unwrap();
        Decides {
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
                let ours = decides(gates, flag);
                let read = Decides::told(&lease(ours.annotation("us"), "us")).unwrap();
                assert_eq!(read, ours, "{gates}");
            }
        }
    }

    #[test]
    fn gates_with_their_defaults_are_left_out() {
        let (_, text) = decides("", false).annotation("us");
        assert_eq!(
            text,
            r#"{"holder":"us","featureGates":"","excludePreparingDelete":false}"#
        );
        assert_eq!(
            decides("CloneSetShortHash=true,PodWebhook=true", false)
                .gates
                .changed(),
            "CloneSetShortHash=true"
        );
    }

    #[test]
    fn settings_of_an_earlier_holder_do_not_count() {
        let told = decides("CloneSetShortHash=true", true).annotation("us");
        let error = |lease: &Value| Decides::told(lease).unwrap_err().to_string();
        assert_eq!(
            error(&lease(told.clone(), "another")),
            "its holder tells nothing of them"
        );
        assert_eq!(error(&lease(told, "")), "nobody holds it");
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
            let error = Decides::told(&lease(annotation, "us")).unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
