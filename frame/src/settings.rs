//! The settings of administrators: a ConfigMap in the namespace of the manager.

use kruise_api::{
    meta::{StringMap, null_as_default},
    path::segment,
};
use kruise_runtime::{ApiError, Client};
use serde::Deserialize;

/// Name of the ConfigMap.
pub const CONFIGURATION: &str = "kruise-configuration";

#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default, deserialize_with = "null_as_default")]
    data: StringMap,
}

/// Reads the text of a key; `None` if the ConfigMap or the key is not there.
pub async fn read(client: &Client, namespace: &str, key: &str) -> Result<Option<String>, ApiError> {
    let path = format!("{}/{CONFIGURATION}", collection(namespace));
    match client.get::<ConfigMap>(&path).await {
        Ok(mut map) => Ok(map.data.remove(key)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Path of the ConfigMaps of a namespace.
pub fn collection(namespace: &str) -> String {
    format!("/api/v1/namespaces/{}/configmaps", segment(namespace))
}
