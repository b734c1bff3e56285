//! A small sorted map of strings: a pod has a dozen labels, and a tree node for each would cost more than the text.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

/// Labels or annotations, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

impl Labels {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        let index = self.0.binary_search_by(|(have, _)| (**have).cmp(key)).ok()?;
        self.0.get(index).map(|(_, value)| &**value)
    }

    /// All pairs in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// No pairs?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps only the pairs whose key passes.
    #[must_use]
    pub fn filtered(self, keep: impl Fn(&str) -> bool) -> Self {
        Self(
            self.0
                .into_vec()
                .into_iter()
                .filter(|(key, _)| keep(key))
                .collect(),
        )
    }
}

impl<K: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut pairs: Vec<(Box<str>, Box<str>)> = pairs
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        // Stable sort, then keep the last of equal keys, as JSON readers do.
        pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        pairs.reverse();
        pairs.dedup_by(|(a, _), (b, _)| a == b);
        pairs.reverse();
        Self(pairs.into())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Labels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }

            fn visit_unit<E>(self) -> Result<Labels, E> {
                Ok(Labels::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut pairs: Vec<(Box<str>, Option<Box<str>>)> = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(pairs
                    .into_iter()
                    .map(|(key, value)| (key, value.unwrap_or_default()))
                    .collect())
            }
        }
        deserializer.deserialize_any(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::Labels;

    #[test]
    fn the_last_of_equal_keys_wins_and_lookups_find_every_key() {
        let labels: Labels = [("b", "1"), ("a", "2"), ("b", "3")].into_iter().collect();
        assert_eq!(labels.len(), 2);
        assert_eq!(labels.get("b"), Some("3"));
        assert_eq!(labels.get("a"), Some("2"));
        assert_eq!(labels.get("c"), None);
    }

    #[test]
    fn an_explicit_null_reads_as_empty() {
        let labels: Labels = serde_json::from_str("null").unwrap();
        assert!(labels.is_empty());
    }
}
