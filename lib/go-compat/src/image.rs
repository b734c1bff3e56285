//! References to images as Docker's library for them reads them: `[host[:port]/]path[:tag][@digest]`.
//!
//! ```
//! use go_compat::image::{Reference, join};
//!
//! let nginx: Reference = "index.docker.io/library/nginx".parse()?;
//! assert_eq!((nginx.name().as_str(), nginx.version()), ("nginx", "latest"));
//! assert_eq!(nginx.repository(), "docker.io/library/nginx");
//! assert_eq!(join("nginx", "sha256:0a"), "nginx@sha256:0a");
//! # Ok::<_, go_compat::Error>(())
//! ```

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// The registry of a reference that names none, and the folder of its paths that have no slash.
const DEFAULT_DOMAIN: &str = "docker.io";
const LEGACY_DOMAIN: &str = "index.docker.io";
const OFFICIAL: &str = "library/";
const DEFAULT_TAG: &str = "latest";

/// Longest name without tag and digest.
const LONGEST: usize = 255;
const LONGEST_TAG: usize = 128;

/// A valid reference with its defaults filled in.
///
/// A reference with a tag and a digest is one with a digest: the tag decides nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    domain: String,
    path: String,
    version: Version,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Version {
    Tag(String),
    Digest(String),
}

impl Reference {
    /// Host, port and path with nothing left out: `docker.io/library/nginx`. What credentials are matched against.
    pub fn repository(&self) -> String {
        format!("{}/{}", self.domain, self.path)
    }

    /// The short name: without the default registry and its folder of official images, unless what is left would name
    /// another registry.
    pub fn name(&self) -> String {
        let official = self.path.strip_prefix(OFFICIAL);
        let short = official.filter(|rest| !rest.contains('/')).unwrap_or(&self.path);
        if self.domain == DEFAULT_DOMAIN && split(short).0 == DEFAULT_DOMAIN {
            short.to_owned()
        } else {
            self.repository()
        }
    }

    /// The tag, or the digest with its algorithm.
    pub fn version(&self) -> &str {
        match &self.version {
            Version::Tag(text) | Version::Digest(text) => text,
        }
    }

    /// Whether it names content, which never changes, and not a tag.
    pub fn has_digest(&self) -> bool {
        matches!(self.version, Version::Digest(_))
    }
}

/// Name and version, joined as the version needs it.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(&self.name(), self.version()))
    }
}

/// The reference of a name and a tag or digest: a digest, which holds a colon, follows an `@`.
pub fn join(name: &str, version: &str) -> String {
    let separator = if version.contains(':') { '@' } else { ':' };
    format!("{name}{separator}{version}")
}

impl FromStr for Reference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).ok_or_else(|| Error::Image(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Reference> {
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    // Sixty-four hexadecimal digits are an identifier.
    if text.len() == 64 && text.chars().all(hex) {
        return None;
    }
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    // A colon after the last slash starts a tag, one before it a port.
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    let is_valid =
        name.len() <= LONGEST && tag.is_none_or(is_tag) && digest.is_none_or(|digest| is_digest(digest, hex));
    let (domain, path) = split(name);
    if !is_valid || !is_host(domain) || !path.split('/').all(is_component) {
        return None;
    }
    let is_default = domain == LEGACY_DOMAIN || domain == DEFAULT_DOMAIN;
    let folder = if is_default && !path.contains('/') {
        OFFICIAL
    } else {
        ""
    };
    Some(Reference {
        domain: if is_default { DEFAULT_DOMAIN } else { domain }.to_owned(),
        path: format!("{folder}{path}"),
        version: match digest {
            Some(digest) => Version::Digest(digest.to_owned()),
            None => Version::Tag(tag.unwrap_or(DEFAULT_TAG).to_owned()),
        },
    })
}

/// Only what has a dot or a port, is `localhost` or has capitals is a host; anything else is part of the path.
fn split(name: &str) -> (&str, &str) {
    let is_host =
        |text: &str| text.contains(['.', ':']) || text == "localhost" || text.contains(char::is_uppercase);
    match name.split_once('/') {
        Some((host, path)) if is_host(host) => (host, path),
        _ => (DEFAULT_DOMAIN, name),
    }
}

fn is_host(text: &str) -> bool {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (is_address, port) = if let Some((address, port)) = bracketed {
        let plain = |c: char| c.is_ascii_hexdigit() || c == ':';
        (!address.is_empty() && address.chars().all(plain), port)
    } else {
        let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
        (host.split('.').all(is_label), port)
    };
    let is_port = |port: &str| !port.is_empty() && port.chars().all(|c| c.is_ascii_digit());
    is_address && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Lower-case letters and digits, between them one dot, one or two underscores, or hyphens.
fn is_component(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let known = |between: &str| matches!(between, "." | "_" | "__") || between.chars().all(|c| c == '-');
    text.starts_with(plain) && text.ends_with(plain) && text.split(plain).all(known)
}

fn is_tag(tag: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && tag.len() <= LONGEST_TAG
        && tag.chars().all(inner)
}

fn is_digest(digest: &str, hex: fn(char) -> bool) -> bool {
    let Some((algorithm, digits)) = digest.split_once(':') else {
        return false;
    };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    digits.len() == length && digits.chars().all(hex)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Reference, join};

    fn digest() -> String {
        format!("sha256:{}", "0a".repeat(32))
    }

    #[test]
    fn defaults_are_left_out_of_names_and_written_into_repositories() {
        let with_digest = format!("nginx:1.2@{}", digest());
        for (text, name, version, repository) in [
            ("nginx", "nginx", "latest", "docker.io/library/nginx"),
            (
                "docker.io/library/nginx:1",
                "nginx",
                "1",
                "docker.io/library/nginx",
            ),
            ("docker.io/foo/nginx:1", "foo/nginx", "1", "docker.io/foo/nginx"),
            (
                "index.docker.io/nginx",
                "nginx",
                "latest",
                "docker.io/library/nginx",
            ),
            ("library/a/b", "library/a/b", "latest", "docker.io/library/a/b"),
            ("reg.example/a/b", "reg.example/a/b", "latest", "reg.example/a/b"),
            (
                "reg.example/library/a",
                "reg.example/library/a",
                "latest",
                "reg.example/library/a",
            ),
            ("localhost:5000/x:y", "localhost:5000/x", "y", "localhost:5000/x"),
            ("localhost/x", "localhost/x", "latest", "localhost/x"),
            ("[::1]:5000/x", "[::1]:5000/x", "latest", "[::1]:5000/x"),
            (
                "REG.example.com/a__b/c-d.e:V1_-",
                "REG.example.com/a__b/c-d.e",
                "V1_-",
                "REG.example.com/a__b/c-d.e",
            ),
            ("Foo/a", "Foo/a", "latest", "Foo/a"),
            ("docker.io/a.b/c", "docker.io/a.b/c", "latest", "docker.io/a.b/c"),
            (&with_digest, "nginx", &digest(), "docker.io/library/nginx"),
        ] {
            let read: Reference = text.parse().unwrap();
            assert_eq!(
                (read.name().as_str(), read.version(), read.repository().as_str()),
                (name, version, repository),
                "{text}"
            );
        }
    }

    #[test]
    fn what_no_runtime_takes_is_an_error() {
        let identifier = "0a".repeat(32);
        let long = "a".repeat(256);
        let long_tag = format!("a:{}", "a".repeat(129));
        let capitals = format!("a@sha256:{}", "0A".repeat(32));
        let unknown = format!("a@md5:{}", "0a".repeat(16));
        for text in [
            "",
            "Foo",
            "a/b@sha256:12",
            "a/b@",
            "a:",
            "a:-b",
            "a b",
            "/a",
            "a/",
            "a//b",
            "a..b",
            "-a",
            "a___b",
            "a:b:c",
            "a/B",
            "ä",
            "ho_st:1/a",
            "reg.example:/a",
            "reg.example:port/a",
            "reg..example/a",
            "[]/a",
            "[::1/a",
            "[::1]5000/a",
            "https://reg.example/a",
            &identifier,
            &long,
            &long_tag,
            &capitals,
            &unknown,
        ] {
            assert!(text.parse::<Reference>().is_err(), "{text}");
        }
    }

    #[test]
    fn digests_are_joined_by_an_at_sign() {
        assert_eq!(join("a", "1"), "a:1");
        assert_eq!(
            join("localhost:5000/a", &digest()),
            format!("localhost:5000/a@{}", digest())
        );
        let read: Reference = join("a", &digest()).parse().unwrap();
        assert!(read.has_digest());
        assert!(!join("a", "1").parse::<Reference>().unwrap().has_digest());
    }

    proptest! {
        /// Written from the published grammar; its parts are drawn, so that what must come out is known.
        #[test]
        fn parts_come_out_as_they_went_in(
            host in "([a-z0-9]([a-z0-9-]{0,5}[a-zA-Z0-9])?\\.){1,3}[a-zA-Z0-9]{1,5}(:[0-9]{1,5})?",
            path in "[a-z0-9]{1,4}((\\.|_|__|-{1,3})[a-z0-9]{1,4}){0,3}(/[a-z0-9]{1,4}){0,3}",
            tag in "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}",
        ) {
            prop_assume!(host != "docker.io" && host != "index.docker.io");
            let read: Reference = format!("{host}/{path}:{tag}").parse().unwrap();
            prop_assert_eq!(read.repository(), format!("{host}/{path}"));
            prop_assert_eq!(read.name(), format!("{host}/{path}"));
            prop_assert_eq!(read.version(), tag);
        }

        #[test]
        fn short_names_name_the_same_image(
            text in "[a-z0-9]{1,4}(/[a-z0-9]{1,4}){0,2}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,9})?",
        ) {
            let read: Reference = text.parse().unwrap();
            let again: Reference = read.to_string().parse().unwrap();
            let full: Reference = join(&read.repository(), read.version()).parse().unwrap();
            prop_assert_eq!(&again, &read);
            prop_assert_eq!(&full, &read);
        }

        #[test]
        fn what_is_read_of_any_text_names_an_image(text in "[a-zA-Z0-9./:@_-]{0,40}") {
            if let Ok(read) = text.parse::<Reference>() {
                prop_assert_eq!(join(&read.repository(), read.version()).parse().ok(), Some(read));
            }
        }
    }
}
