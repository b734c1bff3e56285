//! Which resources an API server has, and which of them a name on kubectl's command line means.

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

/// A resource in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    /// Path of its version: `/api/v1`, `/apis/apps/v1`.
    root: String,
    /// Empty for the core group.
    group: String,
    version: String,
    kind: String,
    /// Plural, as it is in paths.
    plural: String,
    singular: String,
    short: Vec<String>,
    namespaced: bool,
}

/// The answer at `/apis`.
#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    versions: Vec<Version>,
    preferred_version: Version,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Version {
    group_version: String,
}

/// The answer at the path of a version.
#[derive(Deserialize)]
struct List {
    resources: Vec<Listed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    short_names: Vec<String>,
    kind: String,
    #[serde(default)]
    namespaced: bool,
}

/// The paths of all versions, from what the server answers at `/apis`: the core first, and of each group the
/// preferred one first.
pub(crate) fn versions(groups: Value) -> Result<Vec<String>> {
    let Groups { groups } = serde_json::from_value(groups)?;
    let mut paths = vec!["/api/v1".to_owned()];
    for group in groups {
        let preferred = group.preferred_version;
        let others = group.versions.into_iter().filter(|version| *version != preferred);
        let others: Vec<Version> = others.collect();
        let all = std::iter::once(preferred).chain(others);
        paths.extend(all.map(|version| format!("/apis/{}", version.group_version)));
    }
    Ok(paths)
}

impl Resource {
    /// The resources that a version has, from what the server answers at `root`. Subresources are left out.
    pub(crate) fn all_of(root: &str, list: Value) -> Result<Vec<Self>> {
        let words: Vec<&str> = root.split('/').collect();
        let (group, version) = match words.as_slice() {
            [_, "apis", group, version] => (*group, *version),
            [_, "api", version] => ("", *version),
            _ => return Ok(Vec::new()),
        };
        let List { resources } = serde_json::from_value(list)?;
        let objects = resources.into_iter().filter(|listed| !listed.name.contains('/'));
        let resource = |listed: Listed| Self {
            root: root.into(),
            group: group.into(),
            version: version.into(),
            kind: listed.kind,
            plural: listed.name,
            singular: listed.singular_name,
            short: listed.short_names,
            namespaced: listed.namespaced,
        };
        Ok(objects.map(resource).collect())
    }

    /// Are its objects of this `apiVersion` and kind?
    pub(crate) fn is_of(&self, version: &str, kind: &str) -> bool {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        self.group == group && self.version == version && self.kind == kind
    }

    /// Path of its objects in a namespace, or of all if they are in none.
    pub(crate) fn path(&self, namespace: &str) -> String {
        let Self { root, plural, .. } = self;
        if self.namespaced {
            format!("{root}/namespaces/{namespace}/{plural}")
        } else {
            format!("{root}/{plural}")
        }
    }
}

/// What `name` means: a resource's plural, singular or short name, which may be followed by a group, or by a
/// version and a group. The first that fits; a plural or singular goes before a short name.
pub(crate) fn find<'a>(resources: &'a [Resource], name: &str) -> Option<&'a Resource> {
    let (name, of) = name.split_once('.').unwrap_or((name, ""));
    let fits = |resource: &&Resource| {
        of.is_empty()
            || of == resource.group
            || of
                .strip_prefix(&resource.version)
                .and_then(|rest| rest.strip_prefix('.'))
                == Some(&resource.group)
    };
    let whole = |resource: &&Resource| resource.plural == name || resource.singular == name;
    let short = |resource: &&Resource| resource.short.iter().any(|short| short == name);
    let fitting = || resources.iter().filter(fits);
    fitting().find(whole).or_else(|| fitting().find(short))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resources() -> Vec<Resource> {
        let list = |names: &[(&str, &str, &str)]| {
            let items = names.iter().map(|(plural, singular, short)| {
                json!({"name": plural, "singularName": singular, "shortNames": [short], "kind": "Any", "namespaced": *plural != "nodes"})
            });
            json!({"resources": items.collect::<Vec<_>>()})
        };
        let core = list(&[
            ("pods", "pod", "po"),
            ("pods/status", "", ""),
            ("nodes", "node", "no"),
        ]);
        let apps = list(&[("daemonsets", "daemonset", "ds")]);
        let ours = list(&[
            ("daemonsets", "daemonset", "daemon"),
            ("clonesets", "cloneset", "clone"),
        ]);
        [
            ("/api/v1", core),
            ("/apis/apps/v1", apps),
            ("/apis/apps.kruise.io/v1beta1", ours.clone()),
            ("/apis/apps.kruise.io/v1alpha1", ours),
        ]
        .into_iter()
        .flat_map(|(path, list)| Resource::all_of(path, list).unwrap())
        .collect()
    }

    #[test]
    fn the_preferred_version_of_a_group_comes_first() {
        let version = |text: &str| json!({"groupVersion": text});
        let groups = json!({"groups": [{
            "name": "a", "versions": [version("a/v1"), version("a/v2")], "preferredVersion": version("a/v2"),
        }]});
        assert_eq!(versions(groups).unwrap(), ["/api/v1", "/apis/a/v2", "/apis/a/v1"]);
        assert!(versions(json!({})).is_err());
    }

    #[test]
    fn names_mean_what_they_mean_to_kubectl() {
        let resources = resources();
        let path = |name: &str| find(&resources, name).map(|resource| resource.path("n"));
        let beta = "/apis/apps.kruise.io/v1beta1/namespaces/n/";
        let cases = [
            ("pods", "/api/v1/namespaces/n/pods".to_owned()),
            ("po", "/api/v1/namespaces/n/pods".to_owned()),
            ("node", "/api/v1/nodes".to_owned()),
            ("daemonset", "/apis/apps/v1/namespaces/n/daemonsets".to_owned()),
            ("daemonsets.apps.kruise.io", format!("{beta}daemonsets")),
            ("daemon", format!("{beta}daemonsets")),
            ("clone", format!("{beta}clonesets")),
            (
                "clonesets.v1alpha1.apps.kruise.io",
                "/apis/apps.kruise.io/v1alpha1/namespaces/n/clonesets".to_owned(),
            ),
        ];
        for (name, expected) in cases {
            assert_eq!(path(name), Some(expected), "{name}");
        }
        for unknown in [
            "pods/status",
            "clonesets.apps",
            "clonesets.v1.apps.kruise.io",
            "jobs",
        ] {
            assert_eq!(path(unknown), None, "{unknown}");
        }
    }
}
