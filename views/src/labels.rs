//! A small sorted map of strings: a pod has a dozen labels, and a tree node for each would cost more than the text.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

/// Labels or annotations, sorted by key. All text is in one allocation: a lookup reads one range of memory, and a pod
/// costs two allocations instead of two for each label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Keys and values, end to end.
    text: Box<str>,
    /// Where each key and each value ends.
    ends: Box<[(u32, u32)]>,
}

impl Labels {
    /// The value of a key. Lengths are compared first, which are stored side by side, so a lookup mostly reads the
    /// text of one key only.
    pub fn get(&self, key: &str) -> Option<&str> {
        let text = self.text.as_bytes();
        let mut start = 0;
        for &(end, next) in &self.ends {
            let (end, next) = (end as usize, next as usize);
            if end - start == key.len() && text.get(start..end) == Some(key.as_bytes()) {
                return self.text.get(end..next);
            }
            start = next;
        }
        None
    }

    fn pair(&self, index: usize) -> Option<(&str, &str)> {
        let start = match index.checked_sub(1) {
            Some(before) => self.ends.get(before)?.1,
            None => 0,
        };
        let &(key, value) = self.ends.get(index)?;
        let (start, key, value) = (start as usize, key as usize, value as usize);
        Some((self.text.get(start..key)?, self.text.get(key..value)?))
    }

    /// All pairs in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        (0..self.ends.len()).filter_map(|index| self.pair(index))
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// No pairs?
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Keeps only the pairs whose key passes.
    #[must_use]
    pub fn filtered(self, keep: impl Fn(&str) -> bool) -> Self {
        Self::sorted(self.iter().filter(|(key, _)| keep(key)))
    }

    fn sorted<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for (key, value) in pairs {
            text.push_str(key);
            let key_end = text.len() as u32;
            text.push_str(value);
            ends.push((key_end, text.len() as u32));
        }
        Self {
            text: text.into(),
            ends: ends.into(),
        }
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
        Self::sorted(pairs.iter().map(|(key, value)| (&**key, &**value)))
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
