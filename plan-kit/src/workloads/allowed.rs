//! Kinds of workloads that administrators name.

use serde_json::Value;

/// A kind that administrators name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AllowedKind {
    /// API group; empty for the core group.
    pub group: String,
    /// A version that is served; empty if the entry names none.
    pub version: String,
    /// Kind.
    pub kind: String,
}

impl AllowedKind {
    /// Group and version, as objects name them.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// The kinds in a setting such as `{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game"}]}`. Members
/// are named in whatever case, as Go reads them; an empty text names none. Such a workload wants `spec.replicas`
/// pods, and none where the member is absent. Versions do not decide whether a kind is allowed.
///
/// # Errors
/// In plain words, if the text is something else.
pub fn allowed_kinds(text: &str) -> Result<Vec<AllowedKind>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let list: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let list = list.as_object().ok_or("it is no JSON object")?;
    let entries = match member(list, "workloads") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err("workloads is no list".to_owned()),
    };
    entries.iter().map(entry).collect()
}

fn entry(entry: &Value) -> Result<AllowedKind, String> {
    let members = entry
        .as_object()
        .ok_or("an entry of workloads is no JSON object")?;
    let text = |name: &str| match member(members, name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("{name} of an entry of workloads is no text")),
    };
    Ok(AllowedKind {
        group: text("group")?,
        version: text("version")?,
        kind: text("kind")?,
    })
}

fn member<'a>(object: &'a serde_json::Map<String, Value>, name: &str) -> Option<&'a Value> {
    let mut members = object.iter();
    let found = members.find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::allowed_kinds;

    #[test]
    fn kinds_are_read_in_any_case_and_other_text_is_refused() {
        let text = r#"{"Workloads":[{"Group":"example.com","version":"v1","Kind":"Game"},{"Kind":"Pool","Version":"v1"}]}"#;
        let kinds = allowed_kinds(text).unwrap();
        let found: Vec<(String, String)> = kinds
            .iter()
            .map(|kind| (kind.api_version(), kind.kind.clone()))
            .collect();
        let expected = [("example.com/v1", "Game"), ("v1", "Pool")];
        assert_eq!(
            found,
            expected.map(|(version, kind)| (version.to_owned(), kind.to_owned()))
        );
        for text in ["", "{}", r#"{"workloads":null}"#] {
            assert!(allowed_kinds(text).unwrap().is_empty(), "{text}");
        }
        for text in [
            "[]]",
            "[]",
            r#"{"workloads":[{"Kind":1}]}"#,
            r#"{"workloads":[1]}"#,
        ] {
            assert!(allowed_kinds(text).is_err(), "{text}");
        }
    }
}
