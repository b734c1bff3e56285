//! Docker's two forms of a file with credentials.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Credential;

/// With or without padding, as both are found.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Credentials by location: host, port and path of a registry, as somebody wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DockerConfig(pub(crate) BTreeMap<String, Credential>);

/// A malformed file. Says nothing of what is in it but the names of registries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DockerError {
    /// Not JSON, or not of the expected shape.
    #[error("malformed at line {line}, column {column}")]
    Malformed {
        /// From 1.
        line: usize,
        /// From 1; 0 if it is the line as a whole.
        column: usize,
    },
    /// `auth` of this registry is not the base64 of `user:password`.
    #[error("auth of {0:?} is not the base64 of user:password")]
    Auth(String),
}

/// How one of the forms is read.
pub(crate) type Parse = fn(&[u8]) -> Result<DockerConfig, DockerError>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    username: Option<String>,
    password: Option<String>,
    auth: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

type Entries = BTreeMap<String, Option<Entry>>;

impl DockerConfig {
    /// Reads `config.json`: entries below `auths`. Whatever else is there is skipped.
    pub fn from_config_json(bytes: &[u8]) -> Result<Self, DockerError> {
        #[derive(Deserialize)]
        struct File {
            auths: Option<Entries>,
        }
        let file: File = json(bytes)?;
        Self::new(file.auths.unwrap_or_default())
    }

    /// Reads `.dockercfg`: entries only.
    pub fn from_dockercfg(bytes: &[u8]) -> Result<Self, DockerError> {
        Self::new(json(bytes)?)
    }

    fn new(entries: Entries) -> Result<Self, DockerError> {
        let read =
            entries
                .into_iter()
                .map(|(location, entry)| match entry.unwrap_or_default().credential() {
                    Some(credential) => Ok((location, credential)),
                    None => Err(DockerError::Auth(location)),
                });
        read.collect::<Result<_, _>>().map(Self)
    }
}

impl Entry {
    /// Nothing if `auth` is malformed.
    fn credential(self) -> Option<Credential> {
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(token) = filled(self.registrytoken) {
            return Some(Credential::Registry(token));
        }
        if let Some(token) = filled(self.identitytoken) {
            return Some(Credential::Identity(token));
        }
        let (username, password) = match filled(self.auth) {
            Some(auth) => decoded(&auth)?,
            None => (
                self.username.unwrap_or_default(),
                self.password.unwrap_or_default(),
            ),
        };
        Some(Credential::Basic { username, password })
    }
}

/// User and password; line breaks within are nothing.
fn decoded(auth: &str) -> Option<(String, String)> {
    let text: String = auth.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let text = String::from_utf8(BASE64.decode(text).ok()?).ok()?;
    let (username, password) = text.split_once(':')?;
    Some((username.to_owned(), password.to_owned()))
}

/// The parser's own text may quote what it found, and so a secret.
fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DockerError> {
    serde_json::from_slice(bytes).map_err(|error| DockerError::Malformed {
        line: error.line(),
        column: error.column(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basic(username: &str, password: &str) -> Credential {
        Credential::Basic {
            username: username.into(),
            password: password.into(),
        }
    }

    fn entry(json: &str) -> Result<Credential, DockerError> {
        let read = DockerConfig::from_dockercfg(format!(r#"{{"r": {json}}}"#).as_bytes())?;
        Ok(read.0["r"].clone())
    }

    #[test]
    fn both_forms_are_read() {
        let entries = r#"{"a": {"username": "u", "password": "p", "email": "e"}, "b": {"auth": "dTpw"}}"#;
        let old = DockerConfig::from_dockercfg(entries.as_bytes()).unwrap();
        let file = format!(r#"{{"auths": {entries}, "credsStore": "desktop", "HttpHeaders": {{}}}}"#);
        let new = DockerConfig::from_config_json(file.as_bytes()).unwrap();
        assert_eq!(old, new);
        assert_eq!(new.0["a"], basic("u", "p"));
        assert_eq!(new.0["b"], basic("u", "p"));
        let none = DockerConfig::default();
        assert_eq!(DockerConfig::from_config_json(b"{}"), Ok(none.clone()));
        assert_eq!(DockerConfig::from_config_json(br#"{"auths": null}"#), Ok(none));
    }

    #[test]
    fn auth_wins_over_user_and_password_and_tokens_over_auth() {
        let auth = r#""username": "x", "password": "y", "auth": "dTpwOnE=""#;
        assert_eq!(entry(&format!("{{{auth}}}")), Ok(basic("u", "p:q")));
        let identity = format!(r#"{{{auth}, "identitytoken": "i"}}"#);
        assert_eq!(entry(&identity), Ok(Credential::Identity("i".into())));
        let registry = format!(r#"{{{auth}, "identitytoken": "i", "registrytoken": "r"}}"#);
        assert_eq!(entry(&registry), Ok(Credential::Registry("r".into())));
        assert_eq!(entry(r#"{"auth": "", "identitytoken": ""}"#), Ok(basic("", "")));
        assert_eq!(entry("null"), Ok(basic("", "")));
    }

    #[test]
    fn auth_is_read_with_and_without_padding_and_over_lines() {
        for auth in ["dTpwYXNz", "dTpwYXM=", "dTpwYXM", "dTpw\\nYXM=\\r\\n"] {
            assert!(entry(&format!(r#"{{"auth": "{auth}"}}"#)).is_ok(), "{auth}");
        }
    }

    #[test]
    fn malformed_data_is_an_error_without_its_content() {
        for file in [
            r#"{"auths": "hunter2"}"#,
            r#"{"auths": {"r": "hunter2"}}"#,
            r#"{"auths": {"r": {"password": ["hunter2"]}}}"#,
            r#"{"auths": {"r": {"password": "hunter2"}"#,
            r#"{"auths": {"r": {"auth": "hunter2"}}}"#,
            r#"{"auths": {"r": {"auth": "aHVudGVyMg=="}}}"#,
            r#"{"auths": {"r": {"auth": "/zo="}}}"#,
            "hunter2",
            "",
        ] {
            let error = DockerConfig::from_config_json(file.as_bytes()).unwrap_err();
            let printed = format!("{error} {error:?}");
            assert!(
                !printed.contains("hunter2") && !printed.contains("aHVudGVy"),
                "{printed}"
            );
        }
        assert_eq!(entry(r#"{"auth": "dQ=="}"#), Err(DockerError::Auth("r".into())));
        let cut = DockerConfig::from_dockercfg(b"{\n  3").unwrap_err();
        assert_eq!(cut.to_string(), "malformed at line 2, column 3");
    }
}
