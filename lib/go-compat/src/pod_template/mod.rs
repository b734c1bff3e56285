//! Pod templates and volume claims as Go's typed structs would write them.
//!
//! Revision hashes are taken over what Go writes after reading a template into a struct: empty members vanish, plain
//! structs are always there, quantities are respelled. One table of core/v1 types drives it. Fields the table does
//! not know are kept, where Go would drop them: losing part of a pod is worse than a hash of our own.
//!
//! Canonicalising is idempotent, and so is taking a value that Go wrote.

mod canonical;
mod known;
#[rustfmt::skip]
mod core_v1;
pub mod table;
mod typed;

use serde_json::{Map, Value, json};

use self::core_v1::{CONTAINER, PERSISTENT_VOLUME_CLAIM, POD_TEMPLATE_SPEC, VOLUME};
use self::table::Struct;
use crate::hash::dump_hash;
use crate::json::{Integers, encode};

/// A type of core/v1 that is hashed or compared as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreType {
    /// `Container`.
    Container,
    /// `PersistentVolumeClaim`.
    PersistentVolumeClaim,
    /// `PodTemplateSpec`.
    PodTemplate,
    /// `Volume`.
    Volume,
}

impl CoreType {
    fn shape(self) -> &'static Struct {
        match self {
            Self::Container => &CONTAINER,
            Self::PersistentVolumeClaim => &PERSISTENT_VOLUME_CLAIM,
            Self::PodTemplate => &POD_TEMPLATE_SPEC,
            Self::Volume => &VOLUME,
        }
    }

    /// The value as Go would write it.
    pub fn canonical(self, value: &Value) -> Value {
        self.shape().canonical(value)
    }

    /// The text Go would write, fields in the order of the struct.
    pub fn typed_json(self, value: &Value) -> String {
        self.shape().typed_json(value)
    }
}

/// A pod template as Go would write it: equal for equal meaning, however it was spelled.
pub fn canonical_pod_template(template: &Value) -> Value {
    CoreType::PodTemplate.canonical(template)
}

/// A canonical pod template without the fields that the table does not know: what a program of its types stores of it.
pub fn known_pod_template(template: &Value) -> Value {
    known::of_struct(template, &POD_TEMPLATE_SPEC)
}

/// A volume claim as Go would write it.
pub fn canonical_claim(claim: &Value) -> Value {
    CoreType::PersistentVolumeClaim.canonical(claim)
}

/// Data of the revision of a template: a patch that replaces the template whole. These bytes are hashed.
pub fn revision_data(template: &Value) -> String {
    let mut template = canonical_pod_template(template);
    if let Value::Object(members) = &mut template {
        members.insert("$patch".to_owned(), "replace".into());
    }
    // `json!` would copy the template
    let within = |name: &str, value: Value| Value::Object(Map::from_iter([(name.to_owned(), value)]));
    let data = within("spec", within("template", template));
    encode(&data, Integers::AsFloat)
}

/// Hash of claim templates reduced to name and spec, in the order of their names; empty if there are none.
pub fn claim_templates_hash(claims: &[Value]) -> String {
    if claims.is_empty() {
        return String::new();
    }
    let name = |claim: &&Value| {
        claim
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let mut sorted: Vec<&Value> = claims.iter().collect();
    sorted.sort_by_key(name);
    let texts: Vec<String> = sorted
        .iter()
        .map(|claim| {
            let reduced = json!({"metadata": {"name": name(claim)}, "spec": claim.get("spec")});
            CoreType::PersistentVolumeClaim.typed_json(&reduced)
        })
        .collect();
    dump_hash(&format!("[{}]", texts.join(","))).to_string()
}

#[cfg(test)]
mod tests;
