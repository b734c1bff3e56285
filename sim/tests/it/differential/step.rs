//! One request and its answer. Requests may refer to earlier answers: `$uid(3)`, `$rv(3)`, `$name(3)` and
//! `$continue(3)` are what the answer to step 3 has in its metadata, `$ns` for the sequence's namespace.
//!
//! Two methods are no requests: `WAIT` reads until the answer has the code in its body, because what happens in the
//! background takes a real server a while, and `PAUSE` lets that happen unseen.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kruise_sim::{Method, Request};
use serde_json::{Value, json};

pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

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
    /// Of each answer, what [`MEMBERS`] names.
    answers: Vec<[String; MEMBERS.len()]>,
}

/// How requests spell a member of an answer's metadata, and its name there.
const MEMBERS: [(&str, &str); 4] = [
    ("uid", "uid"),
    ("rv", "resourceVersion"),
    ("name", "name"),
    ("continue", "continue"),
];

impl Memory {
    pub fn new(name: &str) -> Self {
        Self {
            namespace: name.to_owned(),
            answers: Vec::new(),
        }
    }

    pub fn remember(&mut self, body: &Value) {
        let text = |name: &str| body["metadata"][name].as_str().unwrap_or("0").to_owned();
        self.answers.push(MEMBERS.map(|(_, name)| text(name)));
    }

    pub fn fill(&self, text: &str) -> String {
        let mut text = text.replace("$ns", &self.namespace);
        if !text.contains('$') {
            return text;
        }
        for (index, answer) in self.answers.iter().enumerate() {
            for ((word, _), value) in MEMBERS.iter().zip(answer) {
                text = text.replace(&format!("${word}({index})"), value);
            }
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

    pub fn is_watch(&self) -> bool {
        self.method == "GET" && (self.target.contains("watch=") || self.target.contains("/watch/"))
    }

    /// The bytes of the body; a text as it is, protobuf is in base64.
    pub fn bytes(&self, memory: &Memory) -> Vec<u8> {
        match &self.body {
            Value::Null => Vec::new(),
            Value::String(text) if self.content_type == PROTOBUF => STANDARD.decode(text).unwrap(),
            Value::String(text) => memory.fill(text).into_bytes(),
            body => memory.fill(&body.to_string()).into_bytes(),
        }
    }

    pub fn request(&self, memory: &Memory) -> Request {
        let method = Method::parse(&self.method).unwrap_or(Method::Get);
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
    /// Of what is no request.
    pub fn none() -> Self {
        Self {
            code: 0,
            body: Value::Null,
        }
    }

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
