//! The definitions that users name, by any name that kubectl accepts.

use anyhow::bail;

use super::definition::Definition;

/// The definition of this name: `clonesets`, `cloneset`, `CloneSet` or a short name; alone, with its group, or with
/// its version and its group.
///
/// # Errors
/// Fails if the cluster has no such definition, and says which it has.
pub(super) fn find<'d>(definitions: &'d [Definition], name: &str) -> anyhow::Result<&'d Definition> {
    if let Some(found) = definitions.iter().find(|definition| has_name(definition, name)) {
        return Ok(found);
    }
    let known: Vec<String> = definitions.iter().map(described).collect();
    bail!(
        "the cluster has no definition {name} of OpenKruise; it has\n  {}",
        known.join("\n  ")
    )
}

fn has_name(definition: &Definition, name: &str) -> bool {
    if name == definition.name {
        return true;
    }
    let (name, of) = name.split_once('.').unwrap_or((name, ""));
    let is_in_group = of.is_empty() || of == definition.group;
    let is_in_version = || {
        of.split_once('.').is_some_and(|(version, group)| {
            group == definition.group && definition.versions.iter().any(|known| known == version)
        })
    };
    definition.names.contains(&name.to_lowercase()) && (is_in_group || is_in_version())
}

/// A definition with the other names of its objects.
fn described(definition: &Definition) -> String {
    let others: Vec<&str> = definition
        .names
        .iter()
        .filter(|name| **name != definition.plural)
        .map(String::as_str)
        .collect();
    format!("{}: {}", definition.name, others.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn definitions() -> Vec<Definition> {
        let mut all = kruise_kinds::definitions("kruise-system");
        for definition in &mut all {
            definition["metadata"]["uid"] = "u".into();
            definition["metadata"]["resourceVersion"] = "7".into();
        }
        all.iter().filter_map(Definition::read).collect()
    }

    #[test]
    fn kinds_are_found_by_every_name_that_kubectl_accepts() {
        let definitions = definitions();
        for name in [
            "clonesets",
            "cloneset",
            "CloneSet",
            "clone",
            "clonesets.apps.kruise.io",
            "cloneset.apps.kruise.io",
            "clonesets.v1alpha1.apps.kruise.io",
        ] {
            let found = find(&definitions, name).unwrap();
            assert_eq!(found.name, "clonesets.apps.kruise.io", "{name}");
        }
        for (name, found) in [
            ("pub", "podunavailablebudgets.policy.kruise.io"),
            ("statefulset", "statefulsets.apps.kruise.io"),
        ] {
            assert_eq!(find(&definitions, name).unwrap().name, found);
        }
    }

    #[test]
    fn no_name_stands_for_two_kinds() {
        let mut seen = BTreeSet::new();
        for definition in definitions() {
            for name in definition.names {
                assert!(seen.insert(name.clone()), "{name}");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_those_that_there_are() {
        let definitions = definitions();
        for name in [
            "deployments",
            "clonesets.example.com",
            "clonesets.v7.apps.kruise.io",
            "clonesets.apps.kruise.io.",
            "",
        ] {
            let error = find(&definitions, name).unwrap_err().to_string();
            assert!(
                error.contains("clonesets.apps.kruise.io: clone, cloneset"),
                "{error}"
            );
        }
    }
}
