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

/// Name and tag of a reference, as NodeImages list it: without the default registry and `library/`, with `latest`
/// if it has neither tag nor digest. The digest takes the place of the tag if there are both.
pub fn name_and_tag(reference: &str) -> (String, String) {
    let (name, digest) = match reference.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (reference, None),
    };
    let (name, tag) = split_tag(name);
    let tag = digest.or(tag).unwrap_or("latest");
    (familiar(name).to_owned(), tag.to_owned())
}

/// The reference of a name and a tag or digest: a digest is what has a colon.
pub fn reference(name: &str, tag: &str) -> String {
    let joint = if tag.contains(':') { '@' } else { ':' };
    format!("{name}{joint}{tag}")
}

/// The name without what is the default.
fn familiar(name: &str) -> &str {
    let of_default = ["docker.io/", "index.docker.io/"]
        .into_iter()
        .find_map(|registry| name.strip_prefix(registry));
    let is_elsewhere = || name.split_once('/').is_some_and(|(host, _)| is_host(host));
    match of_default {
        Some(path) => path.strip_prefix("library/").unwrap_or(path),
        None if is_elsewhere() => name,
        None => name.strip_prefix("library/").unwrap_or(name),
    }
}

fn is_host(text: &str) -> bool {
    text.contains(['.', ':']) || text == "localhost"
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
        Some((host, _)) if is_host(host) => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
        None => format!("docker.io/library/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{digest, name_and_tag, reference, same_image};

    #[test]
    fn references_are_split_as_node_images_list_them() {
        let sha = format!("sha256:{}", "0a".repeat(32));
        for (text, name, tag) in [
            ("nginx", "nginx", "latest"),
            ("docker.io/library/nginx:1", "nginx", "1"),
            ("index.docker.io/library/nginx:1", "nginx", "1"),
            ("library/nginx:1", "nginx", "1"),
            ("docker.io/foo/nginx:1", "foo/nginx", "1"),
            ("reg.example/a/b", "reg.example/a/b", "latest"),
            ("reg.example/library/b", "reg.example/library/b", "latest"),
            ("localhost:5000/x:y", "localhost:5000/x", "y"),
            (&format!("nginx:1.2@{sha}"), "nginx", &sha),
            (&format!("localhost:5000/x@{sha}"), "localhost:5000/x", &sha),
        ] {
            assert_eq!(name_and_tag(text), (name.to_owned(), tag.to_owned()), "{text}");
        }
        assert_eq!(reference("nginx", &sha), format!("nginx@{sha}"));
        assert_eq!(reference("localhost:5000/x", "y"), "localhost:5000/x:y");
    }

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
