//! What a write is about, for those who own fields.

use kube_schema::apply::{FieldSet, Shape};
use kube_schema::table::Table;
use serde_json::{Value, json};

use crate::api::Call;
use crate::object::{at, set_metadata};
use crate::registry::{Metadata, Schema, Subresource};
use crate::route::Route;

/// What a write is about.
pub(super) struct Write<'a> {
    pub(super) shape: Shape<'a>,
    /// Fields that this endpoint leaves alone.
    pub(super) reset: FieldSet,
    pub(super) now: String,
}

/// The subresource of a request.
pub(super) fn endpoint(call: &Call<'_>) -> String {
    // the scale of an object goes on as a write of the object
    match Route::parse(&call.request.path) {
        Route::Objects(target) => target.subresource,
        _ => String::new(),
    }
}

pub(super) fn shape<'a>(call: &'a Call<'_>) -> Shape<'a> {
    match &call.version.schema {
        Schema::Typed(of) => Shape::typed(Table::builtin(), *of),
        Schema::Structural(definition) => {
            at(definition, "/schema/openAPIV3Schema").map_or(Shape::UNKNOWN, Shape::custom)
        }
    }
}

/// An object of the kind in which nothing is set.
pub(super) fn nothing(call: &Call<'_>) -> Value {
    let bare = json!({"apiVersion": call.api_version(), "kind": call.resource.kind.as_ref()});
    match &call.version.schema {
        Schema::Typed(_) => {
            crate::object::shape(bare, &call.version).map_or_else(|_| json!({}), |read| read.value)
        }
        Schema::Structural(_) => bare,
    }
}

/// What a request of this endpoint cannot set.
pub(super) fn reset(call: &Call<'_>) -> FieldSet {
    let resource = &call.resource;
    match call.target.subresource.as_str() {
        "status" => match resource.traits.status_metadata {
            Metadata::Open | Metadata::Closed => FieldSet::of(&[&["spec"]]),
            Metadata::NoLabels => FieldSet::of(&[&["spec"], &["metadata", "labels"]]),
            Metadata::NoOwners => FieldSet::of(&[
                &["spec"],
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ]),
        },
        _ if resource.has(Subresource::Status) => FieldSet::of(&[&["status"]]),
        _ => FieldSet::default(),
    }
}

/// An object without its entries, to be compared and merged.
pub(super) fn bare(object: &Value) -> Value {
    let mut bare = object.clone();
    set_metadata(&mut bare, "managedFields", Value::Null);
    bare
}
