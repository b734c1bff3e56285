//! Pod templates, as the API server judges them.
//!
//! The table of [`workload::template`](crate::workload::template) is finite, and a template that passes it may
//! still be one that no pod can have. A rollout would delete pods that it cannot replace. So the server is asked:
//! by the creation of a `PodTemplate` as a dry run ([`Lookup::PodTemplate`](crate::lookup::Lookup::PodTemplate)),
//! one request for a template that is new. What it finds wrong is refused at the place where the object has the
//! template. If it says nothing, the table has decided.
//!
//! What is stored stays writable: on UPDATE only a template that changed is asked about. If it is refused, the
//! stored one is asked about, too, and what is wrong with that is excused.

use go_compat::pod_template::canonical_pod_template;
use kube_schema::validate::{self, Errors, FieldError, Kind};
use serde_json::{Value, json};

use super::Scope;
use crate::json::{items, text};
use crate::lookup::{Cause, Reader};

/// A pod template of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Which one of the object's: the same in its stored version.
    key: String,
    /// Where the object has it, such as `spec.template`.
    path: String,
    /// The template, with the volumes of its claims.
    pub(super) content: Value,
}

impl Template {
    /// A template at this place, whose pods have the volumes of these claims.
    pub fn new(path: impl Into<String>, template: &Value, claims: &[Value]) -> Self {
        let path = path.into();
        Self {
            key: path.clone(),
            path,
            content: with_volumes(template, claims),
        }
    }

    /// As a part of the object of this name makes it, which is at this place now.
    #[must_use]
    pub fn at(&self, path: String, part: &str, content: Value) -> Self {
        Self {
            key: format!("{} of {part}", self.key),
            path,
            content,
        }
    }

    /// Where the object has the field of a cause.
    fn error(&self, cause: &Cause) -> FieldError {
        let dot = if cause.field.is_empty() || self.path.is_empty() {
            ""
        } else {
            "."
        };
        FieldError {
            path: format!("{}{dot}{}", self.path, cause.field),
            kind: Kind::Quoted,
            value: Value::Null,
            detail: cause.message.clone(),
        }
    }
}

/// The template at a dotted path, with the claim templates beside it; none if there is none.
pub fn at(object: &Value, path: &str) -> Option<Template> {
    let (beside, name) = path.rsplit_once('.')?;
    let beside = object.pointer(&format!("/{}", beside.replace('.', "/")))?;
    let template = beside.get(name).filter(|template| template.is_object())?;
    Some(Template::new(
        path,
        template,
        items(beside, "volumeClaimTemplates"),
    ))
}

/// The template of a workload.
pub fn of_workload(object: &Value) -> Vec<Template> {
    at(object, "spec.template").into_iter().collect()
}

/// Claims are volumes of their pods, in the place of volumes of the same name.
fn with_volumes(template: &Value, claims: &[Value]) -> Value {
    let mut template = template.clone();
    if claims.is_empty() {
        return template;
    }
    let name = |claim: &Value| {
        claim
            .get("metadata")
            .map(|metadata| text(metadata, "name").to_owned())
    };
    let names: Vec<String> = claims.iter().filter_map(name).collect();
    let own = template.pointer("/spec/volumes").and_then(Value::as_array);
    let own = own.into_iter().flatten();
    let kept = own.filter(|volume| !names.iter().any(|name| name == text(volume, "name")));
    let mut volumes: Vec<Value> = kept.cloned().collect();
    let claimed = |name: &String| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
    volumes.extend(names.iter().map(claimed));
    if let Some(Value::Object(spec)) = template.get_mut("spec") {
        spec.insert("volumes".to_owned(), volumes.into());
    }
    template
}

/// Adds what the server finds wrong with templates that are new. `stored` finds those of the stored object.
pub(super) fn check(
    errors: &mut Errors,
    templates: Vec<Template>,
    scope: &Scope<'_>,
    stored: fn(&Value) -> Vec<Template>,
    reader: &mut Reader<'_>,
) {
    let old = scope.old.map(stored).unwrap_or_default();
    for template in templates {
        // What is wrong with a template would be found in all that are made of it.
        if !errors.0.is_empty() || !reader.is_complete() {
            return;
        }
        let before = old.iter().find(|one| one.key == template.key);
        let means = |one: &Template| canonical_pod_template(&one.content);
        if before.is_some_and(|before| means(before) == means(&template)) {
            continue;
        }
        let Some(causes @ [_, ..]) = reader.causes(scope.namespace, &template.content) else {
            continue;
        };
        let wrong: Vec<FieldError> = causes.iter().map(|cause| template.error(cause)).collect();
        let Some(before) = before else {
            errors.0.extend(wrong);
            continue;
        };
        let Some(excused) = reader.causes(scope.namespace, &before.content) else {
            continue;
        };
        // In its place: that of an item of a list may be another one now.
        let excused = excused.iter().map(|cause| template.error(cause)).collect();
        errors.0.extend(validate::new_errors(wrong, excused));
    }
}

#[cfg(test)]
mod tests;
