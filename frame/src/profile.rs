//! An installation for some of the kinds: their definitions, rights and webhooks, and the controllers that act on them.
//!
//! Controllers without a kind act on pods of any workload, and are part of every profile.

use std::fmt;

use kruise_api::{definition::Kind, names::is_ours};
use kruise_plan_kit::ResourceId;

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
    pub fn of<'k>(kinds: impl IntoIterator<Item = &'k Kind>) -> Self {
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
    pub fn has(&self, group: &str, plural: &str) -> bool {
        !self.is_partial() || !is_ours(group) || self.only.contains(&plural)
    }

    /// Those of these kinds that are part of it.
    pub fn of_kinds(&self, kinds: &'static [&'static Kind]) -> impl Iterator<Item = &'static Kind> + Clone {
        kinds.iter().copied().filter(|kind| self.includes(kind))
    }

    /// Reads plural names of these kinds, separated by commas; all kinds if the text is empty.
    pub fn parse(text: &str, kinds: &[&'static Kind]) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let only = names.map(|name| {
            let found = kinds.iter().find(|kind| kind.plural == name);
            found.map(|kind| kind.plural).ok_or_else(|| {
                let known: Vec<&str> = kinds.iter().map(|kind| kind.plural).collect();
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
