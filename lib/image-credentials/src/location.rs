//! Where credentials are for: `host[:port][/path]`, with `*` in the labels of a host.

/// A location without scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    host: String,
    port: String,
    path: String,
}

impl Location {
    /// The location in a Docker configuration, which may have a scheme and the path of an API's version.
    pub(crate) fn of_config(text: &str) -> Option<Self> {
        let bare = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        let mut location = Self::parse(bare.unwrap_or(text))?;
        for version in ["/v1/", "/v2/"] {
            if let Some(rest) = location.path.strip_prefix(version) {
                location.path = format!("/{rest}");
                break;
            }
        }
        if location.path == "/" {
            location.path.clear();
        }
        Some(location)
    }

    /// A location as the host and path of a URL; nothing if it could be no URL's.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let end = text.find(['?', '#']).unwrap_or(text.len());
        let (text, _) = text.split_at(end);
        let (authority, path) = text.split_at(text.find('/').unwrap_or(text.len()));
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        // The colons of an IPv6 address are within brackets.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port),
            _ => (authority, ""),
        };
        let is_valid =
            is_host(host) && port.chars().all(|c| c.is_ascii_digit()) && !path.chars().any(char::is_control);
        is_valid.then(|| Self {
            host: host.to_owned(),
            port: port.to_owned(),
            path: path.to_owned(),
        })
    }

    /// What it is sorted by.
    pub(crate) fn key(&self) -> String {
        let separator = if self.port.is_empty() { "" } else { ":" };
        format!("{}{separator}{}{}", self.host, self.port, self.path)
    }

    /// Whether `target` is on this host and below this path. A path is compared as text, as the kubelet compares
    /// it: `/a` covers `/ab`, too.
    pub(crate) fn covers(&self, target: &Self) -> bool {
        let labels = |host: &str| host.split('.').count();
        self.port == target.port
            && labels(&self.host) == labels(&target.host)
            && target.path.starts_with(&self.path)
            && self
                .host
                .split('.')
                .zip(target.host.split('.'))
                .all(|(pattern, label)| glob(pattern, label))
    }
}

/// A name of any alphabet, with stars, or an IPv6 address.
fn is_host(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.chars().all(|c| c.is_ascii_hexdigit() || c == ':'),
        None => host
            .chars()
            .all(|c| c.is_alphanumeric() || "-._~!$&'()*+,;=".contains(c)),
    }
}

/// Whether `text` is `pattern` with something, or nothing, for each `*`.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    // The earliest place is the best one for whatever follows.
    for part in between.split('*') {
        match text.find(part) {
            Some(at) => text = text.split_at(at + part.len()).1,
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn covers(pattern: &str, target: &str) -> bool {
        let pattern = Location::parse(pattern).unwrap();
        pattern.covers(&Location::parse(target).unwrap())
    }

    #[test]
    fn a_location_covers_what_is_on_its_host_and_below_its_path() {
        for (pattern, target) in [
            ("reg.example", "reg.example"),
            ("reg.example", "reg.example/a/b"),
            ("reg.example/a", "reg.example/a/b"),
            ("reg.example/a", "reg.example/ab"),
            ("reg.example:5000", "reg.example:5000/a"),
            ("*.example", "reg.example/a"),
            ("*.dkr.ecr.*.amazonaws.com", "1.dkr.ecr.eu-west-1.amazonaws.com/a"),
            ("r*.ex*le/a", "reg.example/a/b"),
            ("*.*:1", "reg.example:1/a"),
            ("[::1]:5000", "[::1]:5000/a"),
        ] {
            assert!(covers(pattern, target), "{pattern} {target}");
        }
        for (pattern, target) in [
            ("example", "reg.example"),
            ("*.example", "a.reg.example"),
            ("*.example", "example"),
            ("*", "reg.example"),
            ("reg.example", "reg.example:5000/a"),
            ("reg.example:5000", "reg.example/a"),
            ("reg.example:*", "reg.example:5000/a"),
            ("reg.example/b", "reg.example/a/b"),
            ("reg.example/a/", "reg.example/a"),
            ("reg.example/*", "reg.example/a"),
            ("reg.exampl", "reg.example"),
        ] {
            let is_covered = Location::parse(pattern)
                .is_some_and(|pattern| pattern.covers(&Location::parse(target).unwrap()));
            assert!(!is_covered, "{pattern} {target}");
        }
    }

    #[test]
    fn locations_of_configurations_lose_scheme_and_version() {
        for (text, key) in [
            ("reg.example", "reg.example"),
            ("https://index.docker.io/v1/", "index.docker.io"),
            ("http://reg.example:5000/v2/a", "reg.example:5000/a"),
            ("reg.example/v2", "reg.example/v2"),
            ("reg.example/", "reg.example"),
            ("reg.example/a/", "reg.example/a/"),
            ("https://user@reg.example/a?b#c", "reg.example/a"),
        ] {
            assert_eq!(Location::of_config(text).unwrap().key(), key, "{text}");
        }
        for text in [
            "reg example",
            "reg.example:port",
            "a:1:2",
            "[::1",
            "a\\b",
            "reg.example/\n",
        ] {
            assert_eq!(Location::of_config(text), None, "{text}");
        }
    }

    /// Every way in which a star could end.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|end| naive(rest, &text[end..])),
            Some((byte, rest)) => text.first() == Some(byte) && naive(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn globs_match_as_every_way_is_tried(pattern in "[ab*]{0,7}", text in "[ab]{0,9}") {
            prop_assert_eq!(glob(&pattern, &text), naive(pattern.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn any_text_is_a_location_or_none(text in ".{0,30}") {
            if let Some(location) = Location::of_config(&text) {
                prop_assert_eq!(Location::parse(&location.key()).map(|again| again.key()), Some(location.key()));
            }
        }
    }
}
