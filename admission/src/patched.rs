//! A pod, or the template of pods, after the patch of a subset.

use kube_schema::patch::strategic;
use kube_schema::table::Table;
use kube_schema::typed;
use serde_json::Value;

/// Patches a pod as a server would. What comes out can be read as a pod.
///
/// # Errors
/// In plain words, if the patch has another shape than a pod.
pub(crate) fn patched(pod: Value, patch: &Value) -> Result<Value, String> {
    let table = Table::builtin();
    let Some(of) = table.find("core/v1.Pod") else {
        return Err("pods are not known".to_owned());
    };
    let patched = strategic(table, of, pod, patch.clone()).map_err(|error| error.to_string())?;
    let wrong = typed::inspect(table, of, &patched, "")
        .mismatches
        .into_iter()
        .next();
    if let Some(mut wrong) = wrong {
        wrong.path = wrong.path.trim_start_matches('.').to_owned();
        return Err(wrong.to_string());
    }
    typed::decode(table, of, patched.clone()).map_err(|error| error.conversion)?;
    Ok(patched)
}
