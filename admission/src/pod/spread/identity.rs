//! By what its workload knows a pod. A patch that changes it makes a pod that its workload lets go at once, and
//! replaces by the next one, without end.

use kruise_api::meta::LabelSelector;
use kruise_views::Labels;
use serde::Deserialize as _;
use serde_json::Value;

use super::super::draft::{controller, labels};
use super::super::step::Context;
use crate::lookup::Lookup;

/// By what the owner of a pod knows it.
pub(super) struct Identity {
    labels: Labels,
    fixed: [Value; 2],
}

/// What no patch may change.
const FIXED: [&str; 2] = ["name", "ownerReferences"];

impl Identity {
    /// Of a pod before its patch.
    pub(super) fn of(pod: &Value) -> Self {
        Self {
            labels: labels(pod),
            fixed: FIXED.map(|name| metadata(pod, name)),
        }
    }

    /// Why the owner of the patched pod would let it go; `None` if it keeps it. The owner is looked up only if a
    /// label has changed that the pod had before: hardly a selector names a label that is not there.
    pub(super) fn lost(&self, pod: &Value, context: &Context<'_>) -> Result<Option<String>, Lookup> {
        for (name, before) in FIXED.iter().zip(&self.fixed) {
            if metadata(pod, name) != *before {
                return Ok(Some(format!("metadata.{name} cannot be changed")));
            }
        }
        let now = labels(pod);
        let is_changed = |(key, value): (&str, &str)| now.get(key) != Some(value);
        let Some(owner) = controller(pod).filter(|_| self.labels.iter().any(is_changed)) else {
            return Ok(None);
        };
        let (kind, name) = (owner.kind.clone(), owner.name.clone());
        let object = context.lookups.object(Lookup::Workload {
            namespace: context.request.namespace.clone(),
            workload: owner,
        })?;
        let selector = object.and_then(|object| object.pointer("/spec/selector"));
        let selector = selector.and_then(|selector| LabelSelector::deserialize(selector).ok());
        let is_lost = selector.is_some_and(|selector| {
            selector.matches_by(|key| self.labels.get(key)) && !selector.matches_by(|key| now.get(key))
        });
        Ok(is_lost.then(|| {
            let changed: Vec<&str> = self
                .labels
                .iter()
                .filter(|pair| is_changed(*pair))
                .map(|(key, _)| key)
                .collect();
            format!(
                "it changes the label {}, and the selector of {kind} {name} no longer matches the pod",
                changed.join(", ")
            )
        }))
    }
}

fn metadata(pod: &Value, name: &str) -> Value {
    let value = pod.get("metadata").and_then(|metadata| metadata.get(name));
    value.cloned().unwrap_or_default()
}
