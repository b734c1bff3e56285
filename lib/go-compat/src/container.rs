//! Hashes of containers that kubelets and node agents record, and that others compare.

use serde_json::{Value, json};

use crate::{hash::dump_hash, json::to_go_json, pod_template::CoreType};

/// The hash that kubelets from 1.31 on record of a container: of its image and name.
pub fn image_hash(name: &str, image: &str) -> u64 {
    dump_hash(&to_go_json(&json!({"image": image, "name": name})))
}

/// The hash that kubelets before 1.31 record: of the whole container of the specification.
pub fn whole_hash(container: &Value) -> u64 {
    dump_hash(&CoreType::Container.typed_json(container))
}

/// The hash of environment variables, given as name and value in any order. An empty value is left out, and an
/// empty list is `null`.
pub fn environment_hash<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> u64 {
    let mut variables: Vec<_> = variables.into_iter().collect();
    if variables.is_empty() {
        return dump_hash("null");
    }
    variables.sort_unstable();
    let one = |(name, value): (&str, &str)| match value {
        "" => json!({"name": name}),
        value => json!({"name": name, "value": value}),
    };
    dump_hash(&to_go_json(&variables.into_iter().map(one).collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn images_and_environments_hash_to_the_published_vectors() {
        assert_eq!(image_hash("main", "nginx:1.25"), 436_018_172);
        for (variables, hash) in [
            (&[][..], 86_995_377),
            (&[("CFG", "web")], 498_188_604),
            (&[("e2", "foo")], 2_053_173_458),
            (&[("e2", "")], 1_885_397_378),
            (&[("a", "x<y&z>")], 90_320_360),
        ] {
            assert_eq!(environment_hash(variables.iter().copied()), hash, "{variables:?}");
        }
    }

    #[test]
    fn variables_count_in_the_order_of_their_names() {
        let (a, b) = (("a", "2"), ("b", "1"));
        assert_eq!(environment_hash([a, b]), environment_hash([b, a]));
        assert_eq!(
            environment_hash([b, a]),
            dump_hash(r#"[{"name":"a","value":"2"},{"name":"b","value":"1"}]"#)
        );
    }

    #[test]
    fn a_whole_container_counts_in_the_order_of_the_go_struct() {
        let container = json!({"imagePullPolicy": "Always", "image": "web:1", "env": [{"value": "", "name": "A"}],
                               "name": "main", "command": []});
        let text = r#"{"name":"main","image":"web:1","env":[{"name":"A"}],"resources":{},"imagePullPolicy":"Always"}"#;
        assert_eq!(whole_hash(&container), dump_hash(text));
        assert_ne!(whole_hash(&container), image_hash("main", "web:1"));
    }
}
