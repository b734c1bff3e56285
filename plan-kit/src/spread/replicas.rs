//! How many pods a target wants.

use kruise_api::workloadspread::WorkloadSpreadSpec;
use serde_json::Value;

use super::ListedKind;

/// How many pods the target wants, as its object says; `None` if it does not say. The first of these has the
/// number: the paths of the target filter, which are added up; the path that administrators give for its group,
/// version and kind; what is usual for its kind.
///
/// # Errors
/// In plain words, if a path that the target filter or administrators give leads to no number.
pub fn replicas(
    spec: &WorkloadSpreadSpec,
    object: &Value,
    listed: &[ListedKind],
) -> Result<Option<i32>, String> {
    let paths = spec
        .target_filter
        .iter()
        .flat_map(|filter| &filter.replicas_path_list);
    let mut sum = None;
    for path in paths {
        sum = Some(number(object, path)?.saturating_add(sum.unwrap_or(0)));
    }
    if sum.is_some() {
        return Ok(sum);
    }
    let Some(target) = &spec.target_ref else {
        return Ok(None);
    };
    let is_of_target = |one: &&ListedKind| {
        let (group, version) = target
            .api_version
            .split_once('/')
            .unwrap_or(("", &target.api_version));
        one.group == group && one.version == version && one.kind == target.kind
    };
    let listed = listed.iter().find(is_of_target);
    if let Some(one) = listed.filter(|one| !one.replicas_path.is_empty()) {
        return number(object, &one.replicas_path).map(Some);
    }
    // What a Job leaves out is 1. The others have a default that is stored.
    let usual = match target.kind.as_str() {
        "Job" => "/spec/parallelism",
        _ => "/spec/replicas",
    };
    let found = object.pointer(usual).and_then(Value::as_i64);
    Ok(found.and_then(|found| i32::try_from(found).ok()))
}

/// The number at a path such as `spec.groups.1.replicas`.
fn number(object: &Value, path: &str) -> Result<i32, String> {
    let found = path.split('.').try_fold(object, |at, segment| match at {
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        at => at.get(segment),
    });
    let number = found.and_then(Value::as_i64);
    number
        .and_then(|number| i32::try_from(number).ok())
        .ok_or_else(|| format!("the target has no number at {path}"))
}
