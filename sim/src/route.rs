//! Paths of the API.

use std::borrow::Cow;

use crate::query::decode;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/api` or `/apis`: which groups there are.
    Groups {
        /// `/api`.
        legacy: bool,
    },
    /// `/apis/<group>`.
    Group(String),
    /// `/api/v1` or `/apis/<group>/<version>`: which resources there are.
    Resources { group: String, version: String },
    /// Objects.
    Objects(Target),
    /// `/version`, `/healthz` and so on.
    Other(String),
}

/// Objects of a resource, or one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// Empty for all namespaces, and for cluster-wide resources.
    pub(crate) namespace: String,
    /// Empty for the collection.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
    /// The old form of watch: `/api/v1/watch/...`.
    pub(crate) watch: bool,
}

impl Route {
    pub(crate) fn parse(path: &str) -> Self {
        let parts = path.split('/').filter(|part| !part.is_empty()).map(plain);
        let parts: Vec<Cow<'_, str>> = parts.collect();
        let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
        match parts.as_slice() {
            ["api"] => Self::Groups { legacy: true },
            ["apis"] => Self::Groups { legacy: false },
            ["api", version] => Self::Resources {
                group: String::new(),
                version: (*version).to_owned(),
            },
            ["apis", group] => Self::Group((*group).to_owned()),
            ["apis", group, version] => Self::Resources {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
            },
            ["api", version, rest @ ..] => target("", version, rest),
            ["apis", group, version, rest @ ..] => target(group, version, rest),
            _ => Self::Other(path.to_owned()),
        }
    }
}

/// A part of a path, where `+` is no blank.
fn plain(part: &str) -> Cow<'_, str> {
    if part.contains('%') {
        decode(&part.replace('+', "%2B")).into()
    } else {
        part.into()
    }
}

fn target(group: &str, version: &str, parts: &[&str]) -> Route {
    let (watch, parts) = match parts {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, parts),
    };
    // a namespace's own subresources differ from resources in it by their names
    let (namespace, rest): (&str, &[&str]) = match parts {
        ["namespaces", _, "status" | "finalize"] => ("", parts),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (namespace, rest),
        _ => ("", parts),
    };
    let at = |index: usize| rest.get(index).copied().unwrap_or_default().to_owned();
    Route::Objects(Target {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: at(0),
        namespace: namespace.to_owned(),
        name: at(1),
        subresource: rest.get(2..).unwrap_or_default().join("/"),
        watch,
    })
}

#[cfg(test)]
mod tests {
    use super::{Route, Target};

    fn objects(path: &str) -> (String, String, String, String) {
        let Route::Objects(Target {
            plural,
            namespace,
            name,
            subresource,
            ..
        }) = Route::parse(path)
        else {
            panic!("{path} names no objects");
        };
        (plural, namespace, name, subresource)
    }

    #[test]
    fn paths_name_groups_resources_and_objects() {
        let of = |a: &str, b: &str, c: &str, d: &str| (a.into(), b.into(), c.into(), d.into());
        assert_eq!(objects("/api/v1/pods"), of("pods", "", "", ""));
        assert_eq!(
            objects("/api/v1/namespaces/a/pods/b/status"),
            of("pods", "a", "b", "status")
        );
        assert_eq!(objects("/api/v1/namespaces/a"), of("namespaces", "", "a", ""));
        assert_eq!(
            objects("/api/v1/namespaces/a/finalize"),
            of("namespaces", "", "a", "finalize")
        );
        assert_eq!(
            objects("/apis/apps/v1/namespaces/a/deployments"),
            of("deployments", "a", "", "")
        );
        assert_eq!(Route::parse("/apis"), Route::Groups { legacy: false });
        assert_eq!(Route::parse("/apis/apps"), Route::Group("apps".into()));
        assert_eq!(Route::parse("/healthz"), Route::Other("/healthz".into()));
    }
}
