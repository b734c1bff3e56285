//! What becomes of a request.

use serde_json::Value;

use crate::patch;

/// What the API server receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// Let the request pass.
    Allow {
        /// JSON Patch to apply first, as it is sent; never an empty one.
        patch: Option<String>,
        /// Texts shown to the client.
        warnings: Vec<String>,
    },
    /// Turn the request down.
    Deny {
        /// HTTP status code for the client.
        code: u16,
        /// A word for programs, as in the field `reason` of a `Status`.
        reason: Option<Reason>,
        /// Why.
        message: String,
    },
}

/// Why a request is turned down, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A budget refuses it.
    Forbidden,
    /// It is to be tried again.
    TooManyRequests,
}

impl Reason {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "Forbidden",
            Self::TooManyRequests => "TooManyRequests",
        }
    }
}

impl Response {
    /// Let the request pass as it is.
    pub const ALLOW: Self = Self::Allow {
        patch: None,
        warnings: Vec::new(),
    };

    /// Let the request pass with the object changed from `before` to `after`; as it is if both are equal.
    pub(crate) fn patched(before: &Value, after: &Value, warnings: Vec<String>) -> Self {
        let operations = patch::between(before, after);
        let patch = (!operations.is_empty()).then(|| Value::from(operations).to_string());
        Self::Allow { patch, warnings }
    }

    /// Turn the request down without a reason for programs.
    pub fn denied(code: u16, message: impl Into<String>) -> Self {
        Self::Deny {
            code,
            reason: None,
            message: message.into(),
        }
    }

    /// The object cannot be read: 400.
    pub(crate) fn undecodable(reason: impl std::fmt::Display) -> Self {
        Self::denied(400, format!("cannot decode the object: {reason}"))
    }
}

#[cfg(test)]
impl Response {
    /// The object as this response changes it.
    pub(crate) fn applied_to(&self, object: &Value) -> Value {
        let patch = match self {
            Self::Allow { patch, .. } => patch,
            Self::Deny { message, .. } => panic!("denied: {message}"),
        };
        let mut after = object.clone();
        if let Some(patch) = patch {
            let patch: json_patch::Patch = serde_json::from_str(patch).unwrap();
            assert!(!patch.is_empty(), "an empty patch is sent");
            json_patch::patch(&mut after, &patch).unwrap();
        }
        after
    }
}
