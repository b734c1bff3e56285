//! Resources of a sidecar, computed from those of the pod's own containers.

pub mod expression;

use go_compat::quantity::Quantity;
use regex_lite::Regex;
use serde_json::{Map, Value};

use self::expression::Amount;
use super::share::is_injected;
use crate::json::{items, text};

/// The `resources` that a policy gives a sidecar of this pod. `sidecars` are the names of all that are being injected.
pub(super) fn computed(policy: &Value, pod: &Value, sidecars: &[&str]) -> Result<Value, String> {
    let targets = targets(policy, pod, sidecars)?;
    let takes_sum = match text(policy, "targetContainersMode") {
        "sum" => true,
        "max" => false,
        mode => return Err(format!("the mode {mode:?} is not known")),
    };
    let mut resources = Map::new();
    for kind in ["limits", "requests"] {
        let mut amounts = Map::new();
        for resource in ["cpu", "memory"] {
            let expression = policy.pointer(&format!("/resourcesExpr/{kind}/{resource}"));
            let expression = expression.and_then(Value::as_str).unwrap_or_default();
            if expression.is_empty() {
                continue;
            }
            let Some(base) = aggregate(&targets, kind, resource, takes_sum)? else {
                continue;
            };
            let amount = expression::evaluate(expression, &Amount::Quantity(base))
                .map_err(|why| format!("{kind}.{resource}: {expression:?}: {why}"))?;
            amounts.insert(resource.to_owned(), amount.canonical().into());
        }
        if !amounts.is_empty() {
            resources.insert(kind.to_owned(), amounts.into());
        }
    }
    Ok(resources.into())
}

/// The pod's own containers that the policy looks at.
fn targets<'a>(policy: &Value, pod: &'a Value, sidecars: &[&str]) -> Result<Vec<&'a Value>, String> {
    let pattern = text(policy, "targetContainersNameRegex");
    let regex =
        Regex::new(pattern).map_err(|error| format!("{pattern:?} is no regular expression: {error}"))?;
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let native = items(spec, "initContainers")
        .iter()
        .filter(|one| text(one, "restartPolicy") == "Always");
    let targets: Vec<&Value> = native
        .chain(items(spec, "containers"))
        .filter(|one| !is_injected(one) && !sidecars.contains(&text(one, "name")))
        .filter(|one| regex.is_match(text(one, "name")))
        .collect();
    if targets.is_empty() {
        return Err(format!("no containers match the regex pattern {pattern:?}"));
    }
    Ok(targets)
}

/// The sum or maximum; `None` for a limit that some target does not have.
fn aggregate(
    targets: &[&Value],
    kind: &str,
    resource: &str,
    takes_sum: bool,
) -> Result<Option<Quantity>, String> {
    let mut total: Option<Quantity> = None;
    for target in targets {
        let found = target
            .pointer(&format!("/resources/{kind}/{resource}"))
            .filter(|found| !found.is_null());
        let Some(found) = found else {
            if kind == "limits" {
                return Ok(None);
            }
            continue;
        };
        let amount = Quantity::from_json(found)
            .map_err(|error| format!("{kind}.{resource} of container {}: {error}", text(target, "name")))?;
        total = Some(match total {
            None => amount,
            Some(total) if takes_sum => expression::sum(&total, &amount),
            Some(total) => total.max(amount),
        });
    }
    Ok(total.or_else(|| Some(Quantity::from_thousandths(0))))
}
