//! Custom resource definitions: a definition is a row of the registry, and its schema is the shape of objects.

mod definition;
pub(crate) mod rules;
mod validation;

pub(crate) use self::definition::{
    default, established, prepare_create, resource, terminate, without_effect,
};
pub(crate) use self::validation::{validate, validate_update};
