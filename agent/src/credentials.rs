//! Credentials that images are pulled with: those of secrets, then those of plugins and of Docker's files.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use go_compat::image::Reference;
use image_credentials::{Credential, DockerConfig, DockerFiles, FileError, Keyring, PluginConfig, Plugins};
use kruise_agent_core::{CredentialSource, SecretRef};
use tokio::time::Instant;

use crate::Settings;
use crate::effects::secrets::Secret;

/// Credentials that are the same for all images.
pub(crate) struct Credentials {
    plugins: Option<Plugins>,
    files: Mutex<Files>,
    started: Instant,
}

struct Files {
    files: DockerFiles,
    /// Those that were reported last.
    unusable: Vec<FileError>,
}

impl Credentials {
    /// Reads the configuration of the plugins. If it cannot be used, none is, and the log says why.
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            plugins: plugins(&settings.plugin_config, &settings.plugin_folder),
            files: Mutex::new(Files {
                files: DockerFiles::of_home(settings.home.clone()),
                unusable: Vec::new(),
            }),
            started: Instant::now(),
        }
    }

    /// The credentials for an image, in the order in which to try them. `secrets` are those that were read for the
    /// attempt.
    ///
    /// # Errors
    /// A secret that holds no credentials although its type says so.
    pub(crate) async fn find(
        &self,
        image: &str,
        sources: &[CredentialSource],
        secrets: &[(SecretRef, Arc<Secret>)],
    ) -> Result<Vec<Credential>, String> {
        let reference: Reference = image.parse().map_err(|error| format!("{image}: {error}"))?;
        let repository = reference.repository();
        let mut found: Vec<Credential> = Vec::new();
        let mut add = |keyring: &Keyring| {
            for credential in keyring.lookup(&repository) {
                if !found.contains(credential) {
                    found.push(credential.clone());
                }
            }
        };
        let mut of_secrets = Keyring::default();
        for source in sources {
            match source {
                CredentialSource::Secret(of) => {
                    let read = secrets.iter().find(|(name, _)| name == of);
                    if let Some((_, secret)) = read {
                        of_secrets.add(secret.config().map_err(ToString::to_string)?);
                    }
                }
                CredentialSource::Keyring => {
                    add(&std::mem::take(&mut of_secrets));
                    add(&self.keyring(&repository).await);
                }
            }
        }
        add(&of_secrets);
        Ok(found)
    }

    /// What files and plugins have for a repository.
    async fn keyring(&self, repository: &str) -> Keyring {
        let now = self.started.elapsed();
        let mut keyring = Keyring::default();
        keyring.add(self.of_files());
        if let Some(plugins) = &self.plugins {
            for error in plugins.add_to(&mut keyring, repository, now).await {
                tracing::warn!("{error}");
            }
        }
        keyring
    }

    fn of_files(&self) -> DockerConfig {
        let now = self.started.elapsed();
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let Files { files, unusable } = &mut *files;
        let (config, errors) = files.config(now);
        if *unusable != errors {
            for error in errors {
                tracing::warn!("credentials of a file are not used: {error}");
            }
            *unusable = errors.to_vec();
        }
        config.clone()
    }
}

fn plugins(path: &Path, folder: &Path) -> Option<Plugins> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!("{}: {error}; no credential provider is used", path.display());
            return None;
        }
    };
    match PluginConfig::parse(&text) {
        Ok(config) => {
            let plugins = Plugins::new(config, folder);
            for name in plugins.unused() {
                tracing::warn!("credential provider {name} needs a service account and is not used");
            }
            Some(plugins)
        }
        Err(error) => {
            tracing::warn!("{}: {error}; no credential provider is used", path.display());
            None
        }
    }
}
