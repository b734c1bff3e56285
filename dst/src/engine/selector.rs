//! Which objects a watch of an agent shows: those with a label or a field of this value.

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// A selector of labels or fields. An object must have all of them; without any, all objects match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Label(String, String),
    /// As a JSON pointer.
    Field(String, String),
}

impl Selector {
    /// That of a query. Of the selectors that servers know, only `=` is read.
    pub fn of(query: &str) -> Self {
        let mut terms = Vec::new();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
            let pairs = value.split(',').filter_map(|term| term.split_once('='));
            let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
            match name {
                "labelSelector" => terms.extend(pairs.map(|(key, value)| Term::Label(key, value))),
                "fieldSelector" => terms.extend(
                    pairs.map(|(key, value)| Term::Field(format!("/{}", key.replace('.', "/")), value)),
                ),
                _ => {}
            }
        }
        Self(terms)
    }

    /// The only name that it selects, if names are all that it looks at.
    pub fn name(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Term::Field(pointer, name)] if pointer == "/metadata/name" => Some(name),
            _ => None,
        }
    }

    /// Does it select an object?
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|term| match term {
            Term::Label(key, value) => object["metadata"]["labels"][key] == **value,
            Term::Field(pointer, value) => object.pointer(pointer).is_some_and(|found| *found == **value),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_labels_and_fields_must_have_their_values() {
        let pod = json!({"metadata": {"name": "a", "labels": {"x.io/n": "n1", "y": "true"}}, "spec": {"nodeName": "n1"}});
        for (query, matches) in [
            ("limit=500", true),
            ("labelSelector=x.io%2Fn%3Dn1%2Cy%3Dtrue&watch=true", true),
            ("labelSelector=x.io%2Fn%3Dn1%2Cy%3Dfalse", false),
            ("labelSelector=z%3Dn1", false),
            ("fieldSelector=spec.nodeName%3Dn1", true),
            ("fieldSelector=spec.nodeName%3Dn2", false),
            ("fieldSelector=metadata.name%3Da&watch=true", true),
        ] {
            assert_eq!(Selector::of(query).matches(&pod), matches, "{query}");
        }
    }

    #[test]
    fn a_selector_of_a_name_alone_is_known_as_one() {
        for (query, name) in [
            ("fieldSelector=metadata.name%3Da&watch=true", Some("a")),
            ("fieldSelector=spec.nodeName%3Da", None),
            ("fieldSelector=metadata.name%3Da&labelSelector=y%3Dtrue", None),
            ("watch=true", None),
        ] {
            assert_eq!(Selector::of(query).name(), name, "{query}");
        }
    }
}
