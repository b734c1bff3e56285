//! `matchConditions`: whether a webhook whose rules and selectors match is called at all.

use serde_json::Value;

use super::matching::Hook;
use crate::api::Call;
use crate::cel::{Expression, Variables};
use crate::object::metadata_text;
use crate::status::Failure;

/// A condition of a webhook.
#[derive(Debug)]
pub(super) struct Condition {
    text: String,
    /// Registration refuses what is not understood.
    expression: Result<Expression, String>,
}

impl Condition {
    pub(super) fn of(condition: &Value) -> Self {
        let text = crate::validation::text(condition, "expression").to_owned();
        let expression = Expression::parse(&text);
        Self { text, expression }
    }

    fn holds(&self, variables: &Variables<'_>) -> Result<bool, String> {
        let truth = match &self.expression {
            Ok(expression) => expression.holds(variables),
            Err(why) => Err(why.clone()),
        };
        truth.map_err(|why| format!("expression '{}' resulted in error: {why}", self.text))
    }
}

/// Whether all conditions hold. One that is false decides; of errors, the failure policy does.
///
/// # Errors
/// A condition cannot be evaluated, and the webhook must not be passed over.
pub(super) fn hold(call: &Call<'_>, hook: &Hook, variables: &Variables<'_>) -> Result<bool, Failure> {
    let mut errors = Vec::new();
    for condition in &hook.conditions {
        match condition.holds(variables) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(why) => errors.push(why),
        }
    }
    let why = match errors.as_slice() {
        [] => return Ok(true),
        _ if hook.ignored_on_failure => return Ok(false),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    let name = match call.target.name.as_str() {
        "" => metadata_text(variables.object, "name"),
        name => name,
    };
    Err(Failure::forbidden(&call.resource.subject(), name, &why))
}
