//! Values of the wrong type, in JSON's words.

use std::fmt;

use serde_json::Value;

/// A value that a server could not read into its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMismatch {
    /// Where, such as `spec.template.spec.containers[0].image`.
    pub path: String,
    /// What the field takes, such as `an integer`.
    pub wanted: &'static str,
    /// What it was given, such as `a string`.
    pub found: &'static str,
}

impl TypeMismatch {
    /// A value where another type is wanted.
    pub fn new(path: impl Into<String>, wanted: &'static str, value: &Value) -> Self {
        let path = path.into();
        let found = type_of(value);
        Self { path, wanted, found }
    }
}

impl fmt::Display for TypeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: must be {}, not {}", self.path, self.wanted, self.found)
    }
}

/// The type of a value, with its article.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if is_whole(number) => "an integer",
        Value::Number(_) => "a number with a fraction",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn is_whole(number: &serde_json::Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// What an integer field takes instead of this value; `None` if the value fits. `is_short`: of 32 bits.
pub(crate) fn integer(value: &Value, is_short: bool) -> Option<(&'static str, &'static str)> {
    let Some(number) = value.as_number().filter(|number| is_whole(number)) else {
        return Some(("an integer", type_of(value)));
    };
    let fits = |number: i64| !is_short || i32::try_from(number).is_ok();
    if number.is_f64() || number.as_i64().is_some_and(fits) {
        return None;
    }
    let wanted = if is_short {
        "an integer of 32 bits"
    } else {
        "an integer of 64 bits"
    };
    Some((wanted, "a longer one"))
}
