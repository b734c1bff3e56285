//! Annotations that a set patches into pods, at injection and with each upgrade.

use go_compat::json::to_go_json;
use kube_schema::patch;
use serde_json::Value;

/// What an annotation becomes: `None` if it stays as it is. The error names the side of a merge that is not JSON,
/// and the reason.
pub fn patched(policy: &str, present: Option<&str>, value: &str) -> Result<Option<String>, String> {
    Ok(match (policy, present) {
        ("Retain", None) | ("Overwrite", _) | ("MergePatchJson", None | Some("")) => Some(value.to_owned()),
        ("MergePatchJson", Some(present)) => Some(merged(present, value)?),
        _ => None,
    })
}

fn merged(present: &str, patch: &str) -> Result<String, String> {
    let parse = |text: &str, whose: &str| {
        serde_json::from_str::<Value>(text).map_err(|error| format!("of {whose} is not JSON: {error}"))
    };
    let (mut target, patch) = (parse(present, "the pod")?, parse(patch, "the set")?);
    patch::merge(&mut target, patch);
    Ok(to_go_json(&target))
}
