//! Whether the runtime has an image.

use go_compat::image::{Reference, join};

use crate::RuntimeImage;

/// Finds an image by its name without tag, and its tag or digest.
pub(super) fn find<'a>(images: &'a [RuntimeImage], name: &str, version: &str) -> Option<&'a RuntimeImage> {
    let wanted: Reference = join(name, version).parse().ok()?;
    // Most references of a node are of other images; they are not parsed.
    let end = join(name.rsplit('/').next().unwrap_or_default(), version);
    let is_wanted = |reference: &str| reference.ends_with(&end) && reference.parse() == Ok(wanted.clone());
    images.iter().find(|image| {
        let references = if wanted.has_digest() {
            &image.digests
        } else {
            &image.tags
        };
        references.iter().any(|reference| is_wanted(reference))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_digests_are_found_whatever_is_written_out() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let image = |id: &str, tag: &str, digest: String| RuntimeImage {
            id: id.into(),
            tags: vec![tag.into()],
            digests: vec![digest.into()],
        };
        let images = [
            image(
                "other",
                "localhost:5000/nginx:1",
                format!("localhost:5000/nginx@{digest}"),
            ),
            image("broken", ":1", "@".into()),
            image(
                "nginx",
                "docker.io/library/nginx:1",
                format!("docker.io/library/nginx@{digest}"),
            ),
        ];
        let id = |name: &str, version: &str| find(&images, name, version).map(|image| &*image.id);
        assert_eq!(id("nginx", "1"), Some("nginx"));
        assert_eq!(id("nginx", &digest), Some("nginx"));
        assert_eq!(id("localhost:5000/nginx", "1"), Some("other"));
        assert_eq!(id("docker.io/library/nginx", "1"), Some("nginx"));
        assert_eq!(id("nginx", "11"), None);
        assert_eq!(id("nginx", "latest"), None);
        assert_eq!(id("team/nginx", "1"), None);
    }
}
