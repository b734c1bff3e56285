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

pub(super) mod containers;
pub(super) mod others;
mod spec;

use kruise_plan_kit::sidecars::{Matcher, canary_of, is_native, names::CANARY_BASE};
use kube_schema::validate::{self, Errors};
use serde_json::Value;

use crate::json::{items, text};

const NAME_LENGTH: usize = 63;

/// Everything that needs no other object.
pub(super) fn rules(errors: &mut Errors, set: &Value) {
    let metadata = set.get("metadata").unwrap_or(&Value::Null);
    errors.0.extend(validate::metadata(metadata, "metadata"));
    let name = text(metadata, "name");
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if name.len() > NAME_LENGTH || !is_plain {
        let detail = "must be at most 63 letters, digits and dashes";
        errors.invalid("metadata.name", name, detail);
    }
    let spec = set.get("spec").unwrap_or(&Value::Null);
    if let Some(base) = canary_of(set) {
        canary(errors, base, name, spec);
    }
    let native = items(spec, "initContainers").iter().any(is_native);
    let update = spec.get("updateStrategy").unwrap_or(&Value::Null);
    if native && text(update, "type") == "RollingUpdate" {
        let detail = "init containers that keep running cannot be upgraded in place: use NotUpdate";
        errors.forbidden("spec.updateStrategy.type", detail);
    }
    spec::check(errors, spec, &Matcher::of(set));
    containers::check(errors, spec);
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
pub(super) fn changes(errors: &mut Errors, new: &Value, old: &Value) {
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
