//! The API server as the webhook controller needs it.

use kruise_api::path::segment;
use kruise_runtime::Client;
use kruise_server::webhook_controller::{Api, ApiError, Phase};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::Value;

use kruise_api::path::DEFINITIONS;

const MERGE: &str = "application/merge-patch+json";

/// The part of a definition that is reconciled. The rest, mostly schemas, is skipped: several are read at the same
/// time.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Definition {
    metadata: Version,
    spec: Converted,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Version {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Converted {
    #[serde(skip_serializing_if = "Value::is_null")]
    conversion: Value,
}

/// Reads and writes the certificates, webhook configurations and definitions.
#[derive(Clone)]
pub(super) struct Registrar(pub(super) Client);

fn error(error: kruise_runtime::ApiError) -> ApiError {
    if error.is_not_found() {
        ApiError::NotFound
    } else if error.is_conflict() || error.is_already_exists() {
        ApiError::Conflict
    } else {
        ApiError::Other(error.to_string())
    }
}

/// Path of the Secrets of a namespace.
pub(super) fn secrets(namespace: &str) -> String {
    format!("/api/v1/namespaces/{}/secrets", segment(namespace))
}

/// Path of the webhook configurations.
pub(super) fn collection_of_configurations(phase: Phase) -> String {
    let plural = match phase {
        Phase::Mutating => "mutatingwebhookconfigurations",
        Phase::Validating => "validatingwebhookconfigurations",
    };
    format!("/apis/admissionregistration.k8s.io/v1/{plural}")
}

fn configuration(phase: Phase, name: &str) -> String {
    format!("{}/{}", collection_of_configurations(phase), segment(name))
}

fn definition(name: &str) -> String {
    format!("{DEFINITIONS}/{}", segment(name))
}

/// `metadata.<member>` of an object.
fn of_metadata<'a>(object: &'a Value, member: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(member)?.as_str())
        .unwrap_or_default()
}

impl Api for Registrar {
    async fn get_secret(&self, namespace: &str, name: &str) -> Result<Value, ApiError> {
        self.0
            .get(&format!("{}/{}", secrets(namespace), segment(name)))
            .await
            .map_err(error)
    }

    async fn create_secret(&self, secret: Value) -> Result<(), ApiError> {
        let path = secrets(of_metadata(&secret, "namespace"));
        self.0
            .create::<IgnoredAny>(&path, &secret)
            .await
            .map(drop)
            .map_err(error)
    }

    async fn replace_secret(&self, secret: Value) -> Result<(), ApiError> {
        let path = format!(
            "{}/{}",
            secrets(of_metadata(&secret, "namespace")),
            segment(of_metadata(&secret, "name"))
        );
        self.0
            .replace::<IgnoredAny>(&path, &secret)
            .await
            .map(drop)
            .map_err(error)
    }

    async fn get_configuration(&self, phase: Phase, name: &str) -> Result<Value, ApiError> {
        self.0.get(&configuration(phase, name)).await.map_err(error)
    }

    async fn patch_configuration(&self, phase: Phase, name: &str, patch: Value) -> Result<(), ApiError> {
        self.0
            .patch::<IgnoredAny>(&configuration(phase, name), MERGE, &patch)
            .await
            .map(drop)
            .map_err(error)
    }

    async fn get_crd(&self, name: &str) -> Result<Value, ApiError> {
        let found: Definition = self.0.get(&definition(name)).await.map_err(error)?;
        serde_json::to_value(found).map_err(|error| ApiError::Other(error.to_string()))
    }

    async fn patch_crd(&self, name: &str, patch: Value) -> Result<(), ApiError> {
        self.0
            .patch::<IgnoredAny>(&definition(name), MERGE, &patch)
            .await
            .map(drop)
            .map_err(error)
    }
}
