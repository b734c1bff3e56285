//! Which kinds of workload may be spread.

use kruise_api::names::APPS_GROUP;
use serde_json::{Map, Value};

/// A kind that administrators list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedKind {
    /// API group; empty for the core group.
    pub group: String,
    /// A version that is served; empty if the entry names none.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Where its objects say how many pods they want, as `spec.replicas`; empty if the entry does not say.
    pub replicas_path: String,
    /// Groups and kinds of what owns the pods of such a workload: its own objects, which it controls.
    pub sub_resources: Vec<(String, String)>,
}

/// The kinds in the setting
/// [`WORKLOADS`](kruise_api::names::workloadspread::WORKLOADS), such as
/// `{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game","replicasPath":"spec.size","subResources":[{"Group":"example.com","Version":"v1","Kind":"Match"}]}]}`.
/// Members are named in whatever case, as Go reads them; an empty text names none.
///
/// # Errors
/// In plain words, if the text is something else.
pub fn listed(text: &str) -> Result<Vec<ListedKind>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let list: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let list = list.as_object().ok_or("it is no JSON object")?;
    entries(list, "workloads")?.into_iter().map(entry).collect()
}

/// Can pods of a controller of this kind be in a subset: is it of a kind that everybody knows, or that
/// administrators list?
pub fn is_known(group: &str, kind: &str, listed: &[ListedKind]) -> bool {
    let is_built_in = matches!(
        (group, kind),
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet")
            | (APPS_GROUP, "CloneSet" | "StatefulSet")
            | ("batch", "Job")
    );
    let is_listed = |one: &ListedKind| {
        let mut subs = one.sub_resources.iter();
        (one.group == group && one.kind == kind)
            || subs.any(|(sub_group, sub_kind)| sub_group == group && sub_kind == kind)
    };
    is_built_in || listed.iter().any(is_listed)
}

fn entry(members: &Map<String, Value>) -> Result<ListedKind, String> {
    let subs = entries(members, "subResources")?;
    let subs = subs
        .into_iter()
        .map(|sub| Ok((text(sub, "group")?, text(sub, "kind")?)));
    Ok(ListedKind {
        group: text(members, "group")?,
        version: text(members, "version")?,
        kind: text(members, "kind")?,
        replicas_path: text(members, "replicasPath")?,
        sub_resources: subs.collect::<Result<_, String>>()?,
    })
}

fn entries<'a>(object: &'a Map<String, Value>, name: &str) -> Result<Vec<&'a Map<String, Value>>, String> {
    let entries = match member(object, name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(entries)) => entries.iter(),
        Some(_) => return Err(format!("{name} is no list")),
    };
    let objects = entries.map(|entry| {
        entry
            .as_object()
            .ok_or_else(|| format!("an entry of {name} is no JSON object"))
    });
    objects.collect()
}

fn text(members: &Map<String, Value>, name: &str) -> Result<String, String> {
    match member(members, name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("{name} of an entry is no text")),
    }
}

fn member<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let mut members = object.iter();
    let found = members.find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value)
}
