//! What a quota limits.

use go_compat::quantity::Quantity;
use serde_json::Value;

use crate::object::at;

/// Resources of the core that are counted by their names.
const CORE: [&str; 6] = [
    "pods",
    "services",
    "configmaps",
    "secrets",
    "persistentvolumeclaims",
    "resourcequotas",
];
/// From the amounts of a quota to whole objects.
const THOUSANDTHS: i128 = 1000;

/// The amounts that a quota limits.
pub(super) fn hard(quota: &Value) -> impl Iterator<Item = (&String, i128)> {
    let is_scoped = ["/spec/scopes", "/spec/scopeSelector"]
        .iter()
        .any(|path| at(quota, path).is_some());
    let hard = at(quota, "/spec/hard")
        .and_then(Value::as_object)
        .filter(|_| !is_scoped);
    let amounts = hard.into_iter().flatten();
    amounts.filter_map(|(name, amount)| {
        Some((
            name,
            Quantity::from_json(amount).ok()?.thousandths() / THOUSANDTHS,
        ))
    })
}

/// The group and the plural of what an amount counts.
pub(super) fn counted(name: &str) -> Option<(&str, &str)> {
    if CORE.contains(&name) {
        return Some(("", name));
    }
    let resource = name.strip_prefix("count/")?;
    Some(match resource.split_once('.') {
        Some((plural, group)) => (group, plural),
        None => ("", resource),
    })
}

/// What of a quota is not enforced.
pub(crate) fn without_effect(quota: &Value) -> Vec<String> {
    let scoped = ["scopes", "scopeSelector"]
        .into_iter()
        .filter(|name| at(quota, &format!("/spec/{name}")).is_some());
    let scoped = scoped.map(|name| format!("spec.{name}: a quota with scopes has no effect here"));
    let hard = at(quota, "/spec/hard").and_then(Value::as_object);
    let names = hard.into_iter().flatten().map(|(name, _)| name);
    let amounts = names.filter(|name| counted(name).is_none());
    scoped
        .chain(amounts.map(|name| format!("spec.hard[{name}]: only counts of objects have an effect here")))
        .collect()
}
