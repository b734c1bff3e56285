//! Registries as data: which images they have, who may pull them, and what goes wrong.
//!
//! A registry that nothing is said about has every image, for everybody; a host below `.invalid` does not exist.

use std::collections::BTreeMap;

use go_compat::image::{Reference, join};

use super::call::Login;
use crate::nodes::identity;

/// All registries. Those that are not here have every image, of
/// [`Options::image_bytes`](super::Options::image_bytes) each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registries {
    hosts: BTreeMap<String, Registry>,
    /// By repository and tag or digest; `None` where there is no such image.
    images: BTreeMap<String, Option<RemoteImage>>,
}

/// One registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    /// Does it have no images but those that were added?
    pub is_closed: bool,
    /// Who may pull; `None` for everybody.
    pub login: Option<Login>,
    /// Bytes in a second of one pull; `None` for [`Options::bandwidth`](super::Options::bandwidth).
    pub bandwidth: Option<u64>,
    /// What goes wrong.
    pub trouble: Option<Trouble>,
}

/// An image of a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteImage {
    /// Digest of its manifest: `sha256:` and 64 hexadecimal digits; `None` for one that is made of its reference.
    pub digest: Option<String>,
    /// What it takes on a disk, and has to be transferred; `None` for
    /// [`Options::image_bytes`](super::Options::image_bytes).
    pub bytes: Option<u64>,
    /// Who may pull it, instead of whom the registry says.
    pub login: Option<Login>,
    /// What goes wrong, instead of what the registry says.
    pub trouble: Option<Trouble>,
}

/// What goes wrong with pulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nobody answers at the registry's port: pulls fail at once, and those that run break.
    Down,
    /// Pulls never end by themselves.
    Hangs,
    /// Transfers break when so many percent are there.
    BreaksAfter(u8),
}

/// An image that can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::nodes) struct Offer {
    pub(in crate::nodes) digest: String,
    pub(in crate::nodes) bytes: Option<u64>,
    pub(super) login: Option<Login>,
    pub(super) bandwidth: Option<u64>,
}

/// Why an image cannot be had, in the words of containerd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::nodes) enum Absence {
    /// The host does not exist.
    Nowhere(String),
    NotFound(String),
}

impl Absence {
    pub(in crate::nodes) fn into_text(self) -> String {
        match self {
            Self::Nowhere(text) | Self::NotFound(text) => text,
        }
    }
}

impl Registries {
    /// The registry of a host, with its port if it has one: `docker.io`, `localhost:5000`. It is added if it is not
    /// there yet.
    pub fn registry(&mut self, host: &str) -> &mut Registry {
        self.hosts.entry(host.to_owned()).or_default()
    }

    /// Adds an image, or replaces it.
    pub fn add(&mut self, reference: &str, image: RemoteImage) {
        self.images.insert(canonical(reference), Some(image));
    }

    /// Removes an image: a registry that has every other one does not have this one.
    pub fn remove(&mut self, reference: &str) {
        self.images.insert(canonical(reference), None);
    }

    /// The image of a reference. A text that is no reference is the name of an image here.
    pub(in crate::nodes) fn look_up(&self, text: &str) -> Result<Offer, Absence> {
        if let Some(host) = nowhere(text) {
            return Err(Absence::Nowhere(format!(
                "failed to resolve image {text:?}: dial tcp: lookup {host}: no such host"
            )));
        }
        let full = canonical(text);
        let registry = self.hosts.get(host_of(&full));
        let found = match self.images.get(&full) {
            Some(listed) => listed.as_ref(),
            None => match self.by_digest(&full) {
                None if registry.is_none_or(|registry| !registry.is_closed) => Some(&ANY),
                found => found,
            },
        };
        let image = found.ok_or_else(|| {
            Absence::NotFound(format!(
                "failed to pull and unpack image {full:?}: failed to resolve reference {full:?}: {full}: not found"
            ))
        })?;
        Ok(Offer {
            digest: image.digest.clone().unwrap_or_else(|| digest_of(text)),
            bytes: image.bytes,
            login: image
                .login
                .clone()
                .or_else(|| registry.and_then(|registry| registry.login.clone())),
            bandwidth: registry.and_then(|registry| registry.bandwidth),
        })
    }

    /// What goes wrong with the image of a reference.
    pub(super) fn trouble_of(&self, text: &str) -> Option<Trouble> {
        let full = canonical(text);
        let listed = self.images.get(&full).and_then(Option::as_ref);
        let image = listed.or_else(|| self.by_digest(&full));
        let registry = self.hosts.get(host_of(&full));
        image
            .and_then(|image| image.trouble)
            .or_else(|| registry.and_then(|registry| registry.trouble))
    }

    /// A tagged image that has the digest of a reference.
    fn by_digest(&self, full: &str) -> Option<&RemoteImage> {
        let (repository, digest) = full.split_once('@')?;
        let start = format!("{repository}:");
        let all = self
            .images
            .range(start.clone()..)
            .take_while(|(name, _)| name.starts_with(&start));
        let mut images = all.filter_map(|(_, image)| image.as_ref());
        images.find(|image| image.digest.as_deref() == Some(digest))
    }
}

/// The registry of a canonical reference.
fn host_of(full: &str) -> &str {
    full.split_once('/').map_or("", |(host, _)| host)
}

/// An image that nothing is said about.
const ANY: RemoteImage = RemoteImage {
    digest: None,
    bytes: None,
    login: None,
    trouble: None,
};

/// A reference with everything written out: registry, path, and tag or digest. Of what is no reference at least the
/// repository is, if it is one: a digest may be a stand-in.
pub(in crate::nodes) fn canonical(text: &str) -> String {
    if let Ok(read) = text.parse::<Reference>() {
        return join(&read.repository(), read.version());
    }
    let repository = identity::repository(text);
    let version = text.strip_prefix(repository).unwrap_or_default();
    match repository.parse::<Reference>() {
        Ok(read) => format!("{}{version}", read.repository()),
        Err(_) => text.to_owned(),
    }
}

/// The digest of a reference, or one that is made of its short form.
fn digest_of(text: &str) -> String {
    match text.parse::<Reference>() {
        Ok(read) if read.has_digest() => read.version().to_owned(),
        Ok(read) => identity::manifest_digest(&read.to_string()),
        Err(_) => identity::manifest_digest(text),
    }
}

/// The host that an image comes from, without its port, if it is one of the domain that is kept for names which
/// lead nowhere.
fn nowhere(text: &str) -> Option<&str> {
    let host = text.split_once('/').map_or("", |(host, _)| host);
    let host = host.split(':').next().unwrap_or_default();
    (host.rsplit('.').next() == Some("invalid")).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_out_whatever_follows_it() {
        for (text, full) in [
            ("web", "docker.io/library/web:latest"),
            ("web:1", "docker.io/library/web:1"),
            ("index.docker.io/a/web:1", "docker.io/a/web:1"),
            ("h:5000/a/web", "h:5000/a/web:latest"),
            ("web@sha256:12", "docker.io/library/web@sha256:12"),
            ("No Reference:1", "No Reference:1"),
            ("", ""),
        ] {
            assert_eq!(canonical(text), full, "{text}");
        }
    }

    #[test]
    fn an_image_that_was_removed_or_never_added_to_a_closed_registry_is_absent() {
        let mut all = Registries::default();
        all.registry("r.example").is_closed = true;
        all.add("r.example/a:1", RemoteImage::default());
        all.remove("web:1");
        let is_there = |text: &str| all.look_up(text).is_ok();
        assert!(is_there("r.example/a:1") && is_there("web:2"));
        assert!(!is_there("r.example/a:2") && !is_there("docker.io/library/web:1"));
    }

    #[test]
    fn what_an_image_says_counts_before_what_its_registry_says() {
        let mut all = Registries::default();
        let registry = all.registry("r.example");
        registry.trouble = Some(Trouble::Hangs);
        let image = RemoteImage {
            trouble: Some(Trouble::Down),
            ..RemoteImage::default()
        };
        all.add("r.example/a:1", image);
        assert_eq!(all.trouble_of("r.example/a:1"), Some(Trouble::Down));
        assert_eq!(all.trouble_of("r.example/a:2"), Some(Trouble::Hangs));
        assert_eq!(all.trouble_of("web:1"), None);
    }
}
