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
    /// Something that the detail says, in the words of somebody else.
    Quoted,
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
            Kind::Quoted => return f.write_str(&self.detail),
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

impl FieldError {
    /// True if the other is the same error, at any index of its lists.
    fn is_as(&self, other: &Self) -> bool {
        (&self.kind, &self.value, &self.detail) == (&other.kind, &other.value, &other.detail)
            && without_indices(&self.path) == without_indices(&other.path)
    }
}

/// A path whose `[n]` are left out; keys of maps, `[key]`, stay.
fn without_indices(path: &str) -> String {
    let mut parts = path.split('[');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            Some((index, rest)) if index.chars().all(|c| c.is_ascii_digit()) => text.push_str(rest),
            _ => {
                text.push('[');
                text.push_str(part);
            }
        }
    }
    text
}

/// The errors that are not among those of the stored object: each of these excuses one like it, even if its item is
/// elsewhere in a list now.
pub fn new_errors(errors: Vec<FieldError>, mut stored: Vec<FieldError>) -> Vec<FieldError> {
    let mut new = errors;
    new.retain(|error| match stored.iter().position(|old| error.is_as(old)) {
        Some(index) => {
            stored.swap_remove(index);
            false
        }
        None => true,
    });
    new
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(paths: &[&str]) -> Vec<FieldError> {
        let mut errors = Errors::default();
        for path in paths {
            errors.required(*path, "");
        }
        errors.0
    }

    fn new(now: &[&str], stored: &[&str]) -> Vec<String> {
        let new = new_errors(errors(now), errors(stored));
        new.into_iter().map(|error| error.path).collect()
    }

    #[test]
    fn an_error_is_known_wherever_its_item_stands_and_as_often_as_it_is_stored() {
        assert!(new(&["a[0].b[12].c", "a"], &["a", "a[3].b[1].c"]).is_empty());
        assert_eq!(new(&["a[0]", "a[1]"], &["a[0]"]), ["a[1]"]);
        assert_eq!(new(&["a[0].b"], &["a[0].c"]), ["a[0].b"]);
        assert_eq!(new(&["m[x/y]"], &["m[z]"]), ["m[x/y]"]);
    }
}
