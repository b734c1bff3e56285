//! RFC 6902, with the leniencies of the library that the API server uses: `add` may not create parents, `remove` of
//! what is absent fails, `replace` of an absent member does not, negative indexes count from the end.

use serde_json::Value;

use super::PatchError;

/// Applies a JSON patch: a list of operations, all or none of which take effect.
pub fn apply(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let Value::Array(operations) = patch else {
        return Err(PatchError::Malformed(
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch".into(),
        ));
    };
    let mut out = target.clone();
    for operation in operations {
        step(&mut out, operation)?;
    }
    *target = out;
    Ok(())
}

fn step(target: &mut Value, operation: &Value) -> Result<(), PatchError> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let path = text("path").ok_or_else(|| inapplicable("the operation has no path"))?;
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match text("op").unwrap_or_default() {
        "add" => add(target, path, value()),
        "remove" => remove(target, path).map(drop),
        "replace" => replace(target, path, value()),
        "move" => {
            let from = text("from").ok_or_else(|| inapplicable("the operation has no origin"))?;
            let value = remove(target, from)?;
            add(target, path, value)
        }
        "copy" => {
            let from = text("from").ok_or_else(|| inapplicable("the operation has no origin"))?;
            let value = find(target, from).cloned().ok_or_else(|| missing("copy", from))?;
            add(target, path, value)
        }
        "test" => {
            // an absent member equals null
            let found = find(target, path).unwrap_or(&Value::Null);
            if found == &value() {
                Ok(())
            } else {
                Err(inapplicable(&format!("testing value {path} failed")))
            }
        }
        other => Err(inapplicable(&format!("unexpected kind: {other}"))),
    }
}

fn inapplicable(text: &str) -> PatchError {
    PatchError::Inapplicable(text.to_owned())
}

fn missing(operation: &str, path: &str) -> PatchError {
    inapplicable(&format!(
        "{operation} operation does not apply: missing path: {path}"
    ))
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// The parent's pointer and the last part.
fn split(path: &str) -> Option<(&str, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((parent, unescape(last)))
}

fn index(part: &str, len: usize) -> Option<usize> {
    let number: i64 = part.parse().ok()?;
    let at = if number < 0 {
        number + i64::try_from(len).ok()?
    } else {
        number
    };
    usize::try_from(at).ok()
}

fn find<'a>(target: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(target);
    }
    let (parent, last) = split(path)?;
    match find(target, parent)? {
        Value::Object(members) => members.get(&last),
        Value::Array(items) => items.get(index(&last, items.len())?),
        _ => None,
    }
}

fn find_mut<'a>(target: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    if path.is_empty() {
        return Some(target);
    }
    let (parent, last) = split(path)?;
    match find_mut(target, parent)? {
        Value::Object(members) => members.get_mut(&last),
        Value::Array(items) => {
            let at = index(&last, items.len())?;
            items.get_mut(at)
        }
        _ => None,
    }
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    let found = split(path).and_then(|(parent, last)| Some((find_mut(target, parent)?, last)));
    match found {
        Some((Value::Object(members), last)) => {
            members.insert(last, value);
            Ok(())
        }
        Some((Value::Array(items), last)) => {
            let len = items.len();
            let at = if last == "-" {
                Some(len)
            } else {
                index(&last, len + 1)
            };
            let at = at.filter(|at| *at <= len).ok_or_else(|| missing("add", path))?;
            items.insert(at, value);
            Ok(())
        }
        _ => Err(missing("add", path)),
    }
}

/// Of an object, an absent member may be replaced as well.
fn replace(target: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    if let Some((parent, last)) = split(path)
        && let Some(Value::Object(members)) = find_mut(target, parent)
    {
        members.insert(last, value);
        return Ok(());
    }
    let slot = find_mut(target, path).ok_or_else(|| missing("replace", path))?;
    *slot = value;
    Ok(())
}

fn remove(target: &mut Value, path: &str) -> Result<Value, PatchError> {
    let found = split(path).and_then(|(parent, last)| Some((find_mut(target, parent)?, last)));
    let removed = match found {
        Some((Value::Object(members), last)) => members.remove(&last),
        Some((Value::Array(items), last)) => index(&last, items.len())
            .filter(|at| *at < items.len())
            .map(|at| items.remove(at)),
        _ => None,
    };
    removed.ok_or_else(|| missing("remove", path))
}
