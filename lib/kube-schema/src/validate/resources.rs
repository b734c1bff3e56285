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

/// What holds for containers and not for claims: their resources are known, and what cannot be shared is had whole,
/// and as much of it as the limit says.
pub(super) fn of_container(errors: &mut Errors, resources: &Value, path: &str) {
    for list in ["limits", "requests"] {
        for (name, value) in amounts(resources, list) {
            let path = format!("{path}.{list}[{name}]");
            if !name.contains('/') && !is_standard(name) {
                errors.invalid(path, name, "must be a standard resource for containers");
                continue;
            }
            let quantity = Quantity::from_json(value).ok().filter(|_| is_extended(name));
            if let Some(quantity) = quantity.filter(|quantity| quantity.thousandths() % 1000 != 0) {
                errors.invalid(path, quantity.canonical(), "must be an integer");
            }
        }
    }
    for (name, value) in amounts(resources, "requests") {
        if !is_extended(name) && !name.starts_with(PAGES) {
            continue;
        }
        let limit = resources.pointer(&format!("/limits/{}", name.replace('~', "~0").replace('/', "~1")));
        let limit = limit.filter(|limit| !limit.is_null());
        let path = format!("{path}.requests");
        match (Quantity::from_json(value), limit.map(Quantity::from_json)) {
            (Ok(request), Some(Ok(limit))) if request != limit => {
                let detail = format!("must be equal to {name} limit of {}", limit.canonical());
                errors.invalid(path, request.canonical(), &detail);
            }
            (_, None) => errors.required(path, "Limit must be set for non overcommitable resources"),
            _ => {}
        }
    }
}

const PAGES: &str = "hugepages-";

fn is_standard(name: &str) -> bool {
    ["cpu", "memory", "ephemeral-storage"].contains(&name) || name.starts_with(PAGES)
}

/// Is it a device or the like, of somebody else than Kubernetes?
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

fn amounts<'a>(resources: &'a Value, list: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let map = resources
        .get(list)
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    map.filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.as_str(), value))
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
