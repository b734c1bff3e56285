//! Kinds of workloads that administrators name.

use serde::Deserialize;

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    workloads: Vec<Entry>,
}

/// The version is not compared.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[derive(Default)]
struct Entry {
    group: String,
    kind: String,
}

/// Groups and kinds in a setting such as `{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game"}]}`. Such a
/// workload wants `spec.replicas` pods, and none where the member is absent.
///
/// # Errors
/// In plain words, if the text is something else.
pub fn allowed_kinds(text: &str) -> Result<Vec<(String, String)>, String> {
    let list: List = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let kinds = list.workloads.into_iter().map(|entry| (entry.group, entry.kind));
    Ok(kinds.collect())
}

#[cfg(test)]
mod tests {
    use super::allowed_kinds;

    #[test]
    fn kinds_are_read_in_any_version_and_other_text_is_refused() {
        let text = r#"{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game"},{"Kind":"Pool"}]}"#;
        let kinds = allowed_kinds(text).unwrap();
        let expected = [("example.com", "Game"), ("", "Pool")];
        assert_eq!(
            kinds,
            expected.map(|(group, kind)| (group.to_owned(), kind.to_owned()))
        );
        assert!(allowed_kinds("{}").unwrap().is_empty());
        for text in ["", "[]]", r#"{"workloads":[{"Kind":1}]}"#] {
            assert!(allowed_kinds(text).is_err(), "{text}");
        }
    }
}
