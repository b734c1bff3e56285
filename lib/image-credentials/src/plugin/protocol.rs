//! What a plugin reads and writes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Credential, DockerConfig};

const REQUEST: &str = "CredentialProviderRequest";
const RESPONSE: &str = "CredentialProviderResponse";

/// The versions of the protocol, which differ in their names only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    V1,
    V1Beta1,
    V1Alpha1,
}

/// For which images an answer is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum CacheKey {
    /// The one that was asked for.
    Image,
    /// All of its registry.
    Registry,
    /// All.
    Global,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) cache_key: CacheKey,
    /// How long it is valid; as the configuration says if it does not say it.
    pub(super) fresh: Option<Duration>,
    pub(super) config: DockerConfig,
}

/// An answer that is none. Does not say what it holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// Not JSON, or not of the expected shape.
    #[error("its answer is malformed at line {line}, column {column}")]
    Malformed {
        /// From 1.
        line: usize,
        /// From 1; 0 if it is the line as a whole.
        column: usize,
    },
    /// Not an answer of the version that was asked.
    #[error("its answer is not a CredentialProviderResponse of {0}")]
    Version(&'static str),
}

impl Protocol {
    const ALL: [Self; 3] = [Self::V1, Self::V1Beta1, Self::V1Alpha1];

    pub(super) fn of(version: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|protocol| protocol.version() == version)
    }

    fn version(self) -> &'static str {
        match self {
            Self::V1 => "credentialprovider.kubelet.k8s.io/v1",
            Self::V1Beta1 => "credentialprovider.kubelet.k8s.io/v1beta1",
            Self::V1Alpha1 => "credentialprovider.kubelet.k8s.io/v1alpha1",
        }
    }

    /// The question for the credentials of `image`.
    pub(super) fn request(self, image: &str) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Request<'a> {
            kind: &'static str,
            api_version: &'static str,
            image: &'a str,
        }
        let request = Request {
            kind: REQUEST,
            api_version: self.version(),
            image,
        };
        // Text only, which always has a form.
        serde_json::to_vec(&request).unwrap_or_default()
    }

    /// Reads an answer.
    pub(super) fn response(self, bytes: &[u8]) -> Result<Response, ResponseError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            #[serde(default)]
            kind: String,
            #[serde(default)]
            api_version: String,
            cache_key_type: CacheKey,
            #[serde(default, deserialize_with = "super::duration")]
            cache_duration: Option<Duration>,
            auth: Option<BTreeMap<String, Login>>,
        }
        #[derive(Deserialize)]
        struct Login {
            #[serde(default)]
            username: String,
            #[serde(default)]
            password: String,
        }
        let wire: Wire = serde_json::from_slice(bytes).map_err(|error| ResponseError::Malformed {
            line: error.line(),
            column: error.column(),
        })?;
        if wire.kind != RESPONSE || wire.api_version != self.version() {
            return Err(ResponseError::Version(self.version()));
        }
        let logins = wire.auth.unwrap_or_default().into_iter();
        let config = logins.map(|(location, login)| {
            let Login { username, password } = login;
            (location, Credential::Basic { username, password })
        });
        Ok(Response {
            cache_key: wire.cache_key_type,
            fresh: wire.cache_duration,
            config: DockerConfig(config.collect()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_version_and_the_image() {
        for (version, protocol) in [
            ("v1", Protocol::V1),
            ("v1beta1", Protocol::V1Beta1),
            ("v1alpha1", Protocol::V1Alpha1),
        ] {
            let version = format!("credentialprovider.kubelet.k8s.io/{version}");
            assert_eq!(Protocol::of(&version), Some(protocol));
            let request = String::from_utf8(protocol.request("reg.example/a")).unwrap();
            assert_eq!(
                request,
                format!(
                    r#"{{"kind":"CredentialProviderRequest","apiVersion":"{version}","image":"reg.example/a"}}"#
                )
            );
        }
        assert_eq!(Protocol::of("v1"), None);
    }

    fn answer(rest: &str) -> Result<Response, ResponseError> {
        let head =
            r#""kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1""#;
        Protocol::V1.response(format!("{{{head}, {rest}}}").as_bytes())
    }

    #[test]
    fn an_answer_has_credentials_by_location_and_says_how_long_they_are_valid() {
        let read = answer(
            r#""cacheKeyType": "Registry", "cacheDuration": "6h", "auth": {"*.a": {"username": "u", "password": "p"}}"#,
        )
        .unwrap();
        assert_eq!(
            (read.cache_key, read.fresh),
            (CacheKey::Registry, Some(Duration::from_hours(6)))
        );
        let credential = Credential::Basic {
            username: "u".into(),
            password: "p".into(),
        };
        assert_eq!(read.config.0["*.a"], credential);
        let nothing = answer(r#""cacheKeyType": "Global", "cacheDuration": null, "auth": null"#).unwrap();
        assert_eq!((nothing.fresh, nothing.config), (None, DockerConfig::default()));
    }

    #[test]
    fn a_malformed_answer_is_an_error_without_its_content() {
        for rest in [
            r#""auth": {}"#,
            r#""cacheKeyType": "hunter2""#,
            r#""cacheKeyType": "Image", "cacheDuration": "-1s""#,
            r#""cacheKeyType": "Image", "cacheDuration": "hunter2""#,
            r#""cacheKeyType": "Image", "auth": {"a": "hunter2"}"#,
            r#""cacheKeyType": "Image", "auth": {"a": {"password": ["hunter2"]}}"#,
        ] {
            let error = answer(rest).unwrap_err();
            assert!(matches!(error, ResponseError::Malformed { .. }), "{rest}");
            let printed = format!("{error} {error:?}");
            assert!(!printed.contains("hunter2"), "{printed}");
        }
        let other = br#"{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1beta1",
            "cacheKeyType": "Image"}"#;
        let version = Err(ResponseError::Version("credentialprovider.kubelet.k8s.io/v1"));
        assert_eq!(Protocol::V1.response(other), version);
        assert!(Protocol::V1Beta1.response(other).is_ok());
        assert_eq!(Protocol::V1.response(br#"{"cacheKeyType": "Image"}"#), version);
    }
}
