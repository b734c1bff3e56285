//! Which pods a set is for.

use kruise_api::meta::{LabelRequirement, LabelSelector};
use serde::Deserialize;
use serde_json::Value;

use super::{
    fields::{annotation, text},
    names,
};

/// Decides whether pods and namespaces match a set. A selector that cannot be read matches nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matcher {
    /// Of pods. An empty one matches none.
    pub pods: LabelSelector,
    /// Of namespaces; without one, all of them.
    pub namespaces: Option<LabelSelector>,
}

impl Matcher {
    /// The selectors of a set of either version: `spec.namespace` of `v1alpha1` means a selector by name, and
    /// wins over one.
    pub fn of(set: &Value) -> Self {
        let spec = set.get("spec").unwrap_or(&Value::Null);
        let given = |name: &str| spec.get(name).filter(|selector| !selector.is_null());
        let pinned = text(spec, "/namespace");
        let namespaces = if pinned.is_empty() {
            given("namespaceSelector").map(read)
        } else {
            let by_name = (names::NAMESPACE_NAME.to_owned(), pinned.to_owned());
            Some(LabelSelector {
                match_labels: [by_name].into(),
                match_expressions: Vec::new(),
            })
        };
        Self {
            pods: given("selector").map(read).unwrap_or_default(),
            namespaces,
        }
    }

    /// Do these labels, of a pod, match?
    pub fn matches_pod<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.pods.is_empty() && self.pods.matches_by(value_of)
    }

    /// Does the set select by namespace?
    pub fn needs_namespace(&self) -> bool {
        self.namespaces.is_some()
    }

    /// Do these labels, of a namespace, match?
    pub fn matches_namespace<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.namespaces
            .as_ref()
            .is_none_or(|selector| selector.matches_by(value_of))
    }
}

fn read(selector: &Value) -> LabelSelector {
    LabelSelector::deserialize(selector).unwrap_or_else(|_| nothing())
}

/// A selector that nothing matches: no label has a value out of an empty list.
fn nothing() -> LabelSelector {
    let never = LabelRequirement {
        key: names::NAMESPACE_NAME.to_owned(),
        operator: "In".to_owned(),
        values: Vec::new(),
    };
    LabelSelector {
        match_labels: [].into(),
        match_expressions: vec![never],
    }
}

/// The set this one is a canary of. A pod that matches both gets the canary only.
pub fn canary_of(set: &Value) -> Option<&str> {
    let base = annotation(set, names::CANARY_BASE);
    (annotation(set, names::CANARY) == "true" && !base.is_empty()).then_some(base)
}

/// The version its author gave the set: a field in `v1beta1`, a label in `v1alpha1`. Empty if none.
pub fn custom_version(set: &Value) -> &str {
    let field = text(set, "/spec/customVersion");
    if !field.is_empty() {
        return field;
    }
    let labels = set.pointer("/metadata/labels");
    labels
        .and_then(|labels| labels.get(names::CUSTOM_VERSION)?.as_str())
        .unwrap_or_default()
}
