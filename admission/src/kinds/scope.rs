//! What defaults and rules may depend on besides the object.

use jiff::Timestamp;
use serde_json::Value;

use crate::{Options, workload};

/// A review.
pub struct Scope<'a> {
    /// Kind of the object.
    pub kind: &'static str,
    /// Version of the API the object is written in.
    pub version: &'a str,
    /// Namespace of the object; empty if it is in none.
    pub namespace: &'a str,
    /// Name of the object; empty if it is yet to be generated.
    pub name: &'a str,
    /// The stored object, on UPDATE.
    pub old: Option<&'a Value>,
    /// When the review came in.
    pub now: Timestamp,
    /// Gates and flags.
    pub options: Options,
}

impl Scope<'_> {
    /// Fills in the defaults of the pod template at a JSON pointer if it is new: on CREATE, and on UPDATE when it
    /// differs from the stored one. True if it was.
    pub fn complete_template(&self, object: &mut Value, pointer: &str) -> bool {
        let is_new = self.options.template_defaults
            && self
                .old
                .is_none_or(|old| workload::template_differs(object, old, pointer));
        if is_new && let Some(template) = object.pointer_mut(pointer) {
            workload::complete(template, self.options);
        }
        is_new
    }
}
