//! Errors about a field, worded as Kubernetes words them.

use std::fmt;

use serde_json::Value;

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The value occurs twice.
    Duplicate,
    /// The field must not be set.
    Forbidden,
    /// The value breaks a rule, which the detail names.
    Invalid,
    /// The value refers to something that is not there.
    NotFound,
    /// The value is none of these.
    NotSupported(&'static [&'static str]),
    /// The value is missing.
    Required,
    /// The text has more than this many characters.
    TooLong(u64),
    /// The list or map holds more than this many items.
    TooMany(u64),
    /// The value is of the wrong JSON type.
    TypeInvalid,
}

/// One thing wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Where, such as `spec.template.spec.containers[0].image`.
    pub path: String,
    /// What.
    pub kind: Kind,
    /// The offending value; `null` where the kind has none.
    pub value: Value,
    /// Why, if the kind does not say it all.
    pub detail: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path)?;
        match &self.kind {
            Kind::Required => f.write_str("Required value")?,
            Kind::Forbidden => f.write_str("Forbidden")?,
            Kind::Duplicate => write!(f, "Duplicate value: {}", self.value)?,
            Kind::TooLong(most) => write!(f, "Too long: may not be more than {most} bytes")?,
            Kind::TooMany(most) => {
                write!(f, "Too many: {}: must have at most {most} items", self.value)?;
            }
            Kind::Invalid | Kind::TypeInvalid => write!(f, "Invalid value: {}", self.value)?,
            Kind::NotFound => write!(f, "Not found: {}", self.value)?,
            // the detail lists values that are not known before run time
            Kind::NotSupported([]) => write!(f, "Unsupported value: {}", self.value)?,
            Kind::NotSupported(values) => {
                let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
                write!(
                    f,
                    "Unsupported value: {}: supported values: {}",
                    self.value,
                    values.join(", ")
                )?;
            }
        }
        if self.detail.is_empty() {
            Ok(())
        } else {
            write!(f, ": {}", self.detail)
        }
    }
}

impl std::error::Error for FieldError {}

/// Several errors as one text: `[a, b]`, or just `a`; repetitions left out.
pub fn aggregate(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in errors.iter().map(ToString::to_string) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if texts.len() == 1 {
        texts.concat()
    } else {
        format!("[{}]", texts.join(", "))
    }
}

/// Errors found so far.
#[derive(Debug, Default)]
pub struct Errors(pub Vec<FieldError>);

impl Errors {
    /// Any error.
    pub fn add(&mut self, path: impl Into<String>, kind: Kind, value: impl Into<Value>, detail: &str) {
        self.0.push(FieldError {
            path: path.into(),
            kind,
            value: value.into(),
            detail: detail.to_owned(),
        });
    }

    /// The value is missing.
    pub fn required(&mut self, path: impl Into<String>, detail: &str) {
        self.add(path, Kind::Required, Value::Null, detail);
    }

    /// The field must not be set, or not that way.
    pub fn forbidden(&mut self, path: impl Into<String>, detail: &str) {
        self.add(path, Kind::Forbidden, Value::Null, detail);
    }

    /// The value breaks a rule.
    pub fn invalid(&mut self, path: impl Into<String>, value: impl Into<Value>, detail: &str) {
        self.add(path, Kind::Invalid, value, detail);
    }

    /// Refuses values other than these; an absent or empty one is left to defaulting.
    pub fn one_of(&mut self, path: impl Into<String>, value: &str, supported: &'static [&'static str]) {
        if !value.is_empty() && !supported.contains(&value) {
            self.add(path, Kind::NotSupported(supported), value, "");
        }
    }
}
