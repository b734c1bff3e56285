//! References to images, as people and runtimes write them.

/// Do two references name the same image once defaults are written out (`nginx` = `docker.io/library/nginx:latest`)?
pub fn same_image(wanted: &str, reported: &str) -> bool {
    normalised(wanted) == normalised(reported)
}

/// Repository, with its defaults written out, and digest of a reference that has one.
pub fn digest(reference: &str) -> Option<(String, &str)> {
    let (name, digest) = reference.split_once('@')?;
    Some((repository(split_tag(name).0), digest))
}

fn normalised(image: &str) -> String {
    if let Some((repository, digest)) = digest(image) {
        return format!("{repository}@{digest}");
    }
    let (name, tag) = split_tag(image);
    format!("{}:{}", repository(name), tag.unwrap_or("latest"))
}

/// A colon after the last slash starts the tag; one before it belongs to a registry's port.
fn split_tag(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
        _ => (name, None),
    }
}

fn repository(name: &str) -> String {
    match name.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
        None => format!("docker.io/library/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{digest, same_image};

    #[test]
    fn a_digest_belongs_to_its_repository_whatever_tag_stands_between() {
        let expected = Some(("docker.io/library/nginx".to_owned(), "sha256:1"));
        for reference in [
            "nginx@sha256:1",
            "nginx:1.25@sha256:1",
            "docker.io/library/nginx@sha256:1",
        ] {
            assert_eq!(digest(reference), expected, "{reference}");
        }
        assert_eq!(digest("localhost:5000/nginx:1.25"), None);
        assert!(same_image("nginx", "docker.io/library/nginx:latest") && !same_image("nginx:1", "nginx:2"));
    }
}
