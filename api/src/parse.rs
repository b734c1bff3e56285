//! Kinds whose objects are parsed whole.

use std::sync::Arc;

use serde_json::Value;

/// A kind whose objects are parsed whole.
pub trait Parse: Sized {
    /// The object in the version of plans, or why it cannot be parsed.
    fn parse(object: Value) -> Result<Self, String>;
}

impl<T: Parse> Parse for Arc<T> {
    fn parse(object: Value) -> Result<Self, String> {
        T::parse(object).map(Self::new)
    }
}
