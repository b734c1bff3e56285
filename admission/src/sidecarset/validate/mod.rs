//! What a SidecarSet must satisfy to be stored.
//!
//! | Fields | Rule | Where |
//! |---|---|---|
//! | `metadata` | well formed; the name is letters, digits and dashes | here |
//! | canary annotations | base is another set and stays; such a set upgrades nothing | here |
//! | `spec.selector`, `namespaceSelector` | valid, not empty | [`spec`] |
//! | `spec.injectionStrategy.revision` | names a revision; a known policy | [`spec`] |
//! | `spec.updateStrategy` | if it is rolling: ranges; no partition beside a selector | [`spec`] |
//! | `spec.containers`, `initContainers`, `volumes` | could become part of a pod; own fields make sense | [`containers`] |
//! | `spec.patchPodMetadata` | annotations are named, each once | [`containers`] |
//! | all of these | no other set for the same pods is in the way; base and revision exist; annotations are allowed | [`others`] |
//! | UPDATE | no container is added; how one is upgraded stays | here |
//!
//! Rules about other objects come last, once the others are kept: they need lookups.
//!
//! **What is stored stays writable.** On UPDATE a rule that the stored object breaks in the same way is not held
//! against the new one.

mod containers;
mod others;
mod spec;

use kruise_plan_kit::sidecars::{Matcher, canary_of, is_native, names::CANARY_BASE};
use kube_schema::validate::{self, Errors, FieldError};
use serde_json::Value;

use super::{items, text};
use crate::pod::{Known, Outcome};
use crate::{Answer, Operation, Options, Request};

const NAME_LENGTH: usize = 63;

/// Checks a SidecarSet about to be stored.
pub fn validate(request: &Request, options: Options, known: &Known) -> Outcome {
    if !request.sub_resource.is_empty() || !matches!(request.operation, Operation::Create | Operation::Update)
    {
        return Outcome::Answer(Answer::ALLOW);
    }
    if let Err(answer) = super::known(request) {
        return Outcome::Answer(answer);
    }
    let (new, old) = (&request.object, &request.old_object);
    let is_update = request.operation == Operation::Update;
    let mut errors = errors_of(new);
    if is_update {
        let mut found = Errors(validate::new_errors(errors, errors_of(old)));
        changes(&mut found, new, old);
        errors = found.0;
    }
    if !errors.is_empty() {
        return Outcome::Answer(verdict(new, &errors));
    }
    let mut found = others::errors_of(new, options, known);
    if is_update && found.as_ref().is_ok_and(|errors| !errors.is_empty()) {
        let stored = others::errors_of(old, options, known);
        found = found.and_then(|errors| Ok(validate::new_errors(errors, stored?)));
    }
    match found {
        Ok(errors) if errors.is_empty() => Outcome::Answer(Answer::Allow {
            patch: None,
            warnings: others::warnings(new, known),
        }),
        Ok(errors) => Outcome::Answer(verdict(new, &errors)),
        Err(needs) => Outcome::Needs(needs),
    }
}

fn verdict(new: &Value, errors: &[FieldError]) -> Answer {
    if errors.is_empty() {
        return Answer::ALLOW;
    }
    let name = new
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Answer::Deny {
        code: 422,
        message: format!(
            "SidecarSet.apps.kruise.io {name:?} is invalid: {}",
            validate::aggregate(errors)
        ),
    }
}

fn errors_of(set: &Value) -> Vec<FieldError> {
    let null = Value::Null;
    let metadata = set.get("metadata").unwrap_or(&null);
    let mut errors = Errors(validate::metadata(metadata, "metadata"));
    let name = text(metadata, "name");
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if name.len() > NAME_LENGTH || !is_plain {
        errors.invalid(
            "metadata.name",
            name,
            "must be at most 63 letters, digits and dashes",
        );
    }
    let spec = set.get("spec").unwrap_or(&null);
    if let Some(base) = canary_of(set) {
        canary(&mut errors, base, name, spec);
    }
    let native = items(spec, "initContainers").iter().any(is_native);
    let update = spec.get("updateStrategy").unwrap_or(&null);
    if native && text(update, "type") == "RollingUpdate" {
        let detail = "init containers that keep running cannot be upgraded in place: use NotUpdate";
        errors.forbidden("spec.updateStrategy.type", detail);
    }
    spec::check(&mut errors, spec, &Matcher::of(set));
    containers::check(&mut errors, spec);
    errors.0
}

fn canary(errors: &mut Errors, base: &str, name: &str, spec: &Value) {
    let path = format!("metadata.annotations[{CANARY_BASE}]");
    if base == name {
        errors.invalid(&path, base, "a set cannot be a canary of itself");
    }
    let update = spec.get("updateStrategy").unwrap_or(&Value::Null);
    if text(update, "type") != "NotUpdate" {
        let detail = "a canary upgrades no pods: use NotUpdate";
        errors.invalid("spec.updateStrategy.type", text(update, "type"), detail);
    }
}

/// What may not change.
fn changes(errors: &mut Errors, new: &Value, old: &Value) {
    if let (Some(is), Some(was)) = (canary_of(new), canary_of(old))
        && is != was
    {
        let path = format!("metadata.annotations[{CANARY_BASE}]");
        errors.forbidden(path, "the base of a canary cannot be changed");
    }
    let null = Value::Null;
    let (new, old) = (new.get("spec").unwrap_or(&null), old.get("spec").unwrap_or(&null));
    for (index, container) in items(new, "containers").iter().enumerate() {
        let path = format!("spec.containers[{index}]");
        let name = text(container, "name");
        let Some(before) = items(old, "containers")
            .iter()
            .find(|one| text(one, "name") == name)
        else {
            let detail = format!(
                "container {name:?} is not found in the stored set: containers can be removed but not added, because \
                 pods that are already injected could not get them"
            );
            errors.forbidden(path, &detail);
            continue;
        };
        let kind = |one: &Value| {
            one.pointer("/upgradeStrategy/upgradeType")
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let before = kind(before).filter(|kind| !kind.is_empty());
        if before.is_some() && kind(container) != before {
            errors.forbidden(format!("{path}.upgradeStrategy.upgradeType"), "cannot be changed");
        }
    }
}

#[cfg(test)]
mod tests;
