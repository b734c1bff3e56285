//! What an UPDATE must leave alone.

use kube_schema::validate::{Errors, FieldError};
use serde_json::Value;

use crate::cloneset::version::{Version, member};
use crate::{Options, workload};

/// Compares the new object with the stored one.
pub(super) fn errors(version: Version, new: &Value, old: &Value, options: Options) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let (Some(new), Some(old)) = (member(new, "spec"), member(old, "spec")) else {
        return errors.0;
    };
    workload::same_selector(&mut errors, new, old);
    if version.policy(new) == "InPlaceOnly" {
        workload::changes_in_place(&mut errors, new, old, options);
    }
    errors.0
}
