//! `matchConditions`: whether a webhook whose rules and selectors match is called at all.

use super::matching::Hook;
use crate::api::Call;
use crate::cel::Variables;
use crate::object::metadata_text;
use crate::status::Failure;

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
