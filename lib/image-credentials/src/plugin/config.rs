//! The kubelet's file of plugins, `CredentialProviderConfig`.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;

use super::protocol::Protocol;
use crate::location::Location;

const KIND: &str = "CredentialProviderConfig";
const GROUP: &str = "kubelet.config.k8s.io/";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// The plugins of a file, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginConfig(pub(super) Vec<Plugin>);

/// A program, and when and how to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plugin {
    /// Of the program in the folder of plugins.
    pub(super) name: String,
    pub(super) images: Vec<Location>,
    /// How long an answer is valid that does not say it.
    pub(super) fresh: Duration,
    pub(super) protocol: Protocol,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    /// It wants to know for which service account the image is.
    pub(super) needs_account: bool,
}

/// A file that is no list of plugins.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginConfigError {
    /// Neither YAML nor JSON, or not of the expected shape.
    #[error("the file cannot be read: {0}")]
    Malformed(String),
    /// Another kind of file, or a version that is not known here.
    #[error("kind {kind:?} of {version:?} is no CredentialProviderConfig that is known")]
    Kind {
        /// Its `kind`.
        kind: String,
        /// Its `apiVersion`.
        version: String,
    },
    /// There is no plugin.
    #[error("providers is empty")]
    Empty,
    /// A plugin that could not be run.
    #[error("provider {name:?}: {why}")]
    Plugin {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    providers: Vec<Provider>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Provider {
    #[serde(default)]
    name: String,
    #[serde(default)]
    match_images: Vec<String>,
    #[serde(default, deserialize_with = "super::duration")]
    default_cache_duration: Option<Duration>,
    #[serde(default)]
    api_version: String,
    args: Option<Vec<String>>,
    env: Option<Vec<Variable>>,
    token_attributes: Option<TokenAttributes>,
}

#[derive(Deserialize)]
struct Variable {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenAttributes {
    require_service_account: Option<bool>,
}

impl PluginConfig {
    /// Reads a file, YAML or JSON. Fields that are newer than this are skipped.
    pub fn parse(text: &str) -> Result<Self, PluginConfigError> {
        let file: File = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| PluginConfigError::Malformed(error.to_string()))?
        } else {
            serde_saphyr::from_str(text).map_err(|error| PluginConfigError::Malformed(error.to_string()))?
        };
        let version = file.api_version.strip_prefix(GROUP);
        if file.kind != KIND || !version.is_some_and(|version| VERSIONS.contains(&version)) {
            return Err(PluginConfigError::Kind {
                kind: file.kind,
                version: file.api_version,
            });
        }
        if file.providers.is_empty() {
            return Err(PluginConfigError::Empty);
        }
        let mut names = BTreeSet::new();
        let plugins = file.providers.into_iter().map(|provider| {
            let name = provider.name.clone();
            let is_new = names.insert(name.clone());
            let plugin = if is_new {
                provider.plugin()
            } else {
                Err("the name is there twice".to_owned())
            };
            plugin.map_err(|why| PluginConfigError::Plugin { name, why })
        });
        plugins.collect::<Result<_, _>>().map(Self)
    }
}

impl Provider {
    fn plugin(self) -> Result<Plugin, String> {
        let is_file = |name: &str| !name.is_empty() && name != "." && name != ".." && !name.contains('/');
        if !is_file(&self.name) || self.name.contains(char::is_whitespace) {
            return Err("the name is no name of a program".into());
        }
        if self.match_images.is_empty() {
            return Err("matchImages is empty".into());
        }
        let images = self.match_images.iter().map(|text| {
            Location::parse(text).ok_or_else(|| format!("matchImages holds {text:?}, which matches no image"))
        });
        let images = images.collect::<Result<_, _>>()?;
        let protocol = Protocol::of(&self.api_version)
            .ok_or_else(|| format!("apiVersion {:?} is not known", self.api_version))?;
        let fresh = self
            .default_cache_duration
            .ok_or("defaultCacheDuration is missing")?;
        let variables = self.env.unwrap_or_default().into_iter();
        Ok(Plugin {
            name: self.name,
            images,
            fresh,
            protocol,
            arguments: self.args.unwrap_or_default(),
            environment: variables
                .map(|variable| (variable.name, variable.value))
                .collect(),
            needs_account: self
                .token_attributes
                .and_then(|attributes| attributes.require_service_account)
                .unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = r#"
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: ecr-credential-provider
  matchImages:
  - "*.dkr.ecr.*.amazonaws.com"
  - public.ecr.aws/team
  defaultCacheDuration: "12h"
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: [get-credentials]
  env:
  - name: AWS_PROFILE
    value: example
- name: gcp
  matchImages: [gcr.io]
  defaultCacheDuration: 1m30s
  apiVersion: credentialprovider.kubelet.k8s.io/v1beta1
  tokenAttributes:
    serviceAccountTokenAudience: a
    requireServiceAccount: true
    cacheType: Token
"#;

    #[test]
    fn a_file_is_read_as_yaml_and_as_json() {
        let read = PluginConfig::parse(YAML).unwrap();
        let [ecr, gcp] = read.0.as_slice() else {
            panic!("{read:?}")
        };
        assert_eq!(ecr.name, "ecr-credential-provider");
        assert_eq!(ecr.images.len(), 2);
        assert_eq!(ecr.fresh, Duration::from_hours(12));
        assert_eq!(ecr.protocol, Protocol::V1);
        assert_eq!(ecr.arguments, ["get-credentials"]);
        assert_eq!(
            ecr.environment,
            [("AWS_PROFILE".to_owned(), "example".to_owned())]
        );
        assert!(!ecr.needs_account);
        assert_eq!(
            (gcp.fresh, gcp.protocol),
            (Duration::from_secs(90), Protocol::V1Beta1)
        );
        assert!(gcp.needs_account && gcp.arguments.is_empty() && gcp.environment.is_empty());

        let json = r#"{"apiVersion": "kubelet.config.k8s.io/v1alpha1", "kind": "CredentialProviderConfig", "providers": [
            {"name": "a", "matchImages": ["a.b"], "defaultCacheDuration": "0s", "later": 1,
             "apiVersion": "credentialprovider.kubelet.k8s.io/v1alpha1", "args": null, "env": null}]}"#;
        let read = PluginConfig::parse(json).unwrap();
        assert_eq!(read.0[0].protocol, Protocol::V1Alpha1);
        assert_eq!(read.0[0].fresh, Duration::ZERO);
    }

    #[test]
    fn what_the_kubelet_refuses_is_refused_with_the_reason() {
        for (from, to, reason) in [
            (
                "kubelet.config.k8s.io/v1",
                "kubelet.config.k8s.io/v9",
                "is no CredentialProviderConfig",
            ),
            ("kind: Cred", "kind: Bred", "is no CredentialProviderConfig"),
            ("name: gcp", "name: ecr-credential-provider", "twice"),
            ("name: gcp", "name: a/b", "no name of a program"),
            ("name: gcp", "name: ..", "no name of a program"),
            ("name: gcp", "name: a b", "no name of a program"),
            ("name: gcp", "name: ''", "no name of a program"),
            ("[gcr.io]", "[]", "matchImages is empty"),
            ("[gcr.io]", "['gcr.io:port']", "matches no image"),
            ("1m30s", "-1s", "negative"),
            ("1m30s", "soon", "invalid duration"),
            (
                "defaultCacheDuration: 1m30s",
                "later: 1",
                "defaultCacheDuration is missing",
            ),
            ("k8s.io/v1beta1", "k8s.io/v9", "is not known"),
            ("providers:", "providers: 3\nothers:", "cannot be read"),
            ("providers:", "others:", "is empty"),
            ("kind:", "\tkind:", "cannot be read"),
        ] {
            let text = YAML.replacen(from, to, 1);
            assert_ne!(text, YAML, "{from}");
            let error = PluginConfig::parse(&text).unwrap_err().to_string();
            assert!(error.contains(reason), "{to}: {error}");
        }
        assert!(PluginConfig::parse("").is_err());
        assert!(PluginConfig::parse("{").is_err());
    }
}
