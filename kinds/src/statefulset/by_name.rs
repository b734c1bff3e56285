//! What the name of a pod or a claim says about the StatefulSet that it belongs to.

use std::sync::Arc;

use kube_cache::Cached;

/// The name of the StatefulSet that a pod of this name is for: what precedes the ordinal. `None` if no StatefulSet
/// names a pod so.
pub(super) fn set_of_pod(name: &str) -> Option<&str> {
    let (set, ordinal) = name.rsplit_once('-')?;
    let is_padded = ordinal.len() > 1 && ordinal.starts_with('0');
    let is_ordinal = ordinal.bytes().all(|byte| byte.is_ascii_digit()) && ordinal.parse::<i32>().is_ok();
    (is_ordinal && !is_padded && !set.is_empty()).then_some(set)
}

/// The names of the claim template and of the StatefulSet that a claim of this name may be for. Both may contain
/// dashes, so there is one pair for each dash before the ordinal.
pub(super) fn sets_of_claim(name: &str) -> impl Iterator<Item = (&str, &str)> {
    let pair = set_of_pod(name).unwrap_or_default();
    let pairs = pair.match_indices('-').filter_map(|(dash, _)| {
        let (template, set) = pair.split_at_checked(dash)?;
        Some((template, set.strip_prefix('-')?))
    });
    // No name of a pod fits a longer one.
    pairs.filter(|(template, set)| !template.is_empty() && (1..=LONGEST_NAME).contains(&set.len()))
}

/// Length of the longest name that the admission of StatefulSets accepts.
const LONGEST_NAME: usize = 63;

/// Objects of one namespace, or cluster-scoped ones, by name.
pub(super) struct ByName<T>(Vec<Arc<T>>);

impl<T: Cached> ByName<T> {
    pub(super) fn new(mut objects: Vec<Arc<T>>) -> Self {
        objects.sort_by(|one, other| one.name().cmp(other.name()));
        Self(objects)
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<T>> {
        let found = self.0.binary_search_by(|object| object.name().cmp(name));
        self.0.get(found.ok()?).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_for_the_set_before_its_ordinal() {
        for (pod, set) in [
            ("web-0", Some("web")),
            ("my-web-12", Some("my-web")),
            ("web-2147483647", Some("web")),
            ("web-2147483648", None),
            ("web-01", None),
            ("web-", None),
            ("web-a1", None),
            ("web-+1", None),
            ("-1", None),
            ("web", None),
        ] {
            assert_eq!(set_of_pod(pod), set, "{pod}");
        }
    }

    #[test]
    fn a_claim_is_for_one_of_the_sets_that_its_dashes_allow() {
        let sets = |name| sets_of_claim(name).collect::<Vec<_>>();
        assert_eq!(sets("data-web-0"), [("data", "web")]);
        assert_eq!(
            sets("my-data-my-web-3"),
            [
                ("my", "data-my-web"),
                ("my-data", "my-web"),
                ("my-data-my", "web")
            ]
        );
        for name in ["web-0", "data-web", "data-web-01", "-web-0"] {
            assert_eq!(sets(name), [], "{name}");
        }
        assert_eq!(sets("a--b-0"), [("a", "-b"), ("a-", "b")]);
        let long = format!("data-{}-0", "w".repeat(64));
        assert_eq!(sets(&long), []);
    }
}
