//! The rules of a ValidatingAdmissionPolicy, applied to one write.
//!
//! The API itself keeps no policies: tests of a policy read it here, and ask it about writes that they send to the
//! API as dry runs. Expressions are in the part of the language that `cel` knows. Parameters, messages that are
//! expressions and audit annotations are refused when a policy is read.

use serde_json::{Map, Value};

use crate::cel::{Expression, Variables};
use crate::validation::text;

/// A policy that was read.
#[derive(Debug)]
pub struct Policy {
    rules: Vec<Value>,
    conditions: Vec<Expression>,
    variables: Vec<(String, Expression)>,
    /// With the message of each.
    validations: Vec<(Expression, String)>,
}

/// A write that is held against a policy.
#[derive(Clone, Copy, Debug)]
pub struct Write<'w> {
    /// The `request` of its AdmissionReview, without the objects.
    pub request: &'w Value,
    /// The object as it would be stored.
    pub object: &'w Value,
    /// The object as it is stored; `null` for a creation.
    pub old: &'w Value,
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// The field or expression that is not known, in plain words.
    pub fn read(policy: &Value) -> Result<Self, String> {
        const KNOWN: [&str; 5] = [
            "failurePolicy",
            "matchConstraints",
            "matchConditions",
            "variables",
            "validations",
        ];
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let mut fields = spec.as_object().into_iter().flat_map(Map::keys);
        if let Some(field) = fields.find(|field| !KNOWN.contains(&field.as_str())) {
            return Err(format!("spec.{field} is not supported"));
        }
        let parsed = |of: &Value| -> Result<Expression, String> {
            if of.get("messageExpression").is_some() {
                return Err("messageExpression is not supported".to_owned());
            }
            let expression = text(of, "expression");
            Expression::parse_of_policy(expression).map_err(|why| format!("{expression}: {why}"))
        };
        let constraints = spec.get("matchConstraints").unwrap_or(&Value::Null);
        let variable = |of: &Value| Ok((text(of, "name").to_owned(), parsed(of)?));
        let validation = |of: &Value| Ok((parsed(of)?, text(of, "message").to_owned()));
        Ok(Self {
            rules: list(constraints, "resourceRules").cloned().collect(),
            conditions: list(spec, "matchConditions")
                .map(parsed)
                .collect::<Result<_, String>>()?,
            variables: list(spec, "variables")
                .map(variable)
                .collect::<Result<_, String>>()?,
            validations: list(spec, "validations")
                .map(validation)
                .collect::<Result<_, String>>()?,
        })
    }

    /// The messages of all validations that refuse a write; none if it is allowed, or the policy is not about it.
    ///
    /// # Errors
    /// An expression that cannot be evaluated, which refuses the write, too: `failurePolicy: Fail`.
    pub fn refusals(&self, write: &Write<'_>) -> Result<Vec<&str>, String> {
        let none = Value::Null;
        if !self.rules.iter().any(|rule| is_about(rule, write.request)) {
            return Ok(Vec::new());
        }
        for condition in &self.conditions {
            if !condition.holds(&of(write, &none))? {
                return Ok(Vec::new());
            }
        }
        let mut values = Value::Object(Map::new());
        for (name, expression) in &self.variables {
            // One that cannot be evaluated is an error only where it is used.
            let value = expression.value(&of(write, &values));
            if let (Ok(value), Some(values)) = (value, values.as_object_mut()) {
                values.insert(name.clone(), value);
            }
        }
        let mut refusals = Vec::new();
        for (expression, message) in &self.validations {
            if !expression.holds(&of(write, &values))? {
                refusals.push(message.as_str());
            }
        }
        Ok(refusals)
    }
}

fn of<'v>(write: &Write<'v>, variables: &'v Value) -> Variables<'v> {
    Variables {
        object: write.object,
        old_object: write.old,
        request: write.request,
        of_policy: variables,
    }
}

fn list<'v>(of: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    of.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// Whether a rule of the constraints is about a request.
fn is_about(rule: &Value, request: &Value) -> bool {
    let resource = request.get("resource").unwrap_or(&Value::Null);
    let plural = match text(request, "subResource") {
        "" => text(resource, "resource").to_owned(),
        part => format!("{}/{part}", text(resource, "resource")),
    };
    let has = |field: &str, wanted: &str| list(rule, field).any(|one| one == wanted || one == "*");
    has("resources", &plural)
        && has("apiGroups", text(resource, "group"))
        && has("apiVersions", text(resource, "version"))
        && has("operations", text(request, "operation"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(validations: &Value) -> Result<Policy, String> {
        Policy::read(&json!({"spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/status"], "operations": ["UPDATE"]}]},
            "matchConditions": [{"name": "user", "expression": "request.user == 'a'"}],
            "variables": [{"name": "absent", "expression": "object.absent"}, {"name": "x", "expression": "object.x"},
                {"name": "same", "expression": "variables.x == oldObject.x"}],
            "validations": validations,
        }}))
    }

    fn refusals(policy: &Policy, subresource: &str, user: &str) -> Result<usize, String> {
        let request = json!({"user": user, "operation": "UPDATE", "subResource": subresource,
            "resource": {"group": "", "version": "v1", "resource": "pods"}});
        let (object, old) = (json!({"x": 1}), json!({"x": 2}));
        let write = Write {
            request: &request,
            object: &object,
            old: &old,
        };
        policy.refusals(&write).map(|all| all.len())
    }

    #[test]
    fn a_write_that_a_policy_is_about_is_held_against_each_validation() {
        let rules =
            json!([{"expression": "variables.same", "message": "m"}, {"expression": "object.x == 1"}]);
        let policy = policy(&rules).unwrap();
        assert_eq!(refusals(&policy, "status", "a"), Ok(1));
        assert_eq!(refusals(&policy, "", "a"), Ok(0), "another subresource");
        assert_eq!(refusals(&policy, "status", "b"), Ok(0), "another user");
    }

    #[test]
    fn what_cannot_be_evaluated_and_what_is_not_known_are_errors() {
        let used = policy(&json!([{"expression": "variables.absent == 1"}])).unwrap();
        assert_eq!(
            refusals(&used, "status", "a"),
            Err("no such key: absent".to_owned())
        );
        for unknown in [
            json!({"messageExpression": "'a'", "expression": "true"}),
            json!({"expression": "other"}),
        ] {
            policy(&json!([unknown])).unwrap_err();
        }
        Policy::read(&json!({"spec": {"paramKind": {}}})).unwrap_err();
    }
}
