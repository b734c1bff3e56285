//! An installation for some of the kinds: their definitions, rights and webhooks, and the controllers that act on them.
//!
//! Controllers without a kind act on pods of any workload, and are part of every profile.

use std::{fmt, str::FromStr};

use kruise_api::{definition::Kind, kinds};
use kruise_plan_kit::ResourceId;

use crate::{controllers, manager::Registration};

/// The flag of the manager, and of the commands that print what it needs.
pub const FLAG: &str = "only";

/// Some of the kinds, or all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Plural names; all kinds if there are none.
    only: Vec<&'static str>,
}

impl Profile {
    /// These kinds; all kinds if there are none.
    pub(crate) fn of<'k>(kinds: impl IntoIterator<Item = &'k Kind>) -> Self {
        Self {
            only: kinds.into_iter().map(|kind| kind.plural).collect(),
        }
    }

    /// Whether it leaves kinds out.
    pub fn is_partial(&self) -> bool {
        !self.only.is_empty()
    }

    /// Whether a kind is part of it.
    pub fn includes(&self, kind: &Kind) -> bool {
        !self.is_partial() || self.only.contains(&kind.plural)
    }

    /// Whether a resource is part of it. Those of others always are.
    pub fn includes_resource(&self, resource: ResourceId) -> bool {
        self.has(resource.group, resource.plural)
    }

    /// As [`Profile::includes_resource`], by group and plural name.
    pub(crate) fn has(&self, group: &str, plural: &str) -> bool {
        let ours = kinds::ALL.into_iter();
        let mut ours = ours.filter(|kind| kind.group == group && kind.plural == plural);
        ours.next().is_none_or(|kind| self.includes(kind))
    }

    /// Its kinds.
    pub fn kinds(&self) -> impl Iterator<Item = &'static Kind> + Clone {
        kinds::ALL.into_iter().filter(|kind| self.includes(kind))
    }

    /// Its controllers.
    pub fn registrations(&self) -> Vec<&'static Registration> {
        let all = controllers::ALL.into_iter();
        all.filter(|registration| registration.kind.is_none_or(|kind| self.includes(kind)))
            .collect()
    }

    /// The kinds that it has a controller for.
    pub fn reconciled(&self) -> Vec<&'static Kind> {
        let registrations = self.registrations().into_iter();
        registrations
            .filter_map(|registration| registration.kind)
            .collect()
    }
}

impl FromStr for Profile {
    type Err = String;

    /// Plural names of kinds, separated by commas; all kinds if the text is empty.
    fn from_str(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let only = names.map(|name| {
            let found = kinds::ALL.into_iter().find(|kind| kind.plural == name);
            found.map(|kind| kind.plural).ok_or_else(|| {
                let known: Vec<&str> = kinds::ALL.into_iter().map(|kind| kind.plural).collect();
                format!("{name:?} is none of {}", known.join(", "))
            })
        });
        Ok(Self {
            only: only.collect::<Result<_, _>>()?,
        })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.only.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_has_its_kinds_and_the_controllers_of_all_pods() {
        let all = Profile::default();
        assert_eq!(all.registrations().len(), controllers::ALL.len());
        let one: Profile = "clonesets".parse().unwrap();
        assert_eq!(
            one.kinds().map(|kind| kind.kind).collect::<Vec<_>>(),
            ["CloneSet"]
        );
        assert_eq!(one.reconciled().len(), 1);
        let mut without_kind = controllers::ALL.into_iter().filter(|one| one.kind.is_none());
        assert!(without_kind.all(|other| one.registrations().iter().any(|have| have.name == other.name)));
        assert!(
            one.has("", "pods")
                && !one.has("apps.kruise.io", "statefulsets")
                && one.has("apps", "statefulsets")
        );
        let two: Profile = " clonesets, sidecarsets".parse().unwrap();
        assert_eq!(two.to_string(), "clonesets,sidecarsets");
    }

    #[test]
    fn a_kind_that_there_is_not_is_named_with_those_there_are() {
        let error = "deployments".parse::<Profile>().unwrap_err();
        assert!(
            error.contains("\"deployments\"") && error.contains("clonesets"),
            "{error}"
        );
    }
}
