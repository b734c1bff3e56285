//! The image service.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::grpc::{Each, Whole};
use crate::messages::{self as wire, IMAGE_FS_INFO, IMAGE_STATUS, LIST_IMAGES, PULL_IMAGE};
use crate::{Client, Error};

/// An image that the node has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The runtime's own id, which is the digest of its configuration.
    pub id: String,
    /// Its references by tag, each with registry and path: `docker.io/library/nginx:1`.
    pub tags: Vec<String>,
    /// Its references by digest: `docker.io/library/nginx@sha256:…`.
    pub digests: Vec<String>,
    /// What it takes on disk, in bytes.
    pub bytes: u64,
}

/// What a pull needs.
#[derive(Clone, Debug, Default)]
pub struct Pull<'a> {
    /// The reference, by tag or digest.
    pub image: &'a str,
    /// The credentials; `None` for an anonymous pull.
    pub auth: Option<Auth<'a>>,
    /// Labels of the pod that the image is for.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the pod that the image is for. Some runtimes expect a pod, so that an empty one is sent at least.
    pub annotations: BTreeMap<String, String>,
}

/// How to log in at a registry. Prints no secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Auth<'a> {
    /// A user's name and password.
    Basic {
        /// May be printed.
        username: &'a str,
        /// Is not printed.
        password: &'a str,
    },
    /// A token that gets a registry token, instead of a password.
    Identity(&'a str),
    /// A token that is sent to the registry as it is.
    Registry(&'a str),
}

/// A file system that holds images or containers. The interface does not tell its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filesystem {
    /// The folder in which it is mounted or which is part of it, as the runtime sees it.
    pub mountpoint: PathBuf,
    /// What they take, in bytes.
    pub used_bytes: u64,
    /// How many inodes they take, if the runtime counts them.
    pub used_inodes: Option<u64>,
}

/// Where a runtime keeps what it has. There is one of each, or none if the runtime does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filesystems {
    /// Those with images.
    pub images: Vec<Filesystem>,
    /// Those with the writable layers of containers. Runtimes that are older than Kubernetes 1.29 do not say.
    pub containers: Vec<Filesystem>,
}

impl Client {
    /// Every image of the node. [`fold_images`](Self::fold_images) keeps less.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn images(&self) -> Result<Vec<Image>, Error> {
        self.fold_images(Vec::new(), Vec::push).await
    }

    /// What `add` makes of every image of the node, in the runtime's order, beginning with `value`.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn fold_images<T>(&self, value: T, mut add: impl FnMut(&mut T, Image)) -> Result<T, Error> {
        let sink = Each::new(value, |value: &mut T, image: wire::Image| {
            add(value, image.into());
        });
        let limit = self.limits.images;
        self.channel.call(LIST_IMAGES, &wire::Empty {}, limit, sink).await
    }

    /// The image of this reference or id; nothing if the node does not have it.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn image(&self, reference: &str) -> Result<Option<Image>, Error> {
        let request = wire::ImageStatusRequest {
            image: Some(spec(reference)),
        };
        let sink = Whole::<wire::ImageStatusResponse>::new();
        let limit = self.limits.images;
        let found = self.channel.call(IMAGE_STATUS, &request, limit, sink).await;
        match found {
            Ok(found) => Ok(found.image.map(Image::from)),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Pulls an image within `limit` and returns the runtime's id of it. Dropping the future cancels the pull.
    ///
    /// # Errors
    /// [`Error::CredentialsRefused`] also if the registry says that there is no such repository *or* no right to
    /// see it; see [`Error`].
    pub async fn pull(&self, pull: &Pull<'_>, limit: Duration) -> Result<String, Error> {
        let request = wire::PullImageRequest {
            image: Some(spec(pull.image)),
            auth: pull.auth.map(wire::AuthConfig::from),
            sandbox_config: Some(wire::PodSandboxConfig {
                labels: pull.labels.clone(),
                annotations: pull.annotations.clone(),
            }),
        };
        let sink = Whole::<wire::PullImageResponse>::new();
        let pulled = self.channel.call(PULL_IMAGE, &request, limit, sink).await;
        pulled.map(|pulled| pulled.image_ref).map_err(refused)
    }

    /// The file systems that hold images and containers.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn filesystems(&self) -> Result<Filesystems, Error> {
        let sink = Whole::<wire::ImageFsInfoResponse>::new();
        let limit = self.limits.images;
        let found = self.channel.call(IMAGE_FS_INFO, &wire::Empty {}, limit, sink);
        let found = found.await?;
        let convert = |all: Vec<wire::FilesystemUsage>| all.into_iter().map(Filesystem::from).collect();
        Ok(Filesystems {
            images: convert(found.image_filesystems),
            containers: convert(found.container_filesystems),
        })
    }
}

fn spec(reference: &str) -> wire::ImageSpec {
    wire::ImageSpec {
        image: reference.to_owned(),
    }
}

/// What registries, and runtimes in their place, say to credentials that they do not take.
const REFUSALS: [&str; 7] = [
    "401 unauthorized",
    "403 forbidden",
    "authorization failed",
    "authentication required",
    "pull access denied",
    "no basic auth credentials",
    "unauthorized:",
];

/// A runtime passes on a registry's refusal as text, under a code that means anything.
fn refused(error: Error) -> Error {
    let (Error::Other { message: text, .. } | Error::NotFound(text)) = &error else {
        return error;
    };
    let lower = text.to_ascii_lowercase();
    if REFUSALS.iter().any(|words| lower.contains(words)) {
        Error::CredentialsRefused(text.clone())
    } else {
        error
    }
}

impl From<wire::Image> for Image {
    fn from(image: wire::Image) -> Self {
        Self {
            id: image.id,
            tags: image.repo_tags,
            digests: image.repo_digests,
            bytes: image.size,
        }
    }
}

impl From<Auth<'_>> for wire::AuthConfig {
    fn from(auth: Auth<'_>) -> Self {
        let mut config = Self::default();
        match auth {
            Auth::Basic { username, password } => {
                username.clone_into(&mut config.username);
                password.clone_into(&mut config.password);
            }
            Auth::Identity(token) => token.clone_into(&mut config.identity_token),
            Auth::Registry(token) => token.clone_into(&mut config.registry_token),
        }
        config
    }
}

impl From<wire::FilesystemUsage> for Filesystem {
    fn from(usage: wire::FilesystemUsage) -> Self {
        Self {
            mountpoint: usage.fs_id.map(|id| id.mountpoint.into()).unwrap_or_default(),
            used_bytes: usage.used_bytes.unwrap_or_default().value,
            used_inodes: usage.inodes_used.map(|count| count.value),
        }
    }
}

impl fmt::Debug for Auth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Basic { username, .. } => f
                .debug_struct("Basic")
                .field("username", username)
                .finish_non_exhaustive(),
            Self::Identity(_) => f.write_str("Identity"),
            Self::Registry(_) => f.write_str("Registry"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_registries_are_recognised_in_the_words_of_runtimes() {
        let other = |message: &str| Error::Other {
            code: 2,
            message: message.to_owned(),
        };
        for message in [
            "failed to pull and unpack image \"lab.test/a:1\": failed to resolve reference \"lab.test/a:1\": \
             pull access denied, repository does not exist or may require authorization: authorization failed: no basic \
             auth credentials",
            "failed to resolve reference \"lab.test/a:1\": unexpected status from HEAD request to \
             https://lab.test/v2/a/manifests/1: 403 Forbidden",
            "reading manifest 1 in lab.test/a: unauthorized: authentication required",
            "initializing source docker://lab.test/a:1: unable to retrieve auth token: invalid username/password: \
             unauthorized: incorrect username or password",
        ] {
            assert_eq!(refused(other(message)), Error::CredentialsRefused(message.into()));
            assert_eq!(
                refused(Error::NotFound(message.into())),
                Error::CredentialsRefused(message.into())
            );
        }
        for error in [
            other("failed to do request: dial tcp: lookup lab.test: no such host"),
            Error::NotFound("lab.test/a:1: not found".into()),
            Error::TimedOut("401 Unauthorized".into()),
        ] {
            assert_eq!(refused(error.clone()), error);
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let basic = Auth::Basic {
            username: "me",
            password: "hunter2",
        };
        for auth in [basic, Auth::Identity("hunter2"), Auth::Registry("hunter2")] {
            let pull = Pull {
                auth: Some(auth),
                ..Pull::default()
            };
            let printed = format!("{pull:?} {:?}", wire::AuthConfig::from(auth));
            assert!(!printed.contains("hunter2"), "{printed}");
        }
    }
}
