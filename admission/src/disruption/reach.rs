//! Which evictions an API server has to show us: those in namespaces that hold a budget or a WorkloadSpread, as a match
//! condition in CEL.
//!
//! The object of an eviction is an Eviction, not the pod. A condition cannot read the pod's annotations from it,
//! only the namespace.

use std::collections::BTreeSet;

use crate::namespaces::{IN_NAMESPACE, names_in, test_of};

/// Longest expression, in bytes. A longer one becomes the condition of all evictions. API servers read 100,000
/// characters.
const LENGTH: usize = 64 * 1024;

/// The condition of all evictions.
const EVERY: &str = "true";

/// The evictions in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Evictions(String);

impl Evictions {
    /// In this namespace.
    pub fn in_namespace(namespace: &str) -> Self {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        Self(if !namespace.is_empty() && namespace.bytes().all(is_plain) {
            format!("{IN_NAMESPACE}'{namespace}'")
        } else {
            EVERY.to_owned()
        })
    }

    pub(crate) fn expression(&self) -> String {
        self.0.clone()
    }

    /// Does a condition hold of all of them? Certain if true: a condition that is written in another way than here
    /// is taken not to.
    pub(crate) fn is_within(&self, condition: &str) -> bool {
        let mut alternatives = condition.split(" || ").map(bare);
        let is_known = |one: &str| one == EVERY || names(one).is_some();
        let name = self.0.strip_prefix(IN_NAMESPACE);
        alternatives.clone().all(is_known)
            && alternatives.any(|one| {
                one == EVERY || names(one).is_some_and(|names| names.into_iter().any(|one| Some(one) == name))
            })
    }
}

/// Without the parentheses of joined conditions.
fn bare(text: &str) -> &str {
    text.trim_start_matches('(').trim_end_matches(')')
}

/// The namespaces, as literals, that an alternative holds of; `None` if it is written in another way.
fn names(alternative: &str) -> Option<Vec<&str>> {
    names_in(alternative).filter(|names| names.iter().all(|name| is_name(name)))
}

fn is_name(text: &str) -> bool {
    let name = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    name.is_some_and(|name| !name.contains('\''))
}

/// The condition of the evictions in all of these namespaces; `None` if there is none.
pub fn condition(namespaces: &BTreeSet<Evictions>) -> Option<String> {
    if namespaces.is_empty() {
        return None;
    }
    // `None` if one of them is not told apart by its name.
    let names: Option<Vec<&str>> = namespaces
        .iter()
        .map(|one| one.0.strip_prefix(IN_NAMESPACE))
        .collect();
    let condition = names.and_then(|names| test_of(&names));
    let short = condition.filter(|condition| condition.len() <= LENGTH);
    Some(short.unwrap_or_else(|| EVERY.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(namespaces: &[&str]) -> BTreeSet<Evictions> {
        namespaces
            .iter()
            .map(|one| Evictions::in_namespace(one))
            .collect()
    }

    #[test]
    fn evictions_are_told_apart_by_the_namespaces_that_hold_a_budget() {
        assert_eq!(condition(&of(&[])), None);
        assert_eq!(
            condition(&of(&["shop", "office", "shop"])).unwrap(),
            "request.namespace in ['office', 'shop']"
        );
        assert_eq!(condition(&of(&["shop"])).unwrap(), "request.namespace == 'shop'");
        assert_eq!(condition(&of(&["shop", "a' || true || 'b"])).unwrap(), "true");
        let many: Vec<String> = (0..4_000).map(|number| format!("namespace-{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(condition(&of(&many)).unwrap(), "true");
    }

    #[test]
    fn a_condition_covers_a_namespace_that_is_one_of_its_alternatives() {
        let shop = Evictions::in_namespace("shop");
        let both = condition(&of(&["office", "shop"])).unwrap();
        for wide in [
            "true",
            both.as_str(),
            "request.namespace == 'office' || request.namespace == 'shop'",
            &format!("({both}) || (request.namespace == 'x')"),
        ] {
            assert!(shop.is_within(wide), "{wide}");
        }
        for narrow in [
            "",
            "false",
            "request.namespace == 'office'",
            "request.namespace in ['office', 'shops']",
            "!(request.namespace in ['office', 'shop'])",
            "request.namespace in ['office', 'shop'] && false",
            "!(request.namespace == 'shop')",
            "false && request.namespace == 'shop'",
            "false ? true : request.namespace == 'shop' || false",
            "request.namespace == 'shop' && false || request.namespace == 'shop'",
        ] {
            assert!(!shop.is_within(narrow), "{narrow}");
        }
    }
}
