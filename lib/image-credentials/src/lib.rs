//! Credentials for pulling images, found as the kubelet finds them.
//!
//! A [`Keyring`] holds credentials by registry and path, and answers which of them are for a repository. It is filled
//! from
//!
//! * secrets of the types `kubernetes.io/dockerconfigjson` and `kubernetes.io/dockercfg`: [`of_secret`];
//! * Docker's configuration files: [`DockerFiles`];
//! * the kubelet's credential provider plugins: [`Plugins`], from a file that [`PluginConfig`] reads.
//!
//! ```
//! use image_credentials::{Keyring, of_secret};
//!
//! let data = br#"{"auths": {
//!     "reg.example": {"username": "all", "password": "secret"},
//!     "reg.example/team": {"username": "team", "password": "secret"}
//! }}"#;
//! let mut keyring = Keyring::default();
//! let config = of_secret("pull", "kubernetes.io/dockerconfigjson", |key| {
//!     (key == ".dockerconfigjson").then_some(&data[..])
//! })?;
//! keyring.add(config.unwrap_or_default());
//!
//! // More specific first; the caller tries them in this order.
//! let found = keyring.lookup("reg.example/team/web");
//! let printed = format!("{found:?}");
//! assert!(printed.starts_with(r#"[Basic { username: "team""#) && !printed.contains("secret"));
//! assert!(keyring.lookup("other.example/web").is_empty());
//! # Ok::<_, image_credentials::SecretError>(())
//! ```
//!
//! # Guarantees
//! * Secrets are in no `Debug` and in no error. An error of a malformed secret or file says where it is, and not
//!   what is there.
//! * An identity or registry token stays what it is, so that it is not sent as a password.
//! * Parsing, matching and caching are pure: time is an argument, a `Duration` since any fixed start.
//!   [`DockerFiles`] reads files, and `plugin/exec.rs` starts processes and waits for them.
//!
//! # What is not here
//! Service account tokens for plugins: a plugin that needs one is not run, as the kubelet does not run it for a pod
//! without a service account.

mod credential;
mod docker;
mod files;
mod keyring;
mod location;
mod plugin;
mod secret;

pub use credential::Credential;
pub use docker::{DockerConfig, DockerError};
pub use files::{DockerFiles, FileError};
pub use keyring::Keyring;
pub use plugin::{PluginConfig, PluginConfigError, PluginError, PluginFailure, Plugins, ResponseError};
pub use secret::{SecretError, of_secret};
