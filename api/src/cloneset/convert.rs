//! Conversion between the served versions, on raw JSON: members that no rule names stay where they are.
//!
//! Fields that the target version lacks are kept in one annotation, [`names::CONVERSION_DATA`], and restored by the
//! conversion back. An edit through the older version wins: a kept field is restored only where the older version does
//! not set it.

use serde_json::{Map, Value, json};

use crate::{
    convert::path::{set, take},
    names,
};

/// `apiVersion` of the hub.
pub const V1BETA1: &str = "apps.kruise.io/v1beta1";
/// `apiVersion` of the older version.
pub const V1ALPHA1: &str = "apps.kruise.io/v1alpha1";

/// `v1beta1` field, `v1alpha1` annotation, and whether the field takes text besides numbers.
const PREDOWNLOAD: [(&str, &str, bool); 3] = [
    (
        "imagePreDownloadParallelism",
        names::PREDOWNLOAD_PARALLELISM,
        true,
    ),
    (
        "imagePreDownloadTimeoutSeconds",
        names::PREDOWNLOAD_TIMEOUT,
        false,
    ),
    (
        "imagePreDownloadMinUpdatedReadyPods",
        names::PREDOWNLOAD_MIN_READY,
        false,
    ),
];

/// Key under which unknown members of the strategy, beside `rollingUpdate`, are kept.
const BESIDE: &str = "updateStrategy";

/// Why an object cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// Neither served version.
    #[error("apiVersion: {0:?} is neither {V1BETA1} nor {V1ALPHA1}")]
    Version(String),
    /// Not a JSON object.
    #[error("not an object")]
    NotAnObject,
}

/// Turns an object of either version into `v1beta1`.
pub fn to_v1beta1(object: &mut Value) -> Result<(), ConvertError> {
    if version(object)? == V1BETA1 {
        return Ok(());
    }
    set(object, &["apiVersion"], V1BETA1.into());
    let mut kept = unstash(object);
    if object.get("spec").is_some_and(Value::is_object) {
        let disabled = take(object, &["spec", "scaleStrategy", "disablePVCReuse"]);
        invert_into(object, "enablePVCReuse", disabled);
        exclusion_to_field(object, &mut kept);
        strategy_to_v1beta1(object, &mut kept);
        predownload_to_fields(object, &mut kept);
    }
    stash(object, "v1alpha1", kept.older);
    Ok(())
}

/// Turns an object of either version into `v1alpha1`.
pub fn to_v1alpha1(object: &mut Value) -> Result<(), ConvertError> {
    if version(object)? == V1ALPHA1 {
        return Ok(());
    }
    set(object, &["apiVersion"], V1ALPHA1.into());
    let mut kept = unstash(object);
    if object.get("spec").is_some_and(Value::is_object) {
        let enabled = take(object, &["spec", "scaleStrategy", "enablePVCReuse"]);
        invert_into(object, "disablePVCReuse", enabled);
        exclusion_to_label(object, &mut kept);
        predownload_to_annotations(object, &mut kept);
        strategy_to_v1alpha1(object, &mut kept);
    }
    stash(object, "v1beta1", kept.newer);
    Ok(())
}

fn version(object: &Value) -> Result<&'static str, ConvertError> {
    if !object.is_object() {
        return Err(ConvertError::NotAnObject);
    }
    match object.get("apiVersion").and_then(Value::as_str) {
        Some(V1BETA1) => Ok(V1BETA1),
        Some(V1ALPHA1) => Ok(V1ALPHA1),
        other => Err(ConvertError::Version(other.unwrap_or_default().to_owned())),
    }
}

/// Claims are reused unless disabled in one version, and not unless enabled in the other.
fn invert_into(object: &mut Value, field: &str, other: Option<Value>) {
    let value = match other {
        None | Some(Value::Null) => true.into(),
        Some(Value::Bool(on)) => (!on).into(),
        // Not a boolean: the server refuses it in either version, with the value the user wrote.
        Some(wrong) => wrong,
    };
    set(object, &["spec", "scaleStrategy", field], value);
}

fn label(object: &Value) -> Option<String> {
    let value = object
        .get("metadata")?
        .get("labels")?
        .get(names::EXCLUDE_PREPARING_DELETE)?;
    value.as_str().map(str::to_owned)
}

const EXCLUSION: &str = "excludePreparingDelete";

/// The older version has a label for what is a field in the newer.
fn exclusion_to_field(object: &mut Value, kept: &mut Kept) {
    let said = kept.newer.remove(EXCLUSION);
    let is_labelled = label(object).as_deref() == Some("true");
    if let Some(value) = if is_labelled { Some(true.into()) } else { said } {
        set(object, &["spec", "scaleStrategy", EXCLUSION], value);
    }
}

/// The conversion back. A field that is false has no label, and is kept in the annotation.
fn exclusion_to_label(object: &mut Value, kept: &mut Kept) {
    let path = ["metadata", "labels", names::EXCLUDE_PREPARING_DELETE];
    let said = take(object, &["spec", "scaleStrategy", EXCLUSION]);
    if said == Some(Value::Bool(false)) {
        kept.newer.insert(EXCLUSION.into(), false.into());
    }
    match said {
        Some(Value::Bool(true)) => set(object, &path, "true".into()),
        _ if label(object).as_deref() == Some("true") => {
            take(object, &path);
        }
        _ => {}
    }
}

/// Everything but `type` moves into `rollingUpdate`, and the in-place types become a policy.
fn strategy_to_v1beta1(object: &mut Value, kept: &mut Kept) {
    let strategy = take(object, &["spec", "updateStrategy"]);
    let mut rolling = match strategy {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(members)) => members,
        Some(wrong) => return set(object, &["spec", "updateStrategy"], wrong),
    };
    let kind = rolling.remove("type");
    let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
    let on_delete = kind == "OnDelete";
    if on_delete {
        if let Some(policy) = kept.newer.remove("podUpdatePolicy") {
            rolling.insert("podUpdatePolicy".into(), policy);
        }
    } else {
        let policy = if matches!(kind, "InPlaceIfPossible" | "InPlaceOnly") {
            kind
        } else {
            "ReCreate"
        };
        rolling.insert("podUpdatePolicy".into(), policy.into());
    }
    if let Some(in_place) = rolling
        .get_mut("inPlaceUpdateStrategy")
        .and_then(Value::as_object_mut)
    {
        for (field, ..) in PREDOWNLOAD {
            // The older version stores these fields and ignores them.
            if let Some(value) = in_place.remove(field) {
                kept.older.insert(field.into(), value);
            }
        }
    }
    let mut strategy = json!({"type": if on_delete { "OnDelete" } else { "RollingUpdate" }});
    if !rolling.is_empty() {
        set(&mut strategy, &["rollingUpdate"], Value::Object(rolling));
    }
    if let (Some(Value::Object(beside)), Value::Object(members)) = (kept.newer.remove(BESIDE), &mut strategy)
    {
        for (name, value) in beside {
            members.entry(name).or_insert(value);
        }
    }
    set(object, &["spec", "updateStrategy"], strategy);
}

/// The conversion back: members of `rollingUpdate` move out, the policy becomes the type.
fn strategy_to_v1alpha1(object: &mut Value, kept: &mut Kept) {
    let mut strategy = match take(object, &["spec", "updateStrategy"]) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(members)) => members,
        Some(wrong) => return set(object, &["spec", "updateStrategy"], wrong),
    };
    let kind = strategy.remove("type");
    let on_delete = kind.is_some_and(|kind| kind == "OnDelete");
    let rolling = match strategy.remove("rollingUpdate") {
        Some(Value::Object(members)) if on_delete && members.is_empty() => {
            // Nothing that it becomes would tell that it was there.
            strategy.insert("rollingUpdate".into(), json!({}));
            members
        }
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    if !strategy.is_empty() {
        // The older version has no `rollingUpdate` that anything could stand beside.
        kept.newer.insert(BESIDE.into(), Value::Object(strategy));
    }
    let mut strategy = rolling;
    let policy = strategy.remove("podUpdatePolicy");
    let kind = match policy.as_ref().and_then(Value::as_str) {
        _ if on_delete => "OnDelete",
        Some("InPlaceIfPossible") => "InPlaceIfPossible",
        Some("InPlaceOnly") => "InPlaceOnly",
        _ => "ReCreate",
    };
    if on_delete && let Some(policy) = policy {
        kept.newer.insert("podUpdatePolicy".into(), policy);
    }
    strategy.insert("type".into(), kind.into());
    for (field, ..) in PREDOWNLOAD {
        if let Some(value) = kept.older.remove(field) {
            let in_place = strategy
                .entry("inPlaceUpdateStrategy")
                .or_insert_with(|| json!({}));
            if let Some(in_place) = in_place.as_object_mut() {
                in_place.insert(field.into(), value);
            }
        }
    }
    set(object, &["spec", "updateStrategy"], Value::Object(strategy));
}

const IN_PLACE: [&str; 4] = ["spec", "updateStrategy", "rollingUpdate", "inPlaceUpdateStrategy"];

fn predownload_to_fields(object: &mut Value, kept: &mut Kept) {
    for (field, annotation, takes_text) in PREDOWNLOAD {
        let text = object
            .get("metadata")
            .and_then(|m| m.get("annotations")?.get(annotation)?.as_str().map(str::to_owned));
        let said = kept.newer.remove(field);
        let value = text.and_then(|text| match said {
            Some(Value::String(said)) if said == text => Some(said.into()),
            _ => parsed(&text, takes_text),
        });
        if let Some(value) = value {
            let [a, b, c, d] = IN_PLACE;
            set(object, &[a, b, c, d, field], value);
        }
    }
}

/// Writes the annotations. One whose text is no value of the field was never converted, and stays. Text that would
/// be read back as a number is kept.
fn predownload_to_annotations(object: &mut Value, kept: &mut Kept) {
    for (field, annotation, takes_text) in PREDOWNLOAD {
        let [a, b, c, d] = IN_PLACE;
        let path = ["metadata", "annotations", annotation];
        match take(object, &[a, b, c, d, field]) {
            Some(Value::String(text)) => {
                if !parsed(&text, takes_text).is_some_and(|value| value.is_string()) {
                    kept.newer.insert(field.into(), text.clone().into());
                }
                set(object, &path, text.into());
            }
            Some(Value::Number(number)) => set(object, &path, number.to_string().into()),
            _ => {
                let old = take(object, &path);
                let text = old.as_ref().and_then(Value::as_str);
                if text.is_some_and(|text| parsed(text, takes_text).is_none())
                    && let Some(old) = old
                {
                    set(object, &path, old);
                }
            }
        }
    }
}

fn parsed(text: &str, takes_text: bool) -> Option<Value> {
    match text.parse::<i32>() {
        Ok(number) => Some(number.into()),
        Err(_) if takes_text && !text.is_empty() => Some(text.into()),
        Err(_) => None,
    }
}

/// Fields of one version that the other lacks.
#[derive(Default)]
struct Kept {
    /// Fields of `v1alpha1` only.
    older: Map<String, Value>,
    /// Fields of `v1beta1` only.
    newer: Map<String, Value>,
}

fn unstash(object: &mut Value) -> Kept {
    let path = ["metadata", "annotations", names::CONVERSION_DATA];
    let Some(text) = take(object, &path) else {
        return Kept::default();
    };
    let data: Value = text
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let members = |version: &str| {
        data.get(version)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    Kept {
        older: members("v1alpha1"),
        newer: members("v1beta1"),
    }
}

fn stash(object: &mut Value, version: &str, members: Map<String, Value>) {
    if members.is_empty() {
        return;
    }
    let text = json!({version: members}).to_string();
    set(
        object,
        &["metadata", "annotations", names::CONVERSION_DATA],
        text.into(),
    );
}

#[cfg(test)]
mod tests;
