//! The kinds in a template: those that the value `installation.only` names, or all of them.
//!
//! What an object has for some of the kinds only is found by comparing the profiles of single kinds: a right or webhook
//! belongs to the kinds whose profile has it.

use std::collections::{BTreeMap, BTreeSet};

use kruise_admission::table::{self, Subject};
use kruise_api::definition::Kind;
use kruise_frame::profile::Profile;
use serde_json::{Value, json};

use super::gates::all_of;
use super::yaml::{put, when};
use crate::manifests::{
    Conditions,
    rbac::{self, NeededRule, Role},
};

/// The value with the plural names.
pub(super) const ONLY: &str = "installation.only";

/// Sets `$kinds` at the start of a template.
pub(super) const READ: &str = "{{- $kinds := fromJson (include \"kruise.kinds\" .) }}\n";

/// Kinds by their plural names.
pub(super) type Kinds = BTreeSet<&'static str>;

/// The expression of a template that holds if this kind is wanted.
pub(super) fn is_wanted(plural: &str) -> String {
    format!("(index $kinds `{plural}`)")
}

/// The expression of a template that holds if one of these kinds is wanted; none if they are all kinds.
pub(super) fn one_is_wanted(of: &Kinds) -> Option<String> {
    if of.len() == kruise_kinds::kinds().len() {
        return None;
    }
    let terms: Vec<String> = of.iter().map(|plural| is_wanted(plural)).collect();
    match &terms[..] {
        [one] => Some(one.clone()),
        more => Some(format!("(or {})", more.join(" "))),
    }
}

/// The kind that a webhook is for; none for those of pods, deletions and labels.
pub(super) fn of_webhook(name: &str) -> Option<&'static Kind> {
    table::webhooks(kruise_kinds::webhooks()).find_map(|webhook| match webhook.subject {
        Subject::Kind(of) if webhook.name == name => Some(of.kind),
        _ => None,
    })
}

/// One verb on one resource, or on an object of it, under conditions.
type Right = (Conditions, String, String, String, String);

/// Which kinds need which rights of a role. A right on a resource of ours is needed only if its kind is wanted,
/// too, so that it is looked for in profiles of two kinds.
#[derive(Default)]
pub(super) struct Needs(BTreeMap<(Option<&'static str>, Right), Kinds>);

impl Needs {
    /// Of each role, by its name.
    pub(super) fn by_role() -> BTreeMap<&'static str, Self> {
        let mut by_role: BTreeMap<&'static str, Self> = BTreeMap::new();
        let others = kruise_kinds::kinds().iter().copied().map(Some);
        for other in others.chain([None]) {
            for kind in kruise_kinds::kinds().iter().copied() {
                let profile = Profile::of([kind].into_iter().chain(other));
                for role in rbac::roles("", &profile) {
                    let Self(needs) = by_role.entry(role.name).or_default();
                    for right in rights(&role) {
                        let key = (other.map(|kind| kind.plural), right);
                        needs.entry(key).or_default().insert(kind.plural);
                    }
                }
            }
        }
        by_role
    }

    /// The expressions that must hold for a right.
    fn of(&self, conditions: &Conditions, [group, resource, verb, name]: [&str; 4]) -> BTreeSet<String> {
        let plural = resource.split('/').next().unwrap_or_default();
        let mut ours = kruise_kinds::kinds().iter().copied();
        let own = ours.find(|kind| kind.group == group && kind.plural == plural);
        let text = str::to_owned;
        let right = (
            conditions.clone(),
            text(group),
            text(resource),
            text(verb),
            text(name),
        );
        let needed_by = self.0.get(&(own.map(|kind| kind.plural), right));
        let of_others = needed_by.and_then(one_is_wanted);
        own.map(|kind| is_wanted(kind.plural))
            .into_iter()
            .chain(of_others)
            .collect()
    }

    /// The rule as rules that each have one set of expressions under which they are needed. In a rule about objects
    /// with names, each name has its own condition.
    pub(super) fn split(&self, conditions: &Conditions, rule: &Value) -> Vec<(BTreeSet<String>, Value)> {
        let (groups, resources) = (texts(rule, "apiGroups"), texts(rule, "resources"));
        let (verbs, names) = (texts(rule, "verbs"), texts(rule, "resourceNames"));
        let mut split: Vec<(BTreeSet<String>, Value)> = Vec::new();
        for (group, resource) in pairs(&groups, &resources) {
            if !names.is_empty() {
                let mut rule = rbac::rule(group, &[resource], &verbs);
                let named = names.iter().map(|name| {
                    let terms = verbs
                        .iter()
                        .flat_map(|verb| self.of(conditions, [group, resource, verb, name]));
                    let terms: BTreeSet<String> = terms.collect();
                    match all_of(&terms) {
                        Some(condition) => when(&condition, vec![json!(name)]),
                        None => json!(name),
                    }
                });
                put(&mut rule, "", "resourceNames", Value::Array(named.collect()));
                split.push((BTreeSet::new(), rule));
                continue;
            }
            let mut by_terms: BTreeMap<BTreeSet<String>, Vec<&str>> = BTreeMap::new();
            for verb in &verbs {
                let terms = self.of(conditions, [group, resource, verb, ""]);
                by_terms.entry(terms).or_default().push(verb);
            }
            let rules = by_terms.into_iter();
            split.extend(rules.map(|(terms, verbs)| (terms, rbac::rule(group, &[resource], &verbs))));
        }
        split
    }
}

fn rights(role: &Role<'_>) -> Vec<Right> {
    let mut rights = Vec::new();
    for NeededRule { conditions, rule } in &role.rules {
        let resources = pairs(&texts(rule, "apiGroups"), &texts(rule, "resources"));
        let mut names = texts(rule, "resourceNames");
        if names.is_empty() {
            names.push("");
        }
        for (group, resource) in resources {
            for (verb, name) in pairs(&texts(rule, "verbs"), &names) {
                let text = str::to_owned;
                rights.push((
                    conditions.clone(),
                    text(group),
                    text(resource),
                    text(verb),
                    text(name),
                ));
            }
        }
    }
    rights
}

fn texts<'r>(rule: &'r Value, field: &str) -> Vec<&'r str> {
    let list = rule.get(field).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

fn pairs<'t>(one: &[&'t str], other: &[&'t str]) -> Vec<(&'t str, &'t str)> {
    one.iter()
        .flat_map(|one| other.iter().map(|other| (*one, *other)))
        .collect()
}

/// The file with the helper `kruise.kinds`.
pub(super) fn helper() -> String {
    let all: Vec<&str> = kruise_kinds::kinds()
        .iter()
        .copied()
        .map(|kind| kind.plural)
        .collect();
    let quoted: Vec<String> = all.iter().map(|plural| format!("`{plural}`")).collect();
    HELPER
        .replace("@VALUE", &format!(".Values.{ONLY}"))
        .replace("@NAME", ONLY)
        .replace("@LIST", &quoted.join(" "))
        .replace("@ALL", &all.join(", "))
}

const HELPER: &str = "\
{{/* Whether each kind is wanted. */}}
{{- define \"kruise.kinds\" }}
{{- $only := list }}
{{- range $name := splitList \",\" (toString (default \"\" @VALUE)) }}
{{- $name = trim $name }}
{{- if $name }}
{{- if not (has $name (list @LIST)) }}
{{- fail (printf \"@NAME: %q is none of @ALL\" $name) }}
{{- end }}
{{- $only = append $only $name }}
{{- end }}
{{- end }}
{{- $kinds := dict }}
{{- range $kind := list @LIST }}
{{- $_ := set $kinds $kind (or (empty $only) (has $kind $only)) }}
{{- end }}
{{- toJson $kinds }}
{{- end }}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_right_is_needed_by_a_kind() {
        let by_role = Needs::by_role();
        for role in rbac::roles("", &Profile::default()) {
            let needs = &by_role[role.name];
            let keys: BTreeSet<&Right> = needs.0.keys().map(|(_, right)| right).collect();
            for right in rights(&role) {
                assert!(keys.contains(&right), "{right:?}");
            }
        }
    }

    #[test]
    fn a_right_on_a_resource_of_ours_is_needed_only_if_its_kind_is_wanted() {
        let needs = &Needs::by_role()["kruise-manager-role"];
        let terms = needs.of(
            &Conditions::new(),
            ["apps.kruise.io", "broadcastjobs", "create", ""],
        );
        let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
        assert_eq!(
            terms,
            [
                "(index $kinds `advancedcronjobs`)",
                "(index $kinds `broadcastjobs`)"
            ]
        );
        let terms = needs.of(&Conditions::new(), ["apps.kruise.io", "clonesets", "list", ""]);
        let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
        assert_eq!(terms, ["(index $kinds `clonesets`)"]);
        let terms = needs.of(&Conditions::new(), ["", "events", "create", ""]);
        assert!(terms.is_empty(), "{terms:?}");
    }

    #[test]
    fn a_term_names_the_kinds_unless_they_are_all() {
        let all: Kinds = kruise_kinds::kinds()
            .iter()
            .copied()
            .map(|kind| kind.plural)
            .collect();
        assert_eq!(one_is_wanted(&all), None);
        assert_eq!(one_is_wanted(&["a"].into()).unwrap(), "(index $kinds `a`)");
        assert_eq!(
            one_is_wanted(&["a", "b"].into()).unwrap(),
            "(or (index $kinds `a`) (index $kinds `b`))"
        );
    }

    #[test]
    fn nothing_is_left_to_replace_in_the_helper() {
        assert!(!helper().contains('@'), "{}", helper());
    }
}
