//! Secrets that hold a Docker configuration.

use crate::docker::Parse;
use crate::{DockerConfig, DockerError};

/// A secret that holds no Docker configuration although its type says so. Does not say what it holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pull secret {secret}: {source}")]
pub struct SecretError {
    /// Its name, as the caller gave it.
    pub secret: String,
    /// What is wrong.
    pub source: DockerError,
}

/// The credentials of a secret. `name` is for errors; `data` gives the bytes of a key.
///
/// # Returns
/// Nothing if the secret has another type, or its key is absent or empty.
///
/// # Errors
/// What the key holds is malformed.
pub fn of_secret<'a>(
    name: &str,
    secret_type: &str,
    data: impl Fn(&str) -> Option<&'a [u8]>,
) -> Result<Option<DockerConfig>, SecretError> {
    let (key, read): (_, Parse) = match secret_type {
        "kubernetes.io/dockerconfigjson" => (".dockerconfigjson", DockerConfig::from_config_json),
        "kubernetes.io/dockercfg" => (".dockercfg", DockerConfig::from_dockercfg),
        _ => return Ok(None),
    };
    let bytes = data(key).filter(|bytes| !bytes.is_empty());
    let config = bytes.map(read).transpose();
    config.map_err(|source| SecretError {
        secret: name.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(secret_type: &str, key: &str, bytes: &'static [u8]) -> Result<Option<DockerConfig>, SecretError> {
        of_secret("ns/pull", secret_type, |asked| (asked == key).then_some(bytes))
    }

    #[test]
    fn a_secret_is_read_by_its_type() {
        let old = br#"{"r": {"username": "u"}}"#;
        let new = br#"{"auths": {"r": {"username": "u"}}}"#;
        let config = read("kubernetes.io/dockerconfigjson", ".dockerconfigjson", new).unwrap();
        assert!(config.is_some());
        assert_eq!(
            read("kubernetes.io/dockercfg", ".dockercfg", old).unwrap(),
            config
        );
        for (secret_type, key, bytes) in [
            ("Opaque", ".dockerconfigjson", &new[..]),
            ("kubernetes.io/dockercfg", ".dockerconfigjson", &new[..]),
            ("kubernetes.io/dockerconfigjson", ".dockerconfigjson", &b""[..]),
        ] {
            assert_eq!(read(secret_type, key, bytes), Ok(None));
        }
    }

    #[test]
    fn an_error_names_the_secret_and_not_its_content() {
        let error = read("kubernetes.io/dockercfg", ".dockercfg", br#""hunter2""#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pull secret ns/pull: malformed at line 1, column 9"
        );
    }
}
