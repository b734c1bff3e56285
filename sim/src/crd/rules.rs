//! Rules of a definition, in the Common Expression Language, about custom resources.
//!
//! A rule about the change of a part (one with `oldSelf`) is evaluated where there was one before; any other, as
//! by a server of 1.30 and newer, where the part is new or different. Not evaluated are rules inside lists and maps,
//! and those that need more of the language than [`crate::cel`] has.

use kube_schema::validate::{Errors, FieldError};
use serde_json::Value;

use crate::cel::{Expression, Variables};
use crate::validation::text;

/// A rule and its place.
#[derive(Debug)]
pub(crate) struct Rule {
    place: Vec<String>,
    expression: Expression,
    of_changes: bool,
    message: String,
    reason: String,
    /// The member that the refusal names, as `.member`.
    field: String,
}

/// The rules of a schema that can be evaluated.
pub(crate) fn read(schema: &Value) -> Vec<Rule> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found);
    found
}

fn collect(schema: &Value, place: &mut Vec<String>, found: &mut Vec<Rule>) {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    for rule in rules.into_iter().flatten() {
        let holds = text(rule, "rule");
        if let Ok(expression) = Expression::parse_rule(holds) {
            found.push(Rule {
                place: place.clone(),
                expression,
                of_changes: holds.contains("oldSelf"),
                message: match text(rule, "message") {
                    "" => format!("failed rule: {holds}"),
                    message => message.to_owned(),
                },
                reason: text(rule, "reason").to_owned(),
                field: text(rule, "fieldPath").to_owned(),
            });
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        place.push(name.clone());
        collect(schema, place, found);
        place.pop();
    }
}

/// What rules refuse of an object whose types are right.
pub(crate) fn errors(rules: &[Rule], object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Errors::default();
    for rule in rules {
        let Some(now) = rule.part(object) else {
            continue;
        };
        let before = old.and_then(|old| rule.part(old));
        let is_due = match before {
            None => !rule.of_changes,
            Some(before) => rule.of_changes || before != now,
        };
        if !is_due {
            continue;
        }
        let variables = Variables {
            object: now,
            old_object: before.unwrap_or(&Value::Null),
            request: &Value::Null,
        };
        match rule.expression.holds(&variables) {
            Ok(true) => {}
            Ok(false) => rule.refuse(&mut errors, now),
            Err(why) => errors.invalid(rule.place.join("."), now.clone(), &why),
        }
    }
    errors.0
}

impl Rule {
    fn refuse(&self, errors: &mut Errors, part: &Value) {
        let path = format!("{}{}", self.place.join("."), self.field);
        match self.reason.as_str() {
            "FieldValueRequired" => errors.required(path, &self.message),
            "FieldValueForbidden" => errors.forbidden(path, &self.message),
            _ => errors.invalid(path, part.clone(), &self.message),
        }
    }

    fn part<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let mut at = object;
        for name in &self.place {
            at = at.get(name)?;
        }
        Some(at).filter(|part| !part.is_null())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(rule: &str, object: &Value, old: Option<&Value>) -> Vec<String> {
        let part = json!({"type": "object", "x-kubernetes-validations": [{"rule": rule, "message": "no"}]});
        let rules = read(&json!({"properties": {"spec": {"properties": {"part": part}}}}));
        errors(&rules, object, old)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn of(part: Value) -> Value {
        json!({"spec": {"part": part}})
    }

    #[test]
    fn a_rule_is_evaluated_where_a_part_is_new_or_different() {
        let (good, bad) = (of(json!({"a": 1})), of(json!({"b": 1})));
        assert!(refused("has(self.a)", &good, None).is_empty());
        assert_eq!(
            refused("has(self.a)", &bad, None),
            ["spec.part: Invalid value: {\"b\":1}: no"]
        );
        assert!(refused("has(self.a)", &bad, Some(&bad)).is_empty());
        assert_eq!(refused("has(self.a)", &bad, Some(&good)).len(), 1);
        assert!(refused("has(self.a)", &json!({"spec": {}}), Some(&good)).is_empty());
    }

    #[test]
    fn a_reason_and_a_field_are_named_and_the_part_is_not_printed() {
        let refused = |reason: &str, field: &str| {
            let rule = json!({"rule": "has(self.a)", "message": "no", "reason": reason, "fieldPath": field});
            let spec = json!({"type": "object", "x-kubernetes-validations": [rule]});
            let rules = read(&json!({"properties": {"spec": spec}}));
            let found = errors(&rules, &json!({"spec": {"b": 1}}), None);
            found[0].to_string()
        };
        assert_eq!(refused("FieldValueRequired", ".a"), "spec.a: Required value: no");
        assert_eq!(refused("FieldValueForbidden", ""), "spec: Forbidden: no");
    }

    #[test]
    fn a_rule_of_changes_is_evaluated_for_changes() {
        let (one, other) = (of(json!({"a": 1})), of(json!({"a": 2})));
        let rule = "self.a == oldSelf.a";
        assert!(refused(rule, &one, None).is_empty());
        assert!(refused(rule, &one, Some(&one)).is_empty());
        assert_eq!(refused(rule, &other, Some(&one)).len(), 1);
        assert!(refused(rule, &other, Some(&json!({"spec": {}}))).is_empty());
    }

    #[test]
    fn an_error_refuses_and_what_is_not_understood_does_not() {
        assert_eq!(refused("self.a == 1", &of(json!({})), None).len(), 1);
        assert!(refused("self.a.matches('x')", &of(json!({})), None).is_empty());
        assert!(refused("object.a == 1", &of(json!({})), None).is_empty());
    }
}
