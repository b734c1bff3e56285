//! The container runtimes of nodes in real time.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use kruise_sim::runtime::{Answer, Call, CallId, Error, Pull};
use kruise_sim::{Method, Request, http};
use serde_json::json;

use crate::socket;

fn call(live: &http::Live, call: Call) -> CallId {
    live.with_world(|world| {
        world.advance(Timestamp::now());
        world.call_runtime("n1", call)
    })
}

/// The answer to a call. Whoever waits for it does not move the world.
fn answer(live: &http::Live, id: CallId) -> Result<Answer, Error> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_mins(2) {
        let answers = live.with_world(kruise_sim::World::runtime_answers);
        if let Some((of, result)) = answers.into_iter().next() {
            assert_eq!(of, id);
            return result;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the call is not answered");
}

#[test]
fn a_call_that_takes_time_is_answered_though_nobody_writes() {
    let (_runtime, _address, live) = socket::serve_shared();
    let node = json!({"metadata": {"name": "n1"}});
    let created = live.with_world(|world| {
        let request = Request::new(Method::Post, "/api/v1/nodes", Some(&node));
        world.handle(&request).response().unwrap()
    });
    assert_eq!(created.code, 201);
    let is_up = |_: &usize| {
        let id = call(&live, Call::Version);
        answer(&live, id).is_ok()
    };
    assert!((0..1000).find(is_up).is_some(), "the node has a runtime");
    live.with_world(|world| {
        world.change_registries(|all| all.registry("docker.io").bandwidth = Some(u64::MAX));
    });
    let pull = Pull {
        image: "web:1".into(),
        login: None,
    };
    let id = call(&live, Call::PullImage(pull));
    assert!(matches!(answer(&live, id), Ok(Answer::Pulled(_))));
}
