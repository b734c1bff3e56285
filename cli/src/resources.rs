//! The resources that people name, in every way in which kubectl takes their names.

use std::iter::once;

use kruise_api::definition::{Kind, Scope};
use kruise_plan_kit::ResourceId;

/// A resource with objects that people name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Group; empty for the core.
    pub group: &'static str,
    /// Name of its objects' kind, such as `CloneSet`.
    pub kind: &'static str,
    /// Name in paths.
    pub plural: &'static str,
    /// Short names.
    pub short_names: &'static [&'static str],
    /// Are its objects in a namespace?
    pub is_namespaced: bool,
    /// Is it one of Kruise?
    pub is_ours: bool,
}

const fn of_kubernetes(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
) -> Resource {
    Resource {
        group,
        kind,
        plural,
        short_names,
        is_namespaced: true,
        is_ours: false,
    }
}

/// Pods, and what Kubernetes itself has to hold them.
pub const PODS: Resource = of_kubernetes("", "Pod", "pods", &["po"]);
const WORKLOADS: [Resource; 7] = [
    of_kubernetes("apps", "Deployment", "deployments", &["deploy"]),
    of_kubernetes("apps", "ReplicaSet", "replicasets", &["rs"]),
    of_kubernetes("apps", "StatefulSet", "statefulsets", &["sts"]),
    of_kubernetes("apps", "DaemonSet", "daemonsets", &["ds"]),
    of_kubernetes("batch", "Job", "jobs", &[]),
    of_kubernetes("batch", "CronJob", "cronjobs", &["cj"]),
    of_kubernetes("", "ReplicationController", "replicationcontrollers", &["rc"]),
];

/// All of them. Where two have a name in common, that of Kruise comes first.
pub fn all() -> impl Iterator<Item = Resource> {
    kruise_kinds::kinds()
        .iter()
        .copied()
        .map(Resource::of)
        .chain(once(PODS))
        .chain(WORKLOADS)
}

/// The resources of this name, such as `clone`, `CloneSet`, `clonesets.apps.kruise.io` or
/// `clonesets.v1beta1.apps.kruise.io`.
pub fn named(name: &str) -> Vec<Resource> {
    all().filter(|resource| resource.has_name(name)).collect()
}

/// The resource of an object.
pub fn of_object(api_version: &str, kind: &str) -> Option<Resource> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    all().find(|resource| resource.group == group && resource.kind == kind)
}

impl Resource {
    /// That of a kind.
    pub fn of(kind: &'static Kind) -> Self {
        Self {
            group: kind.group,
            kind: kind.kind,
            plural: kind.plural,
            short_names: kind.short_names,
            is_namespaced: kind.scope == Scope::Namespaced,
            is_ours: true,
        }
    }

    /// For paths.
    pub fn id(&self) -> ResourceId {
        ResourceId {
            group: self.group,
            plural: self.plural,
        }
    }

    /// As kubectl names it: `clonesets.apps.kruise.io`.
    pub fn full_name(&self) -> String {
        match self.group {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// The shortest name that no other resource has.
    pub fn short_name(&self) -> String {
        let mut short = self.short_names.iter();
        let own = short.find(|name| named(name).len() == 1);
        own.map_or_else(|| self.kind.to_lowercase(), |name| (*name).to_owned())
    }

    /// Every name without a group.
    pub fn names(&self) -> Vec<String> {
        let short = self.short_names.iter().map(|name| (*name).to_owned());
        [self.plural.to_owned(), self.kind.to_lowercase()]
            .into_iter()
            .chain(short)
            .collect()
    }

    /// True if kubectl takes this name for it.
    pub fn has_name(&self, name: &str) -> bool {
        let (alone, group) = name.split_once('.').unwrap_or((name, ""));
        let is_group = group.is_empty() || self.group == group || self.is_version_and_group(group);
        is_group && self.names().contains(&alone.to_lowercase())
    }

    /// `v1beta1.apps.kruise.io`; of the core only the version.
    fn is_version_and_group(&self, text: &str) -> bool {
        let (version, group) = text.split_once('.').unwrap_or((text, ""));
        let is_version = version
            .strip_prefix('v')
            .is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
        is_version && group == self.group
    }
}

/// The candidate that is most like a name, if one is like it at all: of three letters one may be wrong, missing,
/// or change places with the next.
pub fn alike<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let name = name.to_lowercase();
    let allowed = (name.chars().count() / 3).max(1);
    let distant = candidates.into_iter().map(|candidate| {
        let distance = strsim::osa_distance(&name, &candidate.to_lowercase());
        (distance, candidate)
    });
    // Of equals the first in the alphabet.
    let best = distant.filter(|(distance, _)| *distance <= allowed).min();
    best.map(|(_, candidate)| candidate)
}

/// `; did you mean "x"?`, or nothing.
pub fn did_you_mean<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    alike(name, candidates).map_or_else(String::new, |found| format!("; did you mean {found}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(name: &str) -> Vec<String> {
        named(name).iter().map(Resource::full_name).collect()
    }

    #[test]
    fn every_way_to_name_a_resource_leads_to_it() {
        for name in [
            "clone",
            "cloneset",
            "clonesets",
            "CloneSet",
            "clonesets.apps.kruise.io",
            "cloneset.apps.kruise.io",
            "clonesets.v1alpha1.apps.kruise.io",
        ] {
            assert_eq!(full(name), ["clonesets.apps.kruise.io"], "{name}");
        }
        assert_eq!(full("po"), ["pods"]);
        assert_eq!(full("deployment.apps"), ["deployments.apps"]);
        assert_eq!(full("deployments.v1.apps"), ["deployments.apps"]);
        assert!(full("clonesets.apps").is_empty() && full("clonsets").is_empty());
    }

    #[test]
    fn of_a_name_that_two_have_kruises_comes_first_unless_a_group_decides() {
        assert_eq!(full("sts"), ["statefulsets.apps.kruise.io", "statefulsets.apps"]);
        assert_eq!(full("sts.apps"), ["statefulsets.apps"]);
        assert_eq!(full("asts"), ["statefulsets.apps.kruise.io"]);
        assert_eq!(full("ds"), ["daemonsets.apps"]);
        assert_eq!(named("sts")[0].short_name(), "asts");
    }

    #[test]
    fn the_name_that_is_most_alike_is_suggested_and_none_that_is_not() {
        let names: Vec<String> = all().flat_map(|resource| resource.names()).collect();
        let names = || names.iter().map(String::as_str);
        assert_eq!(alike("clonset", names()), Some("cloneset"));
        assert_eq!(alike("SideCarSets", names()), Some("sidecarsets"));
        assert_eq!(alike("xyzzy", names()), None);
        assert_eq!(did_you_mean("wbe", ["web", "api"]), "; did you mean web?");
        assert_eq!(did_you_mean("wbe", []), "");
    }
}
