//! A server with a clock that tests move.

use jiff::{Timestamp, ToSpan};
use kruise_sim::{Api, CallId, Config, Method, Outcome, Request, WatchEvent, WatchId, WebhookReply};
use serde_json::Value;

pub struct Server {
    pub api: Api,
    pub now: Timestamp,
}

impl Server {
    pub fn new() -> Self {
        Self::with_window(1000)
    }

    pub fn with_window(window: usize) -> Self {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let config = Config {
            seed: 7,
            window,
            ..Config::default()
        };
        let api = Api::new(&config, now);
        Self { api, now }
    }

    pub fn pass(&mut self, seconds: i64) {
        self.now = self.now.checked_add(seconds.seconds()).unwrap();
    }

    pub fn send(&mut self, request: &Request) -> (u16, Value) {
        let response = self
            .api
            .handle(request, self.now)
            .response()
            .expect("not a watch");
        (response.code, response.value())
    }

    /// Answers a webhook call that a request of ours waits for.
    pub fn resume(&mut self, id: CallId, reply: WebhookReply) -> Outcome {
        self.api.resume(id, reply).expect("our own request")
    }

    pub fn get(&mut self, target: &str) -> (u16, Value) {
        self.send(&Request::new(Method::Get, target, None))
    }

    pub fn post(&mut self, target: &str, body: &Value) -> (u16, Value) {
        self.send(&Request::new(Method::Post, target, Some(body)))
    }

    pub fn put(&mut self, target: &str, body: &Value) -> (u16, Value) {
        self.send(&Request::new(Method::Put, target, Some(body)))
    }

    /// `kind` is `json`, `merge` or `strategic-merge`.
    pub fn patch(&mut self, kind: &str, target: &str, body: &Value) -> (u16, Value) {
        let request = Request::new(Method::Patch, target, Some(body));
        self.send(&request.content_type(&format!("application/{kind}-patch+json")))
    }

    pub fn delete(&mut self, target: &str, options: Option<&Value>) -> (u16, Value) {
        self.send(&Request::new(Method::Delete, target, options))
    }

    pub fn watch(&mut self, target: &str) -> WatchId {
        match self
            .api
            .handle(&Request::new(Method::Get, target, None), self.now)
        {
            Outcome::Watch(id) => id,
            other => panic!("{target}: {other:?}"),
        }
    }

    /// Drains a watch; the end is an event of kind `END`.
    pub fn events(&mut self, id: WatchId) -> Vec<(String, Value)> {
        let events = self.api.watch_events(id, self.now).into_iter();
        events
            .map(|event| match event {
                WatchEvent::Line(kind, object) => (kind.to_owned(), Value::clone(&object)),
                WatchEvent::End => ("END".to_owned(), Value::Null),
            })
            .collect()
    }
}
