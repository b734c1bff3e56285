//! Resource versions as ordered numbers.

use std::fmt;
use std::str::FromStr;

use crate::Cached;

/// A `resourceVersion` of the API server, comparable within one resource.
///
/// Built-in resources and custom resources carry decimal etcd revisions, and Kubernetes promises that these may be
/// compared. Aggregated APIs may use other strings; those do not parse and count as unknown (see [`Version::of`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u64);

/// The text is not a decimal resource version. Treat the version as unknown, never as zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("resource version is not a decimal number")]
pub struct ParseVersionError;

impl Version {
    /// Wraps a revision number.
    pub const fn new(revision: u64) -> Self {
        Self(revision)
    }

    /// The revision number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The version of an object, `None` when the server does not use comparable versions.
    pub fn of<T: Cached>(object: &T) -> Option<Self> {
        object.resource_version().parse().ok()
    }
}

impl FromStr for Version {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // `u64::from_str` accepts a plus sign, which no server sends.
        if !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ParseVersionError);
        }
        text.parse().map(Self).map_err(|_| ParseVersionError)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers_not_as_text() {
        let nine: Version = "9".parse().unwrap();
        let ten: Version = "10".parse().unwrap();
        assert!(nine < ten);
        assert_eq!(ten.to_string(), "10");
    }

    #[test]
    fn text_that_is_no_decimal_is_refused() {
        for text in ["", "+1", "-1", "1.0", "0x1", "abc", " 1", "99999999999999999999"] {
            assert_eq!(text.parse::<Version>(), Err(ParseVersionError), "{text:?}");
        }
    }
}
