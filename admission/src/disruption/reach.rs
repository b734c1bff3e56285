//! Which evictions an API server has to show us: those in namespaces that hold a budget or a WorkloadSpread, as a match
//! condition in CEL.
//!
//! The object of an eviction is an Eviction, not the pod. A condition cannot read the pod's annotations from it, only the
//! namespace.

use std::collections::BTreeSet;

/// Longest expression, in bytes. A longer one becomes the condition of all evictions.
const LENGTH: usize = 32 * 1024;

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
            format!("request.namespace == '{namespace}'")
        } else {
            EVERY.to_owned()
        })
    }

    pub(crate) fn expression(&self) -> String {
        self.0.clone()
    }

    /// Does a condition hold of all of them? Certain if true: a condition that is written in another way than here is taken
    /// not to.
    pub(crate) fn is_within(&self, condition: &str) -> bool {
        let mut alternatives = condition.split(" || ").map(bare);
        let is_known =
            |one: &str| one == EVERY || one.strip_prefix("request.namespace == ").is_some_and(is_name);
        alternatives.clone().all(is_known) && alternatives.any(|one| one == EVERY || one == self.0)
    }
}

/// Without the parentheses of joined conditions.
fn bare(text: &str) -> &str {
    text.trim_start_matches('(').trim_end_matches(')')
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
    let all: Vec<&str> = namespaces.iter().map(|one| one.0.as_str()).collect();
    let condition = all.join(" || ");
    let is_short = condition.len() <= LENGTH && !all.contains(&EVERY);
    Some(if is_short { condition } else { EVERY.to_owned() })
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
            "request.namespace == 'office' || request.namespace == 'shop'"
        );
        assert_eq!(condition(&of(&["shop", "a' || true || 'b"])).unwrap(), "true");
        let many: Vec<String> = (0..2_000).map(|number| format!("namespace-{number}")).collect();
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
            &format!("({both}) || (request.namespace == 'x')"),
        ] {
            assert!(shop.is_within(wide), "{wide}");
        }
        for narrow in [
            "",
            "false",
            "request.namespace == 'office'",
            "!(request.namespace == 'shop')",
            "false && request.namespace == 'shop'",
            "false ? true : request.namespace == 'shop' || false",
            "request.namespace == 'shop' && false || request.namespace == 'shop'",
        ] {
            assert!(!shop.is_within(narrow), "{narrow}");
        }
    }
}
