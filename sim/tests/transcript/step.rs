//! One request and its answer. Requests may refer to earlier answers: `$uid(3)`, `$rv(3)`, `$name(3)` and
//! `$continue(3)` are what the answer to step 3 has in its metadata, `$ns` for the sequence's namespace.
//!
//! Two methods are no requests: `WAIT` reads until the answer has the code in its body, because what happens in the
//! background takes a real server a while, and `PAUSE` lets that happen unseen.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

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
}

impl Answer {
    /// Of what is no request.
    pub fn none() -> Self {
        Self {
            code: 0,
            body: Value::Null,
        }
    }
}
