//! Rules of a definition, in the Common Expression Language, about custom resources.
//!
//! A rule about the change of a part (one with `oldSelf`) is evaluated where there was one before; any other, as
//! by a server of 1.30 and newer, where the part is new or different. Not evaluated are rules inside lists and maps,
//! and those that need more of the language than [`crate::cel`] has: whoever writes such a definition gets a warning.

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
    Collected::of(schema).rules
}

/// The rules of a schema that cannot be evaluated: place, rule and reason.
pub(crate) fn unread(schema: &Value) -> Vec<String> {
    Collected::of(schema).unread
}

#[derive(Default)]
struct Collected {
    rules: Vec<Rule>,
    unread: Vec<String>,
    place: Vec<String>,
    /// How many lists and maps are around the place.
    repeated: usize,
}

impl Collected {
    fn of(schema: &Value) -> Self {
        let mut collected = Self::default();
        collected.collect(schema);
        collected
    }

    fn collect(&mut self, schema: &Value) {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        for rule in rules.into_iter().flatten() {
            self.rule(rule);
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            self.inside(name, schema);
        }
        self.repeated += 1;
        for (name, member) in [("[*]", "items"), ("{*}", "additionalProperties")] {
            if let Some(schema) = schema.get(member) {
                self.inside(name, schema);
            }
        }
        self.repeated -= 1;
    }

    fn inside(&mut self, name: &str, schema: &Value) {
        self.place.push(name.to_owned());
        self.collect(schema);
        self.place.pop();
    }

    fn rule(&mut self, rule: &Value) {
        let holds = text(rule, "rule");
        let expression = match Expression::parse_rule(holds) {
            Ok(_) if self.repeated > 0 => Err("rules inside lists and maps are not evaluated".to_owned()),
            read => read,
        };
        match expression {
            Ok(expression) => self.rules.push(Rule {
                place: self.place.clone(),
                expression,
                of_changes: holds.contains("oldSelf"),
                message: match text(rule, "message") {
                    "" => format!("failed rule: {holds}"),
                    message => message.to_owned(),
                },
                reason: text(rule, "reason").to_owned(),
                field: text(rule, "fieldPath").to_owned(),
            }),
            Err(why) => {
                let place = self.place.join(".");
                self.unread
                    .push(format!("{place}: the rule {holds:?} has no effect here: {why}"));
            }
        }
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
            of_policy: &Value::Null,
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
    fn rules_that_are_not_evaluated_are_reported() {
        let of = |rule: &str| json!({"x-kubernetes-validations": [{"rule": rule}]});
        let schema = json!({"properties": {
            "a": of("self.matches('x')"), "b": of("self > 1"), "c": {"items": of("self > 1")},
            "d": {"additionalProperties": {"properties": {"e": of("self > 1")}}}}});
        assert_eq!(read(&schema).len(), 1);
        let unread = unread(&schema);
        let starts = [
            "a: the rule \"self.matches('x')\" has no effect here: ",
            "c.[*]: the rule \"self > 1\" has no effect here: rules inside lists",
            "d.{*}.e: the rule \"self > 1\" has no effect here: rules inside lists",
        ];
        assert_eq!(unread.len(), starts.len(), "{unread:#?}");
        for (unread, start) in unread.iter().zip(starts) {
            assert!(unread.starts_with(start), "{unread}");
        }
    }

    #[test]
    fn an_error_refuses_and_what_is_not_understood_does_not() {
        assert_eq!(refused("self.a == 1", &of(json!({})), None).len(), 1);
        assert!(refused("self.a.matches('x')", &of(json!({})), None).is_empty());
        assert!(refused("object.a == 1", &of(json!({})), None).is_empty());
    }
}
