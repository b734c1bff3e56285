//! The images of one node: what is there, and what the kubelet is pulling.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::registry::canonical;
use crate::nodes::identity;

/// An image of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Digest of its configuration: `sha256:…`.
    pub id: String,
    /// References with a tag, each with registry and path: `docker.io/library/nginx:1`.
    pub tags: Vec<String>,
    /// References with a digest: `docker.io/library/nginx@sha256:…`.
    pub digests: Vec<String>,
    /// What it takes on the disk, in bytes. Layers that images share are not modelled: each has its own.
    pub bytes: u64,
}

/// Which images are there, and from when on.
#[derive(Clone, Debug, Default)]
pub(in crate::nodes) struct Images {
    /// By canonical reference: a tag, or what a pod names.
    names: BTreeMap<String, Name>,
    /// By digest of the manifest.
    contents: BTreeMap<String, Content>,
}

#[derive(Clone, Debug)]
struct Name {
    digest: String,
    from: Timestamp,
}

#[derive(Clone, Debug)]
struct Content {
    bytes: u64,
    from: Timestamp,
    /// The names that it was pulled by, without tag and digest.
    repositories: BTreeSet<String>,
}

impl Images {
    /// An image is there from a time on, under a name.
    pub(in crate::nodes) fn add(&mut self, text: &str, digest: &str, bytes: u64, from: Timestamp) {
        let name = canonical(text);
        let content = self.contents.entry(digest.to_owned()).or_insert(Content {
            bytes,
            from,
            repositories: BTreeSet::new(),
        });
        content.from = content.from.min(from);
        content
            .repositories
            .insert(identity::repository(&name).to_owned());
        let digest = digest.to_owned();
        self.names.insert(name, Name { digest, from });
    }

    /// When the image of a name is (or will be) there; `None` if it is not being pulled.
    pub(in crate::nodes) fn when(&self, text: &str) -> Option<Timestamp> {
        self.names.get(&canonical(text)).map(|name| name.from)
    }

    /// When these contents are (or will be) there.
    pub(super) fn when_content(&self, digest: &str) -> Option<Timestamp> {
        self.contents.get(digest).map(|content| content.from)
    }

    /// Whether an image of the same repository was pulled, or is being pulled.
    pub(in crate::nodes) fn has_of_repository(&self, text: &str) -> bool {
        let name = canonical(text);
        let of = identity::repository(&name);
        self.names.keys().any(|known| identity::repository(known) == of)
    }

    /// Removes an image with all of its names. Returns whether it was there.
    pub(super) fn remove(&mut self, text: &str, now: Timestamp) -> bool {
        let Some(digest) = self.find(text, now).map(str::to_owned) else {
            return false;
        };
        self.names.retain(|_, name| name.digest != digest);
        self.contents.remove(&digest).is_some()
    }

    /// What the images take that are complete.
    pub(super) fn bytes(&self, now: Timestamp) -> u64 {
        let complete = self.contents.values().filter(|content| content.from <= now);
        complete.fold(0, |sum, content| sum.saturating_add(content.bytes))
    }

    /// All that are complete, by digest.
    pub(super) fn list(&self, now: Timestamp) -> Vec<Image> {
        let mut tags: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (text, name) in self.names.iter().filter(|(_, name)| name.from <= now) {
            if !text.contains('@') {
                tags.entry(&name.digest).or_default().push(text.clone());
            }
        }
        let complete = self.contents.iter().filter(|(_, content)| content.from <= now);
        complete
            .map(|(digest, content)| Image {
                id: identity::config_digest(digest),
                tags: tags.remove(digest.as_str()).unwrap_or_default(),
                digests: content
                    .repositories
                    .iter()
                    .map(|repository| format!("{repository}@{digest}"))
                    .collect(),
                bytes: content.bytes,
            })
            .collect()
    }

    /// The image of a reference or an id.
    pub(super) fn image(&self, text: &str, now: Timestamp) -> Option<Image> {
        let id = identity::config_digest(self.find(text, now)?);
        self.list(now).into_iter().find(|image| image.id == id)
    }

    /// The digest of the manifest of a reference or an id, if the image is complete.
    pub(super) fn find(&self, text: &str, now: Timestamp) -> Option<&str> {
        let name = canonical(text);
        if let Some(name) = self.names.get(&name).filter(|name| name.from <= now) {
            return Some(&name.digest);
        }
        let digest = name.split_once('@').map(|(_, digest)| digest);
        let mut complete = self.contents.iter().filter(|(_, content)| content.from <= now);
        let found = complete.find(|(manifest, content)| match digest {
            Some(digest) => *manifest == digest && content.repositories.contains(identity::repository(&name)),
            None => identity::config_digest(manifest) == text,
        });
        found.map(|(manifest, _)| manifest.as_str())
    }
}

#[cfg(test)]
mod tests {
    use jiff::{Timestamp, ToSpan};

    use super::Images;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn digest(digit: char) -> String {
        format!("sha256:{}", digit.to_string().repeat(64))
    }

    #[test]
    fn an_image_has_all_tags_that_lead_to_it_and_a_digest_in_each_repository() {
        let mut images = Images::default();
        for name in ["web:1", "docker.io/library/web:latest", "reg.example/web:1"] {
            images.add(name, &digest('a'), 7, START);
        }
        let [image] = &images.list(START)[..] else {
            panic!("one image")
        };
        assert_eq!(
            image.tags,
            [
                "docker.io/library/web:1",
                "docker.io/library/web:latest",
                "reg.example/web:1"
            ]
        );
        let a = digest('a');
        assert_eq!(
            image.digests,
            [
                format!("docker.io/library/web@{a}"),
                format!("reg.example/web@{a}")
            ]
        );
        assert_eq!(images.bytes(START), 7);
        for name in ["web", "web:1", &format!("web@{a}"), &image.id] {
            assert_eq!(images.image(name, START).as_ref(), Some(image), "{name}");
        }
        for name in ["web:2", &format!("other@{a}"), &a, "", ":"] {
            assert_eq!(images.image(name, START), None, "{name}");
        }
    }

    #[test]
    fn a_tag_that_moves_leaves_its_image_without_one() {
        let mut images = Images::default();
        images.add("web:1", &digest('a'), 7, START);
        images.add("web:1", &digest('b'), 9, START);
        let tags = images.list(START).into_iter().map(|image| image.tags.len());
        assert_eq!(tags.collect::<Vec<_>>(), [0, 1]);
        assert!(images.remove(&format!("web@{}", digest('a')), START));
        assert_eq!(images.bytes(START), 9);
    }

    #[test]
    fn what_is_not_complete_is_not_there_yet() {
        let mut images = Images::default();
        let then = START + 5.seconds();
        images.add("web:1", &digest('a'), 7, then);
        assert_eq!((images.list(START).len(), images.bytes(START)), (0, 0));
        assert!(!images.remove("web:1", START));
        assert_eq!(images.when("docker.io/library/web:1"), Some(then));
        assert_eq!((images.list(then).len(), images.bytes(then)), (1, 7));
        assert!(images.remove("web:1", then) && images.when("web:1").is_none());
    }
}
