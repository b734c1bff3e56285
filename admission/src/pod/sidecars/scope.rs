//! Which new pods an API server has to show us for the sake of SidecarSets: one match condition, in CEL.
//!
//! It holds for every pod that a set may be injected into, and for no other that labels and the name of the namespace
//! tell apart. Labels of namespaces cannot be said in it: pods that only those keep out come, and leave as they were.
//! What gets too long is said wider, never wrong: by the keys of labels alone, and at last for all pods.
//!
//! No text of a set gets into the expression but what can be a label, which needs no escaping: no stored pod has
//! anything else, so a requirement of anything else is decided already.

use std::collections::BTreeSet;

use kruise_api::meta::LabelSelector;
use kruise_plan_kit::sidecars::{Matcher, names::NAMESPACE_NAME};

use super::set::Sets;

/// Longest expression, in bytes. A server takes 100,000 characters, and has more to store in the same object.
const LENGTH: usize = 32 * 1024;

/// The condition; `None` if there is no set that injects into new pods.
pub fn condition(sets: &Sets) -> Option<String> {
    let injecting: Vec<&Matcher> = sets
        .iter()
        .filter(|set| !set.paused && !set.matcher.pods.is_empty())
        .map(|set| &set.matcher)
        .collect();
    let exact: BTreeSet<String> = injecting
        .iter()
        .filter_map(|matcher| alternative(matcher))
        .collect();
    if exact.is_empty() {
        return None;
    }
    let exact = expression(&exact);
    if exact.len() <= LENGTH {
        return Some(exact);
    }
    let wider = expression(&injecting.iter().map(|matcher| by_key(&matcher.pods)).collect());
    Some(if wider.len() <= LENGTH {
        wider
    } else {
        "true".to_owned()
    })
}

/// One of these holds of the pod's labels, `l`.
fn expression(alternatives: &BTreeSet<String>) -> String {
    if alternatives.contains("true") {
        return "true".to_owned();
    }
    let alternatives: Vec<&str> = alternatives.iter().map(String::as_str).collect();
    format!(
        "[has(object.metadata.labels) ? object.metadata.labels : {{}}].exists(l, {})",
        alternatives.join(" || ")
    )
}

/// What holds of the pods that a set matches; `None` if there can be none.
fn alternative(matcher: &Matcher) -> Option<String> {
    let mut parts = BTreeSet::new();
    for (key, test) in tests(&matcher.pods) {
        let quoted = quote(key);
        // What is no label is on no pod.
        let has = |test: String| quoted.as_ref().map(|key| test.replace("KEY", key));
        match test {
            Test::Present => parts.insert(has("KEY in l".to_owned())?),
            Test::OneOf(values) => {
                let test = format!("KEY in l && {}", one_of("l[KEY]", &values)?);
                parts.insert(has(test)?)
            }
            Test::Absent => has("!(KEY in l)".to_owned()).is_none_or(|part| parts.insert(part)),
            Test::NoneOf(values) => one_of("l[KEY]", &values)
                .and_then(|values| has(format!("!(KEY in l && {values})")))
                .is_none_or(|part| parts.insert(part)),
            Test::Never => return None,
        };
    }
    let namespaces = matcher.namespaces.iter().flat_map(tests);
    for (_, test) in namespaces.filter(|(key, _)| *key == NAMESPACE_NAME) {
        match test {
            Test::Present => {}
            Test::OneOf(values) => {
                parts.insert(one_of("request.namespace", &values)?);
            }
            Test::NoneOf(values) => {
                if let Some(values) = one_of("request.namespace", &values) {
                    parts.insert(format!("!({values})"));
                }
            }
            Test::Absent | Test::Never => return None,
        }
    }
    if parts.is_empty() {
        return Some("true".to_owned());
    }
    Some(parts.into_iter().collect::<Vec<_>>().join(" && "))
}

/// What holds of the pods that a selector matches, and of others that have one of its labels with another value.
fn by_key(selector: &LabelSelector) -> String {
    let needed = tests(selector)
        .filter(|(_, test)| matches!(test, Test::Present | Test::OneOf(_)))
        .filter_map(|(key, _)| quote(key));
    needed
        .min()
        .map_or_else(|| "true".to_owned(), |key| format!("{key} in l"))
}

/// A requirement of the value of a label.
enum Test<'a> {
    Present,
    Absent,
    OneOf(Vec<&'a str>),
    NoneOf(Vec<&'a str>),
    /// An operator that nothing satisfies.
    Never,
}

fn tests(selector: &LabelSelector) -> impl Iterator<Item = (&str, Test<'_>)> {
    let equal = selector
        .match_labels
        .iter()
        .map(|(key, value)| (key.as_str(), Test::OneOf(vec![value])));
    let others = selector.match_expressions.iter().map(|requirement| {
        let values = || requirement.values.iter().map(String::as_str).collect();
        let test = match requirement.operator.as_str() {
            "In" => Test::OneOf(values()),
            "NotIn" => Test::NoneOf(values()),
            "Exists" => Test::Present,
            "DoesNotExist" => Test::Absent,
            _ => Test::Never,
        };
        (requirement.key.as_str(), test)
    });
    equal.chain(others)
}

/// The value is one of these; `None` if none of them can be a label.
fn one_of(value: &str, among: &[&str]) -> Option<String> {
    let quoted: BTreeSet<String> = among.iter().filter_map(|one| quote(one)).collect();
    let quoted: Vec<String> = quoted.into_iter().collect();
    match quoted.as_slice() {
        [] => None,
        [one] => Some(format!("{value} == {one}")),
        many => Some(format!("{value} in [{}]", many.join(", "))),
    }
}

/// A literal of what can be a label or its value.
fn quote(text: &str) -> Option<String> {
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    plain.then(|| format!("'{text}'"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(specs: &[Value]) -> Option<String> {
        let sets = specs
            .iter()
            .enumerate()
            .map(|(index, spec)| json!({"metadata": {"name": format!("s{index}")}, "spec": spec}));
        condition(&Sets::of(sets))
    }

    fn whole(inner: &str) -> String {
        let labels = "[has(object.metadata.labels) ? object.metadata.labels : {}]";
        format!("{labels}.exists(l, {inner})")
    }

    #[test]
    fn sets_that_inject_are_alternatives_and_the_same_one_is_said_once() {
        let web = json!({"selector": {"matchLabels": {"app": "web"}}});
        let paused =
            json!({"selector": {"matchLabels": {"app": "db"}}, "injectionStrategy": {"paused": true}});
        let logs = json!({"selector": {"matchExpressions": [
            {"key": "logs", "operator": "In", "values": ["on", "all", "on"]},
            {"key": "quiet", "operator": "DoesNotExist"},
        ]}});
        assert_eq!(
            of(&[web.clone(), paused.clone(), logs, web]),
            Some(whole(
                "!('quiet' in l) && 'logs' in l && l['logs'] in ['all', 'on'] || 'app' in l && l['app'] == 'web'"
            ))
        );
        assert_eq!(of(&[paused, json!({"selector": {}}), json!({})]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn of_a_namespace_only_the_name_is_said() {
        let spec = |namespaces: Value| json!({"selector": {"matchLabels": {"a": "b"}}, "namespaceSelector": namespaces});
        let name = "kubernetes.io/metadata.name";
        assert_eq!(
            of(&[spec(json!({"matchLabels": {"env": "prod", name: "shop"}}))]),
            Some(whole("'a' in l && l['a'] == 'b' && request.namespace == 'shop'"))
        );
        let except = json!({"matchExpressions": [{"key": name, "operator": "NotIn", "values": ["x", "y"]}]});
        assert_eq!(
            of(&[spec(except)]),
            Some(whole(
                "!(request.namespace in ['x', 'y']) && 'a' in l && l['a'] == 'b'"
            ))
        );
        let nameless = json!({"matchExpressions": [{"key": name, "operator": "DoesNotExist"}]});
        assert_eq!(of(&[spec(nameless)]), None);
        let pinned = json!({"selector": {"matchLabels": {"a": "b"}}, "namespace": "shop"});
        assert_eq!(
            of(&[pinned]),
            Some(whole("'a' in l && l['a'] == 'b' && request.namespace == 'shop'"))
        );
    }

    #[test]
    fn what_can_be_no_label_is_decided_and_not_said() {
        let evil = "x'] == '' || true || l['";
        let with = |operator: &str| {
            json!({"selector": {"matchExpressions": [
                {"key": "a", "operator": "Exists"},
                {"key": evil, "operator": operator, "values": ["b"]},
            ]}})
        };
        for (operator, expected) in [
            ("In", None),
            ("Exists", None),
            ("NotIn", Some(whole("'a' in l"))),
            ("DoesNotExist", Some(whole("'a' in l"))),
        ] {
            assert_eq!(of(&[with(operator)]), expected, "{operator}");
        }
        assert_eq!(of(&[json!({"selector": {"matchLabels": {"a": evil}}})]), None);
        let unequal = json!({"selector": {"matchExpressions": [
            {"key": "a", "operator": "NotIn", "values": [evil]},
        ]}});
        assert_eq!(of(&[unequal]), Some("true".to_owned()));
        let strange =
            json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}});
        assert_eq!(of(&[strange]), None);
    }

    #[test]
    fn what_gets_too_long_is_said_wider() {
        let many = |key: &str| {
            let specs: Vec<Value> = (0..3000)
                .map(|n| json!({"selector": {"matchLabels": {key: format!("value-{n}")}}}))
                .collect();
            of(&specs)
        };
        assert_eq!(many("app"), Some(whole("'app' in l")));
        let specs: Vec<Value> = (0..5000)
            .map(|n| json!({"selector": {"matchLabels": {format!("key-{n}"): "v"}}}))
            .collect();
        assert_eq!(of(&specs), Some("true".to_owned()));
    }
}
