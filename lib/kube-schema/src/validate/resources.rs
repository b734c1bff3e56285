//! Quantities of containers and claims.

use std::collections::BTreeMap;

use go_compat::Error;
use go_compat::quantity::Quantity;
use serde_json::Value;

use super::error::Errors;

/// Limits and requests must be quantities, not negative, and no request above its limit. They are compared as the
/// server compares them, rounded up to thousandths.
pub(super) fn requirements(errors: &mut Errors, resources: &Value, path: &str) {
    let limits = quantities(errors, resources.get("limits"), &format!("{path}.limits"));
    let requests_path = format!("{path}.requests");
    for (name, request) in quantities(errors, resources.get("requests"), &requests_path) {
        if let Some(limit) = limits.get(name).filter(|limit| request > **limit) {
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            errors.invalid(&requests_path, request.canonical(), &detail);
        }
    }
}

fn quantities<'a>(errors: &mut Errors, map: Option<&'a Value>, path: &str) -> BTreeMap<&'a str, Quantity> {
    let mut found = BTreeMap::new();
    for (name, value) in map
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_null())
    {
        let path = format!("{path}[{name}]");
        match Quantity::from_json(value) {
            Ok(quantity) => {
                if quantity.is_negative() {
                    errors.invalid(path, quantity.canonical(), "must be greater than or equal to 0");
                }
                found.insert(name.as_str(), quantity.round_up_to_milli());
            }
            // the server computes with more digits than we do
            Err(Error::QuantityTooLong(_)) => {}
            Err(error) => errors.invalid(path, value.clone(), &error.to_string()),
        }
    }
    found
}
