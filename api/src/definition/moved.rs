//! Fields that the older version of a kind has, and the newer one has elsewhere or not at all.
//!
//! An API server drops a field that a version does not have, and only warns. Clients that name no version get the
//! newest.

use serde_json::Value;

use super::Kind;
use crate::convert::{NEWER, OLDER};

/// A field of the older version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Where the older version has it, such as `spec.updateStrategy.partition`.
    pub older: String,
    /// Where the newer version has a field of this name; `None` if it has none.
    pub newer: Option<String>,
}

impl Kind {
    /// The fields of its specification that the newer version does not have at the same place. None if it has one
    /// version.
    pub fn moved(&self) -> Vec<Moved> {
        let versions = (self.versions)();
        let spec = |name| versions.iter().find(|one| one.name == name).map(|one| &one.spec);
        let mut found = Vec::new();
        if let (Some(older), Some(newer)) = (spec(OLDER), spec(NEWER)) {
            compare(older, newer, "spec", &mut found);
        }
        found
    }
}

fn compare(older: &Value, newer: &Value, path: &str, found: &mut Vec<Moved>) {
    for (name, member) in members(older) {
        let path_of_member = format!("{path}.{name}");
        match property(newer, name) {
            Some(other) => compare(items(member), items(other), &path_of_member, found),
            // whatever is there is kept
            None if members(newer).next().is_none() => {}
            None => found.push(Moved {
                newer: below(newer, name, path),
                older: path_of_member,
            }),
        }
    }
}

/// Where a schema has a field of this name; the nearest one, if there are several.
fn below(schema: &Value, name: &str, path: &str) -> Option<String> {
    let mut level: Vec<(String, &Value)> = vec![(path.to_owned(), schema)];
    while !level.is_empty() {
        let here = level.iter().find(|(_, schema)| property(schema, name).is_some());
        if let Some((path, _)) = here {
            return Some(format!("{path}.{name}"));
        }
        level = level
            .iter()
            .flat_map(|(path, schema)| children(path, schema))
            .collect();
    }
    None
}

fn children<'s>(path: &str, schema: &'s Value) -> Vec<(String, &'s Value)> {
    let members = members(schema);
    members
        .map(|(name, member)| (format!("{path}.{name}"), items(member)))
        .collect()
}

fn members(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let members = schema.get("properties").and_then(Value::as_object);
    members.into_iter().flatten()
}

fn property<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema.get("properties")?.get(name)
}

/// The schema of the items of a list; that of anything else itself.
fn items(schema: &Value) -> &Value {
    schema.get("items").unwrap_or(schema)
}

#[cfg(test)]
mod tests {
    use crate::kinds;

    #[test]
    fn what_a_patch_for_the_older_version_would_lose_is_known_with_its_new_place() {
        let all: Vec<String> = kinds::ALL
            .into_iter()
            .flat_map(|kind| kind.moved().into_iter().map(move |moved| (kind, moved)))
            .map(|(kind, moved)| {
                let newer = moved.newer.unwrap_or_else(|| "nowhere".to_owned());
                format!("{} {} -> {newer}", kind.kind, moved.older)
            })
            .collect();
        for expected in [
            "CloneSet spec.updateStrategy.partition -> spec.updateStrategy.rollingUpdate.partition",
            "CloneSet spec.updateStrategy.paused -> spec.updateStrategy.rollingUpdate.paused",
            "CloneSet spec.updateStrategy.maxUnavailable -> spec.updateStrategy.rollingUpdate.maxUnavailable",
        ] {
            assert!(
                all.iter().any(|one| one == expected),
                "{expected} is not among {all:#?}"
            );
        }
        assert!(
            all.iter().all(|one| !one.contains(" spec.template.spec")),
            "{all:#?}"
        );
        assert!(all.iter().all(|one| !one.contains("spec.replicas ")), "{all:#?}");
    }
}
