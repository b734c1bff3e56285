//! Reading a stored CloneSet of either version into the hub type.

use serde::Deserialize;
use serde_json::Value;

use super::{
    CloneSet,
    convert::{ConvertError, to_v1beta1},
};
use crate::parse::Parse;

/// Why an object cannot be read as a CloneSet.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not of a served version.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// A member has another type than its field.
    #[error("{0}")]
    Shape(#[from] serde_json::Error),
}

impl CloneSet {
    /// Reads an object of either version. `api_version` stays that of the object.
    ///
    /// # Errors
    /// Fails if the version is not served, or a field has another type.
    pub fn from_json(object: &Value) -> Result<Self, ReadError> {
        Self::from_value(object.clone())
    }

    /// As [`CloneSet::from_json`], without a copy of the object.
    pub fn from_value(mut object: Value) -> Result<Self, ReadError> {
        let version = object
            .get("apiVersion")
            .and_then(Value::as_str)
            .map(str::to_owned);
        to_v1beta1(&mut object)?;
        let mut set = Self::deserialize(object)?;
        if let Some(version) = version {
            set.api_version = version;
        }
        Ok(set)
    }
}

impl Parse for CloneSet {
    fn parse(object: Value) -> Result<Self, String> {
        Self::from_value(object).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::CloneSet;

    #[test]
    fn the_older_version_reads_as_the_hub() {
        let set = CloneSet::from_json(&json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "metadata": {"name": "web"},
            "spec": {"replicas": 3, "updateStrategy": {"type": "InPlaceOnly", "partition": "40%"}}
        }))
        .unwrap();
        let rolling = set.spec.update_strategy.rolling_update.unwrap();
        assert_eq!(
            (rolling.pod_update_policy.as_str(), set.spec.replicas),
            ("InPlaceOnly", Some(3))
        );
        assert_eq!(set.api_version, "apps.kruise.io/v1alpha1");
        assert!(set.spec.scale_strategy.enable_pvc_reuse);
    }

    #[test]
    fn a_wrong_type_or_version_is_an_error_that_names_it() {
        let error = |object| CloneSet::from_json(&object).unwrap_err().to_string();
        assert!(error(json!({"apiVersion": "apps/v1"})).contains("apps/v1"));
        let wrong = json!({"apiVersion": "apps.kruise.io/v1beta1", "spec": {"replicas": "three"}});
        assert!(error(wrong).contains("three"));
    }
}
