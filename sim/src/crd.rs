//! Custom resource definitions: a definition is a row of the registry, and its schema is what objects look like.

mod definition;

pub(crate) use self::definition::{default, established, prepare_create, resource, validate};
