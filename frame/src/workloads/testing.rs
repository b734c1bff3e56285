//! A server that is a table of paths, for tests.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "tests")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Request, Response};
use jiff::Timestamp;
use kruise_runtime::{Client, Clock, client};
use kube_client::client::Body;
use serde_json::{Value, json};

/// Answers by path: a status code and a body. Paths that are not in it are not found.
#[derive(Clone, Default)]
pub struct Answers {
    by_path: Arc<Mutex<BTreeMap<String, (u16, Value)>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Answers {
    /// What is answered for a path; code 0 means no answer at all.
    pub fn set(&self, path: &str, code: u16, body: Value) {
        self.by_path.lock().unwrap().insert(path.to_owned(), (code, body));
    }

    /// Paths that were asked for since the last time and begin so.
    pub fn asked(&self, prefix: &str) -> Vec<String> {
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.retain(|path| path.starts_with(prefix));
        asked
    }

    /// A client of this server.
    pub fn client(&self) -> Client {
        let answers = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let answer = answers.by_path.lock().unwrap().get(&path).cloned();
            answers.asked.lock().unwrap().push(path);
            async move {
                // Others run meanwhile.
                tokio::task::yield_now().await;
                // A server that does not answer at all.
                if answer.as_ref().is_some_and(|(code, _)| *code == 0) {
                    std::future::pending::<()>().await;
                }
                let (code, body) = answer.unwrap_or((404, json!({"reason": "NotFound", "code": 404})));
                let response = Response::builder().status(code);
                Ok::<_, std::io::Error>(response.body(Body::from(body.to_string().into_bytes())).unwrap())
            }
        });
        let settings = client::Settings {
            user_agent: "test".into(),
            timeout: Duration::from_secs(5),
            rate: None,
            host: "here".into(),
            observer: None,
            clock: Clock::starting_at(Timestamp::UNIX_EPOCH),
        };
        Client::new(kube_client::Client::new(service, "default"), settings)
    }
}

/// A server with the kind Game of `example.com`, which has a scale and is served in `v2` only, and the kind Pool
/// without one.
pub fn games() -> Answers {
    let answers = Answers::default();
    let versions =
        json!({"versions": [{"version": "v2"}, {"version": "v1"}], "preferredVersion": {"version": "v1"}});
    answers.set("/apis/example.com", 200, versions);
    answers.set(
        "/apis/example.com/v1",
        200,
        json!({"resources": [
            {"name": "pools", "kind": "Pool", "namespaced": true},
            {"name": "worlds", "kind": "World", "namespaced": false},
        ]}),
    );
    answers.set(
        "/apis/example.com/v2",
        200,
        json!({"resources": [
            {"name": "games", "kind": "Game", "namespaced": true},
            {"name": "games/status", "kind": "Game", "namespaced": true},
            {"name": "games/scale", "kind": "Scale", "namespaced": true},
        ]}),
    );
    answers
}

/// Path of the Game `one`.
pub const GAME: &str = "/apis/example.com/v2/namespaces/shop/games/one";

/// The scale of a Game.
pub fn scale(replicas: i32) -> Value {
    json!({"metadata": {"namespace": "shop", "name": "one", "uid": "u", "resourceVersion": "7"},
           "spec": {"replicas": replicas}, "status": {"replicas": 1, "selector": "app=game,tier in (a,b)"}})
}
