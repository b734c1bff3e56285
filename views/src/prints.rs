//! Which annotations a pod has, without their text.

use go_compat::hash::fnv1a_32;

use crate::Labels;

/// Hashes of the keys and values of annotations: eight bytes for each, where the text takes a hundred.
///
/// They say whether an annotation that somebody wants is there already. Two values of the same key with the same
/// hash, which is one pair in four thousand million, count as equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnotationPrints(Box<[(u32, u32)]>);

impl AnnotationPrints {
    /// The prints of these annotations.
    pub(crate) fn of(annotations: &Labels, is_left_out: impl Fn(&str) -> bool) -> Self {
        let kept = annotations.iter().filter(|(key, _)| !is_left_out(key));
        Self(kept.map(|(key, value)| (hash(key), hash(value))).collect())
    }

    /// Is the annotation there with this value?
    pub fn has(&self, key: &str, value: &str) -> bool {
        self.0.contains(&(hash(key), hash(value)))
    }

    /// Is the annotation there, with any value?
    pub fn has_key(&self, key: &str) -> bool {
        let key = hash(key);
        self.0.iter().any(|(have, _)| *have == key)
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for AnnotationPrints {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let hashes = pairs
            .into_iter()
            .map(|(key, value)| (hash(key.as_ref()), hash(value.as_ref())));
        Self(hashes.collect())
    }
}

fn hash(text: &str) -> u32 {
    fnv1a_32(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::AnnotationPrints;

    #[test]
    fn an_annotation_is_found_by_key_and_by_value() {
        let prints: AnnotationPrints = [("a", "1"), ("b", "")].into_iter().collect();
        assert!(prints.has("a", "1") && prints.has("b", "") && !prints.has("a", "2"));
        assert!(prints.has_key("a") && !prints.has_key("c"));
    }
}
