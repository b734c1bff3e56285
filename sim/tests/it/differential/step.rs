//! One request and its answer. Requests may speak of earlier answers: `$uid(3)` and `$rv(3)` stand for the uid and
//! version in the answer to step 3, `$ns` for the sequence's namespace.

use kruise_sim::{Method, Request};
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub struct Step {
    pub method: String,
    pub target: String,
    pub content_type: String,
    pub accept: String,
    pub body: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub code: u16,
    pub body: Value,
}

/// What earlier answers held.
pub struct Memory {
    pub namespace: String,
    uids: Vec<String>,
    versions: Vec<String>,
}

impl Memory {
    pub fn new(name: &str) -> Self {
        Self {
            namespace: name.to_owned(),
            uids: Vec::new(),
            versions: Vec::new(),
        }
    }

    pub fn remember(&mut self, body: &Value) {
        let text = |name: &str| body["metadata"][name].as_str().unwrap_or("0").to_owned();
        self.uids.push(text("uid"));
        self.versions.push(text("resourceVersion"));
    }

    pub fn fill(&self, text: &str) -> String {
        let mut text = text.replace("$ns", &self.namespace);
        for (index, (uid, version)) in self.uids.iter().zip(&self.versions).enumerate() {
            text = text.replace(&format!("$uid({index})"), uid);
            text = text.replace(&format!("$rv({index})"), version);
        }
        text
    }
}

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

    /// The bytes of the body; a body that is text stands for itself.
    pub fn bytes(&self, memory: &Memory) -> Vec<u8> {
        match &self.body {
            Value::Null => Vec::new(),
            Value::String(text) => memory.fill(text).into_bytes(),
            body => memory.fill(&body.to_string()).into_bytes(),
        }
    }

    pub fn request(&self, memory: &Memory) -> Request {
        let method = Method::parse(&self.method).unwrap();
        let mut request = Request::new(method, &memory.fill(&self.target), None)
            .content_type(&self.content_type)
            .accept(&self.accept);
        request.body = self.bytes(memory);
        request
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

    pub fn of_json(value: &Value) -> Self {
        let text = |name: &str| value[name].as_str().unwrap_or("application/json").to_owned();
        Self {
            method: text("method"),
            target: text("target"),
            content_type: text("contentType"),
            accept: text("accept"),
            body: value["body"].clone(),
        }
    }
}

impl Answer {
    pub fn to_json(&self) -> Value {
        json!({"code": self.code, "body": self.body})
    }

    pub fn of_json(value: &Value) -> Self {
        Self {
            code: u16::try_from(value["code"].as_u64().unwrap()).unwrap(),
            body: value["body"].clone(),
        }
    }
}
