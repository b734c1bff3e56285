//! Steps as the families make them, and as they are written down.

use serde_json::{Value, json};

use crate::transcript::step::{Answer, Step};

impl Step {
    pub fn new(method: &str, target: &str, body: Value) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            content_type: "application/json".into(),
            accept: "application/json".into(),
            body,
        }
    }

    pub fn patch(kind: &str, target: &str, body: Value) -> Self {
        Self {
            content_type: format!("application/{kind}-patch+json"),
            ..Self::new("PATCH", target, body)
        }
    }

    /// A read that waits for a code.
    pub fn wait(target: &str, code: u16) -> Self {
        Self::new("WAIT", target, code.into())
    }

    /// A moment for the background.
    pub fn pause() -> Self {
        Self::new("PAUSE", "", Value::Null)
    }

    /// The same request for another form of answer.
    pub fn accept(self, accept: &str) -> Self {
        Self {
            accept: accept.to_owned(),
            ..self
        }
    }

    pub fn to_json(&self) -> Value {
        let mut value = json!({"method": self.method, "target": self.target, "body": self.body});
        if self.content_type != "application/json" {
            value["contentType"] = self.content_type.as_str().into();
        }
        if self.accept != "application/json" {
            value["accept"] = self.accept.as_str().into();
        }
        value
    }
}

impl Answer {
    pub fn to_json(&self) -> Value {
        json!({"code": self.code, "body": self.body})
    }
}
