//! Requests and responses, free of any transport.

use std::cell::RefCell;

use serde::Serializer as _;
use serde_json::Value;

/// Texts longer than this are rare: what one of them was written into is not kept.
const LONG: usize = 256 << 10;

/// An HTTP method of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Read, list or watch.
    Get,
    /// Create.
    Post,
    /// Replace.
    Put,
    /// Change in part.
    Patch,
    /// Remove.
    Delete,
}

impl Method {
    /// From its name on the wire.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "GET" => Self::Get,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "PATCH" => Self::Patch,
            "DELETE" => Self::Delete,
            _ => return None,
        })
    }
}

/// JSON as text. Unlike `to_string`, it does not go through a formatter, which takes twice as long; and what is written
/// into is kept, so that it grows once and not for every text.
pub(crate) fn text(value: &Value) -> Vec<u8> {
    thread_local! {
        static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    WRITTEN.with_borrow_mut(|written| {
        written.clear();
        append(value, &[], written);
        if written.capacity() > LONG {
            return std::mem::take(written);
        }
        written.clone()
    })
}

/// The value of JSON text. It is checked once that all of it is UTF-8, not text by text.
pub(crate) fn parse(text: &[u8]) -> serde_json::Result<Value> {
    match std::str::from_utf8(text) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(text),
    }
}

/// Appends a value, of an object all members but some.
pub(crate) fn append(value: &Value, but: &[&str], out: &mut Vec<u8>) {
    // a value has no keys but texts, and memory does not refuse to be written
    let _ = match value {
        Value::Object(members) if !but.is_empty() => {
            let shown = members.iter().filter(|(name, _)| !but.contains(&name.as_str()));
            serde_json::Serializer::new(out).collect_map(shown)
        }
        _ => serde_json::to_writer(out, value),
    };
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// What to do.
    pub method: Method,
    /// Where, without the query and still escaped: `/api/v1/namespaces/default/pods`.
    pub path: String,
    /// What follows the `?`, still escaped.
    pub query: String,
    /// The `Content-Type` header, or empty.
    pub content_type: String,
    /// The `Accept` header, or empty.
    pub accept: String,
    /// The `User-Agent` header, or empty; what a request sets is recorded under its name.
    pub agent: String,
    /// The user; webhooks receive it.
    pub user: String,
    /// The body, or empty.
    pub body: Vec<u8>,
}

impl Request {
    /// The content type without its parameters.
    pub(crate) fn media_type(&self) -> &str {
        self.content_type.split(';').next().unwrap_or_default().trim()
    }

    /// A request by `kubernetes-admin` with an optional JSON body. `target` is a path, with or without a query.
    pub fn new(method: Method, target: &str, body: Option<&Value>) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            content_type: "application/json".into(),
            accept: "application/json".into(),
            agent: String::new(),
            user: "kubernetes-admin".into(),
            body: body.map(text).unwrap_or_default(),
        }
    }

    /// With another `Content-Type`, as patches need.
    #[must_use]
    pub fn content_type(mut self, content_type: &str) -> Self {
        content_type.clone_into(&mut self.content_type);
        self
    }

    /// With another `Accept`.
    #[must_use]
    pub fn accept(mut self, accept: &str) -> Self {
        accept.clone_into(&mut self.accept);
        self
    }
}

/// A complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub code: u16,
    /// The `Content-Type` header.
    pub content_type: &'static str,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// A JSON document.
    pub fn json(code: u16, body: &Value) -> Self {
        Self::bytes(code, text(body))
    }

    /// A JSON document that is text already.
    pub fn bytes(code: u16, body: Vec<u8>) -> Self {
        Self {
            code,
            content_type: "application/json",
            warnings: Vec::new(),
            body,
        }
    }

    /// Plain text.
    pub fn text(code: u16, body: &str) -> Self {
        Self {
            code,
            content_type: "text/plain; charset=utf-8",
            warnings: Vec::new(),
            body: body.as_bytes().to_vec(),
        }
    }

    /// The body as JSON; `null` if it is not.
    pub fn value(&self) -> Value {
        parse(&self.body).unwrap_or_default()
    }
}
