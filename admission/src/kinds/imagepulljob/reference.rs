//! Whether a text names an image, as container runtimes read it.

/// Longest name without tag and digest.
const LONGEST: usize = 255;
const LONGEST_TAG: usize = 128;

/// `[host[:port]/]path[/path…][:tag][@algorithm:hex]`.
pub(super) fn is_valid(text: &str) -> bool {
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    // A colon after the last slash starts a tag, one before it a port.
    let last = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match rest.get(last..).and_then(|end| end.find(':')) {
        Some(colon) => (
            rest.get(..last + colon).unwrap_or_default(),
            rest.get(last + colon + 1..),
        ),
        None => (rest, None),
    };
    let all_hex = |text: &str| text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit());
    // Sixty-four hexadecimal digits would be taken for an identifier.
    name.len() <= LONGEST
        && is_name(name)
        && !all_hex(name)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
}

fn is_name(name: &str) -> bool {
    match name.split_once('/') {
        Some((host, path)) if is_host(host) => path.split('/').all(is_component),
        _ => name.split('/').all(is_component),
    }
}

/// Only what has a dot or a port, is `localhost` or has capitals is a host; anything else is part of the path.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let marked = port.is_some()
        || host.contains('.')
        || host == "localhost"
        || host.chars().any(|c| c.is_ascii_uppercase());
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let is_port = |port: &str| !port.is_empty() && port.chars().all(|c| c.is_ascii_digit());
    marked && host.split('.').all(label) && port.is_none_or(is_port)
}

/// Lower-case letters and digits, between them one dot, one or two underscores, or hyphens.
fn is_component(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let separators: Vec<&str> = text.split(plain).filter(|between| !between.is_empty()).collect();
    let known = |between: &&str| matches!(*between, "." | "_" | "__") || between.chars().all(|c| c == '-');
    text.starts_with(plain) && text.ends_with(plain) && separators.iter().all(known)
}

fn is_tag(tag: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && tag.len() <= LONGEST_TAG
        && tag.chars().all(inner)
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else {
        return false;
    };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length
        && hex
            .chars()
            .all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
}

#[cfg(test)]
mod tests {
    use super::is_valid;

    #[test]
    fn names_that_a_runtime_takes_are_valid() {
        let digest = format!("nginx:1.2@sha256:{}", "0a".repeat(32));
        for image in [
            "nginx",
            "docker.io/library/nginx:1",
            "docker.io/foo/nginx:1",
            "reg.example/a/b",
            "localhost:5000/x:y",
            "localhost/x",
            "REG.example.com/a__b/c-d.e:V1_-",
            &digest,
        ] {
            assert!(is_valid(image), "{image}");
        }
    }

    #[test]
    fn names_that_no_runtime_takes_are_not() {
        let identifier = "0a".repeat(32);
        let long = "a".repeat(256);
        for image in [
            "",
            "Foo",
            "a/b@sha256:12",
            "a:",
            "a:-b",
            "a b",
            "/a",
            "a/",
            "a//b",
            "a..b",
            "-a",
            "a___b",
            "a@",
            "a:b:c",
            "ho_st:1/a",
            "reg.example:port/a",
            &identifier,
            &long,
        ] {
            assert!(!is_valid(image), "{image}");
        }
    }
}
