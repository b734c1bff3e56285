//! Hashes and names of ControllerRevisions.

use crate::hash::{fnv1_32, safe_encode};

/// Longest part of an owner's name that fits a revision name.
const OWNER_BYTES: usize = 223;

/// Hash of a revision's data. `collision_count` is `Some(0)` until two different data met under one name; `None`
/// leaves it out of the hash, as Kubernetes does for an unset counter.
pub fn revision_hash(data: &[u8], collision_count: Option<i32>) -> String {
    let count = collision_count.map(|count| count.to_string()).unwrap_or_default();
    safe_encode(&fnv1_32(&[data, count.as_bytes()]).to_string())
}

/// `<owner>-<hash>`, the owner cut to 223 bytes.
pub fn revision_name(owner: &str, hash: &str) -> String {
    let mut end = owner.len().min(OWNER_BYTES);
    while !owner.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{hash}", owner.get(..end).unwrap_or_default())
}

/// Does a pod's revision label mean this revision? Labels carry the full name or only the hash, and so may the
/// second argument.
pub fn label_matches_revision(label: &str, revision_name: &str) -> bool {
    label == revision_name || short(label) == short(revision_name)
}

fn short(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(_, hash)| hash)
}

#[cfg(test)]
mod tests {
    use super::{label_matches_revision, revision_hash, revision_name};
    use crate::hash::fnv1_32;

    const PLAIN: &[u8] = br#"{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"web"}},"spec":{"containers":[{"image":"nginx:1.25","name":"main","resources":{}}]}}}}"#;
    const ESCAPED: &[u8] = br#"{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"web"}},"spec":{"containers":[{"env":[{"name":"Z","value":"a\u003cb\u0026c"},{"name":"CFG","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['app']"}}}],"image":"nginx:1.25","name":"main","resources":{}}]}}}}"#;

    #[test]
    fn hash_covers_data_and_collision_count() {
        assert_eq!(fnv1_32(&[PLAIN, b"0"]), 1_976_077_960);
        assert_eq!(revision_hash(PLAIN, Some(0)), "5fcb4ccfb4");
        assert_eq!(revision_hash(ESCAPED, Some(0)), "8496695bb6");
        assert_eq!(revision_hash(ESCAPED, Some(1)), "8496695bb7");
        assert_ne!(revision_hash(ESCAPED, None), revision_hash(ESCAPED, Some(0)));
    }

    #[test]
    fn long_owner_names_are_cut() {
        assert_eq!(revision_name("web", "5fcb4ccfb4"), "web-5fcb4ccfb4");
        let name = revision_name(&"a".repeat(253), "5fcb4ccfb4");
        assert_eq!(name.len(), 223 + 1 + 10);
        assert_eq!(revision_name(&"é".repeat(200), "h").len(), 222 + 2);
    }

    #[test]
    fn full_and_short_labels_match() {
        assert!(label_matches_revision("web-7c4ff9b74f", "web-7c4ff9b74f"));
        assert!(label_matches_revision("7c4ff9b74f", "web-7c4ff9b74f"));
        assert!(label_matches_revision("web-7c4ff9b74f", "7c4ff9b74f"));
        assert!(!label_matches_revision("7c4ff9b74d", "web-7c4ff9b74f"));
        assert!(!label_matches_revision("", "web-7c4ff9b74f"));
    }
}
