//! Rules for names and metadata, in the words of a real server.

use kube_schema::validate::{Errors, FieldError, labels_and_annotations};
use serde_json::Value;

/// What is wrong with a name.
pub(crate) type NameRule = fn(&str) -> Option<String>;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                         and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                         validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                          alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
                          regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                         an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                         validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// What is wrong with a DNS label.
pub(crate) fn label(text: &str) -> Option<String> {
    if text.len() > 63 {
        return Some("must be no more than 63 characters".into());
    }
    (!is_label(text)).then(|| LABEL.into())
}

/// What is wrong with a DNS subdomain.
pub(crate) fn subdomain(text: &str) -> Option<String> {
    if text.len() > 253 {
        return Some("must be no more than 253 characters".into());
    }
    (!text.split('.').all(is_label)).then(|| SUBDOMAIN.into())
}

/// What is wrong with the name of a service.
pub(crate) fn label_1035(text: &str) -> Option<String> {
    if text.len() > 63 {
        return Some("must be no more than 63 characters".into());
    }
    let good = is_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase());
    (!good).then(|| LABEL_1035.into())
}

/// What is wrong with a part of a path, the least that any name must be.
pub(crate) fn path_segment(text: &str) -> Option<String> {
    if text == "." || text == ".." {
        return Some(format!("may not be '{text}'"));
    }
    let bad = ['/', '%'].into_iter().find(|bad| text.contains(*bad))?;
    Some(format!("may not contain '{bad}'"))
}

/// How often, and how, a kind validates its metadata: repetitions show in the causes of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetadataRules {
    /// The kind repeats the rules for changes.
    pub(crate) repeats_update: bool,
    /// How often the kind applies the rules for creations to changes.
    pub(crate) repeats_create: u8,
    /// Finalizers without a domain must be standard ones.
    pub(crate) standard_finalizers: bool,
}

/// Checks the metadata of a new object.
pub(crate) fn create(object: &Value, rules: MetadataRules, name_rule: NameRule) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let name = text(metadata, "name");
    let prefix = text(metadata, "generateName");
    if !prefix.is_empty() {
        // trailing dashes are cut by the name that follows
        let probe = format!("{}a", prefix.trim_end_matches('-'));
        if let Some(why) = name_rule(&probe) {
            errors.invalid("metadata.generateName", prefix, &why);
        }
    }
    if name.is_empty() {
        errors.required("metadata.name", "name or generateName is required");
    } else if let Some(why) = name_rule(name) {
        errors.invalid("metadata.name", name, &why);
    }
    errors.0.extend(common(metadata));
    errors.0.extend(finalizer_names(metadata));
    if rules.standard_finalizers {
        errors.0.extend(standard_finalizers(object));
    }
    errors.0
}

/// Checks what a change may do to metadata.
pub(crate) fn update(new: &Value, old: &Value, rules: MetadataRules, name_rule: NameRule) -> Vec<FieldError> {
    // what is stored went through all this
    if new.get("metadata") == old.get("metadata") {
        return Vec::new();
    }
    // the generic path checks for both, with the weakest rule for names
    let mut errors = generic(new);
    let changed = change(new, old);
    errors.extend_from_slice(&changed);
    if rules.repeats_update {
        errors.extend(changed);
        if rules.standard_finalizers {
            errors.extend(standard_finalizers(new));
        }
    }
    for _ in 0..rules.repeats_create {
        errors.extend(create(new, rules, name_rule));
    }
    errors
}

fn generic(object: &Value) -> Vec<FieldError> {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let mut errors = common(metadata);
    errors.extend(finalizer_names(metadata));
    errors
}

fn change(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let (new, old) = (
        new.get("metadata").unwrap_or(&Value::Null),
        old.get("metadata").unwrap_or(&Value::Null),
    );
    if old.get("deletionTimestamp").is_some() {
        let had = strings(old, "finalizers");
        let mut added: Vec<&str> = strings(new, "finalizers");
        added.retain(|one| !had.contains(one));
        added.sort_unstable();
        if !added.is_empty() {
            let list: Vec<String> = added.iter().map(|one| format!("{one:?}")).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                list.join(", ")
            );
            errors.forbidden("metadata.finalizers", &why);
        }
    }
    for name in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let [value, before] = [new, old].map(|one| one.get(name).unwrap_or(&Value::Null));
        if value != before {
            errors.invalid(format!("metadata.{name}"), value.clone(), "field is immutable");
        }
    }
    errors.0.extend(common(new));
    errors.0
}

/// Rules for creations and changes alike.
fn common(metadata: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    // names were checked with the kind's own rule
    errors.0.extend(labels_and_annotations(metadata, "metadata"));
    owners(&mut errors, metadata);
    errors.0
}

/// Finalizers are qualified names.
fn finalizer_names(metadata: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    for finalizer in strings(metadata, "finalizers") {
        let name = finalizer.rsplit('/').next().unwrap_or_default();
        let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        let framed = name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric());
        if !framed || !name.bytes().all(inner) {
            errors.invalid("metadata.finalizers", finalizer, QUALIFIED);
        }
    }
    errors.0
}

/// Finalizers without a domain are those of Kubernetes itself.
fn standard_finalizers(object: &Value) -> Vec<FieldError> {
    const STANDARD: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
    let mut errors = Errors::default();
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    for (index, finalizer) in strings(metadata, "finalizers").into_iter().enumerate() {
        if !finalizer.contains('/') && !STANDARD.contains(&finalizer) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid(format!("metadata.finalizers[{index}]"), finalizer, why);
        }
    }
    errors.0
}

fn owners(errors: &mut Errors, metadata: &Value) {
    const PATH: &str = "metadata.ownerReferences";
    let owners = metadata.get("ownerReferences").and_then(Value::as_array);
    let mut controller: Option<String> = None;
    for owner in owners.into_iter().flatten() {
        let version = text(owner, "apiVersion");
        if version.is_empty() {
            errors.invalid(format!("{PATH}.apiVersion"), version, "version must not be empty");
        }
        for name in ["kind", "name", "uid"] {
            if text(owner, name).is_empty() {
                errors.invalid(format!("{PATH}.{name}"), "", "must not be empty");
            }
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let this = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
            if let Some(first) = &controller {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                );
                errors.invalid(
                    PATH,
                    metadata.get("ownerReferences").cloned().unwrap_or_default(),
                    &why,
                );
            } else {
                controller = Some(this);
            }
        }
    }
}

/// A text member, or empty.
pub(crate) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn strings<'a>(object: &'a Value, name: &str) -> Vec<&'a str> {
    let items = object.get(name).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).collect()
}
