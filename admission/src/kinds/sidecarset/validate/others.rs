//! Rules about other objects: sets for the same pods, the base of a canary, the revision to inject, and who may patch
//! which annotations.

use std::collections::BTreeSet;

use kruise_api::meta::{LabelRequirement, LabelSelector, null_as_default};
use kruise_api::sidecarset::RESOURCE;
use kruise_plan_kit::sidecars::{
    Matcher, canary_of,
    names::{CANARY_BASE, SET_NAME},
};
use kube_schema::validate::{Errors, FieldError, new_errors};
use regex_lite::Regex;
use serde::Deserialize;
use serde_json::Value;

use crate::Options;
use crate::json::{items, text};
use crate::kinds::Scope;
use crate::lookup::{CONFIGURATION, Lookup, ObjectName, Read, Reader};
use crate::pod::sidecars::{Set, Sets, noted_sets};

/// Which annotations SidecarSets may patch, as an administrator wrote it.
pub(super) const WHITELIST: &str = kruise_api::names::sidecarset::PATCH_WHITELIST;

/// Refuses a set that others are in the way of, or that refers to what does not exist. On UPDATE it may stay in the
/// way.
pub(in crate::kinds::sidecarset) fn check(
    errors: &mut Errors,
    set: &Value,
    scope: &Scope<'_>,
    reader: &mut Reader<'_>,
) {
    let mut found = errors_of(set, scope.options, reader);
    if let (false, Some(old)) = (found.is_empty(), scope.old) {
        found = new_errors(found, errors_of(old, scope.options, reader));
    }
    errors.0.extend(found);
}

/// What is wrong with a set among others, as far as they are known.
fn errors_of(set: &Value, options: Options, reader: &mut Reader<'_>) -> Vec<FieldError> {
    let this = Set::new(std::sync::Arc::new(set.clone()));
    let mut errors = Errors(Vec::new());
    if let Some(sets) = noted_sets(reader) {
        base(&mut errors, set, sets, reader);
        conflicts(&mut errors, &this, sets, |one, two| {
            overlap(one, two, Presence::Excludes)
        });
    }
    if let Some(wanted) = &this.revision {
        let detail = match reader.object(wanted.lookup()) {
            Read::NotFound => Some(format!("{wanted} is not found")),
            Read::Found(revision) if !is_revision_of(revision, &this.name) => {
                Some(format!("{wanted} is none of this SidecarSet"))
            }
            Read::Found(_) | Read::Missing => None,
        };
        if let Some(detail) = detail {
            errors.invalid("spec.injectionStrategy.revision", wanted.to_string(), &detail);
        }
    }
    if !items(this.spec(), "patchPodMetadata").is_empty() {
        match reader.setting(WHITELIST) {
            Read::Found(text) => permissions(&mut errors, set, Some(text), options),
            Read::NotFound => permissions(&mut errors, set, None, options),
            Read::Missing => {}
        }
    }
    errors.0
}

fn is_revision_of(revision: &Value, set: &str) -> bool {
    let labels = revision.pointer("/metadata/labels").unwrap_or(&Value::Null);
    text(labels, SET_NAME) == set
}

/// The base of a canary is a set, and no canary itself. It may have been made just before.
fn base(errors: &mut Errors, set: &Value, sets: &Sets, reader: &mut Reader<'_>) {
    let path = format!("metadata.annotations[{CANARY_BASE}]");
    let Some(base) = canary_of(set) else {
        return;
    };
    let is_canary = match sets.iter().find(|other| other.name == base) {
        Some(other) => Some(other.base.is_some()),
        None => match reader.object(Lookup::Live(RESOURCE, ObjectName::new("", base))) {
            Read::Found(found) => Some(canary_of(found).is_some()),
            Read::NotFound => None,
            Read::Missing => return,
        },
    };
    match is_canary {
        None => errors.invalid(path, base, "there is no such SidecarSet"),
        Some(true) => errors.invalid(path, base, "is a canary itself"),
        Some(false) => {}
    }
}

/// Two sets for one pod cannot have containers of one name, different volumes of one name, or overwrite the same
/// annotation. A canary and its base never meet in a pod.
fn conflicts(errors: &mut Errors, this: &Set, sets: &Sets, meet: impl Fn(&Matcher, &Matcher) -> bool) {
    for other in sets.iter().filter(|other| other.name != this.name) {
        let are_pair = [(this, &**other), (&**other, this)]
            .iter()
            .any(|(canary, base)| canary.base.as_deref() == Some(&base.name));
        if !are_pair && meet(&this.matcher, &other.matcher) {
            clashes(errors, this, other);
        }
    }
}

/// What an author is warned of: sets that are taken to be for other pods, though a pod may well match both, and
/// could not have both. OpenKruise stores them.
pub(in crate::kinds::sidecarset) fn warnings(set: &Value, reader: &mut Reader<'_>) -> Vec<String> {
    let Some(sets) = noted_sets(reader) else {
        return Vec::new();
    };
    let this = Set::new(std::sync::Arc::new(set.clone()));
    let mut errors = Errors(Vec::new());
    conflicts(&mut errors, &this, sets, |one, two| {
        overlap(one, two, Presence::Open) && !overlap(one, two, Presence::Excludes)
    });
    let warnings = errors.0.iter().map(|error| {
        format!(
            "{error} (both selectors match a pod that has the label whose presence only one of them asks for)"
        )
    });
    warnings.collect()
}

/// What both sets have, and a pod can have only once.
fn clashes(errors: &mut Errors, this: &Set, other: &Set) {
    let with = format!(
        "SidecarSet {} is for some of the same pods and has it too",
        other.name
    );
    for list in ["containers", "initContainers"] {
        for (index, one) in items(this.spec(), list).iter().enumerate() {
            let name = text(one, "name");
            if items(other.spec(), list)
                .iter()
                .any(|two| text(two, "name") == name)
            {
                errors.invalid(format!("spec.{list}[{index}].name"), name, &with);
            }
        }
    }
    for (index, one) in items(this.spec(), "volumes").iter().enumerate() {
        let name = text(one, "name");
        let differs = |two: &&Value| text(two, "name") == name && *two != one;
        if items(other.spec(), "volumes").iter().any(|two| differs(&two)) {
            let detail = format!("{with}, with another definition");
            errors.invalid(format!("spec.volumes[{index}].name"), name, &detail);
        }
    }
    let theirs: Vec<(&str, &str)> = patched(other.spec())
        .map(|(_, key, policy)| (key, policy))
        .collect();
    for (index, key, policy) in patched(this.spec()) {
        let clash = |(other_key, other_policy): &(&str, &str)| {
            *other_key == key && (policy == "Overwrite" || *other_policy == "Overwrite")
        };
        if theirs.iter().any(clash) {
            let path = format!("spec.patchPodMetadata[{index}].annotations");
            errors.invalid(path, key, &format!("{with}, and one of them overwrites it"));
        }
    }
}

/// Annotations that are patched, but for those that are only added where they are absent: index, key, policy.
fn patched(spec: &Value) -> impl Iterator<Item = (usize, &str, &str)> {
    let patches = items(spec, "patchPodMetadata").iter().enumerate();
    patches
        .filter(|(_, patch)| text(patch, "patchPolicy") != "Retain")
        .flat_map(|(index, patch)| keys(patch).map(move |key| (index, key, text(patch, "patchPolicy"))))
}

fn keys(patch: &Value) -> impl Iterator<Item = &str> {
    let annotations = patch.get("annotations").and_then(Value::as_object);
    annotations.into_iter().flatten().map(|(key, _)| key.as_str())
}

#[derive(Deserialize)]
struct Whitelist {
    #[serde(default, deserialize_with = "null_as_default")]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    selector: Option<LabelSelector>,
    #[serde(default, deserialize_with = "null_as_default")]
    allowed_annotation_key_exprs: Vec<String>,
}

/// Each annotation that is patched must match an expression that this set may use.
fn permissions(errors: &mut Errors, set: &Value, whitelist: Option<&str>, options: Options) {
    let expressions = match whitelist.map_or(Ok(Vec::new()), |text| expressions(set, text)) {
        Ok(expressions) => expressions,
        Err(why) => {
            let detail = format!("the whitelist in {CONFIGURATION} cannot be read: {why}");
            errors.forbidden("spec.patchPodMetadata", &detail);
            return;
        }
    };
    if expressions.is_empty() && options.patch_metadata_by_default {
        return;
    }
    let spec = set.get("spec").unwrap_or(&Value::Null);
    for (index, patch) in items(spec, "patchPodMetadata").iter().enumerate() {
        for key in keys(patch).filter(|key| !expressions.iter().any(|one| one.is_match(key))) {
            let path = format!("spec.patchPodMetadata[{index}].annotations[{key}]");
            errors.forbidden(
                path,
                &format!("no rule of the whitelist in {CONFIGURATION} allows it"),
            );
        }
    }
}

/// The expressions of the rules that are about a set.
fn expressions(set: &Value, whitelist: &str) -> Result<Vec<Regex>, String> {
    let whitelist: Whitelist = serde_json::from_str(whitelist).map_err(|error| error.to_string())?;
    let labels = set.pointer("/metadata/labels");
    let label = |key: &str| labels.and_then(|labels| labels.get(key)?.as_str());
    let rules = whitelist.rules.iter().filter(|rule| {
        let selector = rule.selector.as_ref();
        selector.is_none_or(|selector| selector.matches_by(label))
    });
    rules
        .flat_map(|rule| &rule.allowed_annotation_key_exprs)
        .map(|text| Regex::new(text).map_err(|error| format!("{text:?}: {error}")))
        .collect()
}

/// Might both be for one pod?
fn overlap(one: &Matcher, two: &Matcher, presence: Presence) -> bool {
    let namespaces = match (&one.namespaces, &two.namespaces) {
        (Some(one), Some(two)) => selectors_overlap(one, two, presence),
        _ => true,
    };
    namespaces && selectors_overlap(&one.pods, &two.pods, presence)
}

/// What a selector for the presence of a label is to one that does not name the label.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// Disjoint: as in OpenKruise, which is not exact.
    Excludes,
    /// Neither here nor there: as it is.
    Open,
}

fn selectors_overlap(one: &LabelSelector, two: &LabelSelector, presence: Presence) -> bool {
    !disjoint(one, two, presence) && !disjoint(two, one, presence)
}

/// Is it certain that no labels match both?
fn disjoint(one: &LabelSelector, two: &LabelSelector, presence: Presence) -> bool {
    let two_equal = two.match_labels.iter().any(|(key, value)| match given(one, key) {
        Some(Given::Values(values)) => !values.contains(value.as_str()),
        _ => false,
    });
    two_equal
        || two
            .match_expressions
            .iter()
            .any(|requirement| excludes(one, requirement, presence))
}

fn excludes(one: &LabelSelector, requirement: &LabelRequirement, presence: Presence) -> bool {
    let listed: BTreeSet<&str> = requirement.values.iter().map(String::as_str).collect();
    match (requirement.operator.as_str(), given(one, &requirement.key)) {
        ("In", Some(Given::Values(values))) => values.is_disjoint(&listed),
        ("NotIn", Some(Given::Values(values))) => values.is_subset(&listed),
        ("Exists", None) => presence == Presence::Excludes,
        ("DoesNotExist", Some(_)) => true,
        _ => false,
    }
}

/// What a selector asks a label to be.
enum Given<'a> {
    Any,
    Values(BTreeSet<&'a str>),
}

fn given<'a>(selector: &'a LabelSelector, key: &str) -> Option<Given<'a>> {
    let equal = selector.match_labels.get(key).map(String::as_str);
    let of_key = || selector.match_expressions.iter().filter(|one| one.key == key);
    let listed = of_key()
        .filter(|one| one.operator == "In")
        .flat_map(|one| &one.values);
    let values: BTreeSet<&str> = equal.into_iter().chain(listed.map(String::as_str)).collect();
    if of_key().any(|one| one.operator == "Exists") {
        Some(Given::Any)
    } else if equal.is_some() || of_key().any(|one| one.operator == "In") {
        Some(Given::Values(values))
    } else {
        None
    }
}
